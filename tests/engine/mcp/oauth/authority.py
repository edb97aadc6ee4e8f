"""A small authorization server with the resource that it protects, on this machine, whose tokens rotate.

It checks what it is sent as a strict server would: PKCE, redirect URI, resource, client. A refresh token is good for
one use; a second use of it withdraws every token of its client.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.engine.quiet_server import QuietServer

__all__ = ("Authority", "authority")

Answer = tuple[int, dict[str, str], Any]


class Authority(QuietServer):
    """Serves everything below one origin; the resource's paths are ``/mcp`` and whatever ends so.

    :ivar asked: every request, as method and path
    :ivar forms: every form that the token endpoint was sent
    :ivar issued: every secret that it has given out
    :ivar answers: what to say instead, by path, once for each entry
    :ivar lifetime: seconds that tokens are said to be good for
    :ivar lenient: a second use of a refresh token withdraws nothing
    :ivar hold: if set, a refresh is answered only when this is; ``holding`` tells that one has come
    :ivar changed: members that replace those of a metadata document, by the document's name
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.origin = f"http://127.0.0.1:{self.server_address[1]}"
        self.url = f"{self.origin}/mcp"
        self.asked: list[str] = []
        self.forms: list[dict[str, str]] = []
        self.queries: list[dict[str, str]] = []
        self.clients: dict[str, dict[str, Any]] = {}
        self.issued: set[str] = set()
        self.answers: dict[str, list[Answer]] = {}
        self.changed: dict[str, dict[str, Any]] = {}
        self.lifetime: int | None = 3600
        self.lenient = False
        self.hold: threading.Event | None = None
        self.holding = threading.Event()
        self._codes: dict[str, dict[str, str]] = {}
        self._access: dict[str, tuple[str, str]] = {}
        self._refresh: dict[str, tuple[str, str]] = {}
        self._used: set[str] = set()
        self._lock = threading.Lock()
        self._moved = threading.Condition()

    @property
    def refreshes(self) -> int:
        """How many refresh requests have come."""
        return len([form for form in self.forms if form.get("grant_type") == "refresh_token"])

    def until(self, asked: str, times: int) -> bool:
        """Wait until something has been asked so many times; False: it was not within 20 seconds."""
        with self._moved:
            return self._moved.wait_for(lambda: self.asked.count(asked) >= times, 20)

    def expire(self) -> None:
        """Turn down every access token that has been given out."""
        self._access.clear()

    def withdraw(self) -> None:
        """Turn down every refresh token too."""
        self._access.clear()
        self._refresh.clear()

    def respond(self, method: str, target: str, headers: Any, body: bytes) -> Answer:
        """Answer one request."""
        path = urlsplit(target).path
        with self._moved:
            self.asked.append(f"{method} {path}")
            self._moved.notify_all()
        answer = self.answers[path].pop(0) if self.answers.get(path) else self._answer(method, target, headers, body)
        if self.hold is not None and path == "/token" and b"grant_type=refresh_token" in body:
            self.holding.set()
            self.hold.wait(30)
        return answer

    def _answer(self, method: str, target: str, headers: Any, body: bytes) -> Answer:
        split = urlsplit(target)
        path = split.path
        if path.startswith("/.well-known/oauth-protected-resource"):
            named = path.removeprefix("/.well-known/oauth-protected-resource") or "/mcp"
            return self._document("resource", {"resource": self.origin + named, "authorization_servers": [self.origin]})
        if path == "/.well-known/oauth-authorization-server":
            return self._document("server", self._metadata())
        if path == "/register" and method == "POST":
            return self._register(json.loads(body))
        if path == "/authorize":
            return self._authorize({name: values[0] for name, values in parse_qs(split.query).items()})
        if path == "/token" and method == "POST":
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            return self._token(form)
        if path.endswith("/mcp"):
            return self._resource(path, headers.get("Authorization", ""))
        return 404, {}, {"error": "not_found"}

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "code_challenge_methods_supported": ["S256"],
        }

    def _document(self, name: str, document: dict[str, Any]) -> Answer:
        changed = {**document, **self.changed.get(name, {})}
        return 200, {}, {key: value for key, value in changed.items() if value is not None}

    def _register(self, metadata: dict[str, Any]) -> Answer:
        client = {
            **metadata,
            "client_id": self._new("client"),
            "client_secret": self._new("canary-secret"),
            "token_endpoint_auth_method": "client_secret_post",
        }
        self.clients[client["client_id"]] = client
        return 201, {}, client

    def _authorize(self, query: dict[str, str]) -> Answer:
        self.queries.append(query)
        client = self.clients.get(query.get("client_id", ""))
        if client is None or query["redirect_uri"] not in client["redirect_uris"]:
            return 400, {}, {"error": "invalid_request"}
        assert query["code_challenge_method"] == "S256"
        code = self._new("canary-code")
        self._codes[code] = query
        back = urlencode({"code": code, "state": query["state"], "iss": self.origin})
        return 302, {"Location": f"{query['redirect_uri']}?{back}"}, {}

    def _token(self, form: dict[str, str]) -> Answer:
        with self._lock:
            self.forms.append(form)
            client = self.clients.get(form.get("client_id", ""))
            if client is None or form.get("client_secret") != client["client_secret"]:
                return 401, {}, {"error": "invalid_client"}
            return self._exchange(form) if form["grant_type"] == "authorization_code" else self._renew(form)

    def _exchange(self, form: dict[str, str]) -> Answer:
        asked = self._codes.pop(form["code"], None)
        proof = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if asked is None or proof != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
            return 400, {}, {"error": "invalid_grant"}
        self.issued.add(form["code_verifier"])
        return self._tokens(form["client_id"], urlsplit(asked["resource"]).path, asked.get("scope"))

    def _renew(self, form: dict[str, str]) -> Answer:
        token = form["refresh_token"]
        if token in self._used and not self.lenient:
            self.withdraw()
        granted = self._refresh.pop(token, None)
        if granted is None:
            return 400, {}, {"error": "invalid_grant", "error_description": f"no {token}"}
        self._used.add(token)
        client, path = granted
        assert form["resource"] == self.origin + path
        return self._tokens(client, path, None)

    def _tokens(self, client: str, path: str, scope: str | None) -> Answer:
        access, refresh = self._new("canary-access"), self._new("canary-refresh")
        self._access[access] = self._refresh[refresh] = client, path
        answer: dict[str, Any] = {"access_token": access, "refresh_token": refresh, "token_type": "bearer"}
        if self.lifetime is not None:
            answer["expires_in"] = self.lifetime
        return 200, {}, answer | ({"scope": scope} if scope else {})

    def _resource(self, path: str, authorization: str) -> Answer:
        token = authorization.removeprefix("Bearer ")
        if self._access.get(token, ("", ""))[1] != path:
            named = f'Bearer resource_metadata="{self.origin}/.well-known/oauth-protected-resource{path}", scope="all"'
            return 401, {"WWW-Authenticate": named}, {"error": "invalid_token", "echo": authorization}
        return 200, {}, {"path": path, "client": self._access[token][0]}

    def _new(self, kind: str) -> str:
        made = f"{kind}-{secrets.token_hex(16)}"
        if kind != "client":
            self.issued.add(made)
        return made


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        assert isinstance(self.server, Authority)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, headers, content = self.server.respond(self.command, self.path, self.headers, body)
        encoded = content if isinstance(content, bytes) else json.dumps(content).encode()
        try:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = _serve  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def authority(prepare: Callable[[Authority], None] = lambda server: None) -> Iterator[Authority]:
    """Run one in a thread; it is gone when the block is left."""
    server = Authority()
    prepare(server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        if server.hold is not None:
            server.hold.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
