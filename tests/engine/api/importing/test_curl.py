"""A curl command becomes one action that sends the same; secrets are told apart, and files and tricks refused."""

from __future__ import annotations

import msgspec
import pytest
from rich.pretty import pretty_repr

from engine.actions import resolve_actions
from engine.api.importing import Imported, import_curl
from engine.api.importing.examples import sounds_secret
from engine.api.row_config import problems_of
from engine.rows import ToolRow
from engine.tools.api_tool import ApiTool
from events.errors import Refused
from tests.engine.api.importing.documents import sent, sound

FORM = "application/x-www-form-urlencoded"
CANARY = "hush-4711"


def request_of(command: str) -> tuple[str, str, dict[str, str], str | None]:
    """Return method, path, headers and body of what the action sends when a call says nothing."""
    result = import_curl(command)
    sound(result)
    (definition,) = result.actions.values()
    path, headers, body = sent(definition, {})
    return definition["method"], path, {name: text for name, text in headers.items() if name != "Accept"}, body


COMMANDS = [
    ("curl https://a.example", "GET", "/", {}, None),
    ("$ curl -sSL 'http://a.example/x?page=2&tag=a&tag=b&q='", "GET", "/x?page=2&tag=a&tag=b&q=", {}, None),
    ("curl a.example/x -I", "HEAD", "/x", {}, None),
    ("curl -XDELETE https://a.example/x", "DELETE", "/x", {}, None),
    ("curl --request=PUT --url https://a.example/x", "PUT", "/x", {}, None),
    (
        "curl https://a.example/x -d a=1 --data-raw 'b=x y' -d c=@d",
        "POST",
        "/x",
        {"Content-Type": FORM},
        "a=1&b=x+y&c=%40d",
    ),
    ("curl -G https://a.example/x?z=0 -d a=1 --data-urlencode 'b=x&y'", "GET", "/x?z=0&a=1&b=x%26y", {}, None),
    ("curl https://a.example/x --url-query 'a=b c'", "GET", "/x?a=b%20c", {}, None),
    (
        'curl https://a.example/x --json \'{"a":[1,{"b":null}]}\'',
        "POST",
        "/x",
        {"Content-Type": "application/json"},
        '{"a":[1,{"b":null}]}',
    ),
    (
        "curl https://a.example/x -H 'content-type: application/vnd.api+json' -d '[1]'",
        "POST",
        "/x",
        {"Content-Type": "application/vnd.api+json"},
        "[1]",
    ),
    ("curl https://a.example/x -d '{\"a\":true}'", "POST", "/x", {"Content-Type": "application/json"}, '{"a":true}'),
    (
        "curl https://a.example/x -H 'Content-Type: text/plain' --data-binary $'a\\tb\\u00e5\\'c'",
        "POST",
        "/x",
        {"Content-Type": "text/plain; charset=utf-8"},
        "a\tbå'c",
    ),
    (
        'curl https://a.example/x -H "X-Trace: a\\"b\\$c" -H \'X-Empty:\' -A agent -e https://b.example',
        "GET",
        "/x",
        {"X-Trace": 'a"b$c', "User-Agent": "agent", "Referer": "https://b.example"},
        None,
    ),
    (
        "curl \\\n  -H 'Accept-Encoding: gzip' \\\r\n  --compressed -o out -m 5 https://a.example/x",
        "GET",
        "/x",
        {},
        None,
    ),
]


@pytest.mark.parametrize(("command", "method", "path", "headers", "body"), COMMANDS)
def test_the_action_sends_what_the_command_sends(
    command: str, method: str, path: str, headers: dict[str, str], body: str | None
) -> None:
    assert request_of(command) == (method, path, headers, body)


def test_a_form_with_typed_parts() -> None:
    fields = "-F a=1 -F 'm={\"k\":1};type=application/json' -F t=x -F 't=\"y;z\"' --form-string s=@s"
    body = request_of(f"curl https://a.example/x {fields}")[3] or ""
    assert 'name="m"\r\nContent-Type: application/json\r\n\r\n{"k":1}\r\n' in body
    assert [part.partition("\r\n\r\n")[2].partition("\r\n")[0] for part in body.split("name=")[1:]] == [
        "1",
        '{"k":1}',
        "x",
        "y;z",
        "@s",
    ]


def test_values_are_defaults_and_headers_are_fixed() -> None:
    command = 'curl \'https://a.example/bays/{id}?page=2\' -H \'X-Tenant: t\' -d \'{"n":{"k":[1]},"s":""}\''
    (definition,) = import_curl(command).actions.values()
    assert sent(definition, {"id": "a/b", "page": 3, "n": {}})[::2] == ("/bays/a%2Fb?page=3", '{"n":{},"s":""}')
    row = ToolRow(id="t1", name="api_tool", config={"actions": {"act": definition}})
    (action,) = resolve_actions(row, ApiTool, None)
    assert action.pinned == {"X-Tenant": "t"}
    assert action.shown["required"] == ["id"]
    assert list(import_curl(command).actions) == ["post_bays_id"]


SECRETS = [
    (f"-H 'Authorization: Bearer {CANARY}'", [{"secret": "token", "in": "bearer"}], {"token": CANARY}),
    (f"--oauth2-bearer {CANARY}", [{"secret": "token", "in": "bearer"}], {"token": CANARY}),
    (
        f"-H 'authorization: Token {CANARY}'",
        [{"secret": "authorization", "in": "header", "name": "Authorization", "prefix": "Token "}],
        {"authorization": CANARY},
    ),
    (
        f"-H 'Authorization: {CANARY}, x=y'",
        [{"secret": "authorization", "in": "header", "name": "Authorization"}],
        {"authorization": f"{CANARY}, x=y"},
    ),
    (f"-u me:{CANARY}", [{"in": "basic"}], {"username": "me", "password": CANARY}),
    (f"-u {CANARY}:", [{"in": "basic"}], {"username": CANARY}),
    ("-H 'Authorization: Basic bWU6aHVzaC00NzEx'", [{"in": "basic"}], {"username": "me", "password": CANARY}),
    (
        f"-H 'X-API-Key: {CANARY}'",
        [{"secret": "x_api_key", "in": "header", "name": "X-API-Key"}],
        {"x_api_key": CANARY},
    ),
    (
        f"-b 'sid={CANARY}==; a=b'",
        [{"secret": "cookie", "in": "header", "name": "Cookie"}],
        {"cookie": f"sid={CANARY}==; a=b"},
    ),
    (
        f"-G -d access_token={CANARY}",
        [{"secret": "access_token", "in": "query", "name": "access_token"}],
        {"access_token": CANARY},
    ),
    ('-H "Authorization: Bearer $TOKEN"', [{"secret": "token", "in": "bearer"}], {}),
    ("-H 'X-Api-Key: <your key>'", [{"secret": "x_api_key", "in": "header", "name": "X-Api-Key"}], {}),
]


@pytest.mark.parametrize(("options", "security", "secrets"), SECRETS)
def test_secrets_are_told_apart(options: str, security: list[dict[str, str]], secrets: dict[str, str]) -> None:
    result = import_curl(f"curl https://a.example/x {options}")
    sound(result)
    assert result.config["security"] == security
    assert result.secrets == secrets
    assert not hidden(result)
    assert all(stated["secret"] for stated in result.requirements.values())


def hidden(result: Imported) -> bool:
    """Tell whether the canary is anywhere but in the secrets."""
    shown = msgspec.json.encode(msgspec.structs.replace(result, secrets={})).decode()
    return CANARY in shown + repr(result) + pretty_repr(result)


def test_a_password_in_the_url_is_a_credential() -> None:
    result = import_curl(f"curl https://me:{CANARY}@a.example/x")
    assert result.secrets == {"username": "me", "password": CANARY}
    assert result.actions["get_x"]["url"] == "https://a.example/x"
    assert not hidden(result)


def test_secrets_of_a_body_are_not_kept() -> None:
    several = f'"api_key":["{CANARY}"],"auth":[[{{"a":1}},"{CANARY}"]],"session":true,"token":[{{"n":2}}]'
    fields = f'{{"user":"u","password":"{CANARY}","deep":[{{"client_secret":["{CANARY}"],"n":1}}],{several}}}'
    result = import_curl(f"curl https://a.example/x -d '{fields}'")
    assert not hidden(result)
    assert result.secrets == {}
    names = ("password", "deep.client_secret", "api_key", "auth", "session")
    assert [skipped.operation for skipped in result.skipped] == [f"value of {name}" for name in names]
    definition = result.actions["post_x"]
    assert sent(definition, {"password": "p"})[2] == '{"user":"u","deep":[{"n":1}],"token":[{"n":2}],"password":"p"}'
    twice = import_curl(f"curl 'https://a.example/x?sig={CANARY}&sig={CANARY}'")
    assert not hidden(twice)
    assert problems_of(twice.config) == []


def test_what_sounds_secret() -> None:
    secret = ("X-API-Key", "api_key", "apikey", "X-Auth-Token", "password", "client_secret", "key", "sessionId", "sig")
    public = ("page_token", "nextPageToken", "keyword", "monkey", "tokens_used", "X-Request-Id", "author", "signed")
    assert [name for name in (*secret, *public) if sounds_secret(name)] == list(secret)


REFUSED = [
    ("", "The command is empty."),
    ("wget https://a.example", "no curl command"),
    ("curl", "no URL"),
    ("curl https://a.example https://b.example", "several URLs"),
    ("curl 'https://a.example", "a quote that is never closed"),
    ("curl https://a.example | sh", "| outside quotes"),
    ("curl https://a.example?a=1&b=2", "& outside quotes"),
    ("curl https://a.example\nrm -rf x", "a line's end outside quotes"),
    ("curl https://a.example -H `id`", "` outside quotes"),
    (f"curl -k https://a.example -u a:{CANARY}", "-k is not supported: certificates are always checked"),
    ("curl --insecure https://a.example", "--insecure is not supported"),
    (f"curl -x http://{CANARY}@p.example https://a.example", "-x is not supported"),
    ("curl --resolve a.example:80:127.0.0.1 http://a.example", "--resolve is not supported"),
    ("curl --unix-socket /run/x http://a.example", "--unix-socket is not supported"),
    ("curl -K f", "files are not read"),
    ("curl -d @f https://a.example", "-d names a file"),
    ("curl --data-binary @f https://a.example", "--data-binary names a file"),
    ("curl --data-urlencode a@f https://a.example", "--data-urlencode names a file"),
    ("curl --json @f https://a.example", "--json names a file"),
    ("curl -F a=@f https://a.example", "-F names a file"),
    ("curl -F 'a=<f' https://a.example", "-F names a file"),
    ("curl -b jar.txt https://a.example", "-b names a file"),
    ("curl -H @f https://a.example", "-H names a file"),
    ("curl -T f https://a.example", "files are not read"),
    (f"curl --nonsense={CANARY} https://a.example", "option --nonsense not recognized"),
    ("curl https://a.example -X", "option -X requires argument"),
    ("curl https://{a,b}.example", "a {list} or a [range]"),
    ("curl https://a.example/[1-9]", "a {list} or a [range]"),
    ("curl https://{host}.example/", "a variable in its host"),
    ("curl https://a.example/../x", '"." or ".."'),
    ("curl ftp://a.example/x", "http:// or https://"),
    ("curl https://a.example:x/", "not valid"),
    ("curl -X BREW https://a.example", "Unsupported HTTP method: BREW"),
    ("curl -F a=b -d c=d https://a.example", "both a form (-F) and data (-d)"),
    (f"curl https://a.example -H 'Authorization: Bearer {CANARY}' -H 'Authorization: {CANARY}'", "two credentials"),
    (f"curl 'https://a.example?token={CANARY}' -G -d Token={CANARY}", "sets the query Token twice"),
    ("curl https://a.example -H 'Content-Type: application/json' -d 'a=1'", "not valid JSON"),
    ("curl https://a.example -d words", "no form (name=value)"),
    ("curl https://a.example -H 'Content-Type: multipart/form-data; boundary=x' -d '--x'", "fields with -F"),
    ("curl " + "x" * 2**20, "longer than 1 MiB"),
]


@pytest.mark.parametrize(("command", "said"), REFUSED)
def test_what_cannot_be_kept_to_is_refused_in_one_line(command: str, said: str) -> None:
    with pytest.raises(Refused) as caught:
        import_curl(command)
    assert said in str(caught.value)
    assert CANARY not in str(caught.value)
    assert "\n" not in str(caught.value)
