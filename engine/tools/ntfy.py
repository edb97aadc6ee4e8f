"""``ntfy``: push messages to the one topic that a row's owner configured."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any, ClassVar, Final

from engine.action_entry import action_definition, text_definition, whole_number_definition
from engine.contract import Tool, ToolContext, ToolResult
from events.errors import Refused

__all__ = ("Ntfy",)

_SERVER: Final = "https://ntfy.sh"
_TOPIC: Final = re.compile(r"[-_A-Za-z0-9]{1,64}")
_TAG: Final = re.compile(r"[^\s,\x00-\x1f]{1,64}")
_LINK: Final = re.compile(r"(https?://|mailto:)[^\s\x00-\x1f]{1,2000}")
_LARGEST: Final = 4096
_TITLE: Final = 250
_TAGS: Final = 10
_PER_RUN: Final = 20
_SECONDS: Final = 25.0


class Ntfy(Tool):
    """Publishes as JSON, so that every text arrives as it is. Server, topic and credentials are the row's alone."""

    name = "ntfy"
    display_name = "ntfy"
    description = "Send a push message to the configured ntfy topic."
    timeout = 30.0
    limits: ClassVar[tuple[str, ...]] = (
        f"{_LARGEST:,} bytes per message",
        f"{_TITLE} characters per title",
        f"{_TAGS} tags",
        f"{_PER_RUN} messages per run, unless the row says otherwise",
    )
    errors: ClassVar[tuple[str, ...]] = (
        "Message not sent: ntfy responded with HTTP status 403: forbidden.",
        "Message not sent: this run has sent N of at most M messages, ...",
        "Message not sent: ntfy cannot be reached or read: ...",
    )

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        """Publish a message and return ``{status_code, message}``; what the server refuses is an error result."""
        # Imported here: the HTTP client is a tenth of a second that the catalogue need not cost.
        from engine.messaging.run_counts import run_counts, run_of
        from engine.remote.exchange import NOT_DONE, Exchange, seconds_left
        from engine.remote.given import Given, masker_of
        from engine.remote.service_error import ServiceError

        counts, run = self.scope.services.shared(run_counts), run_of(self.scope, context)
        masker = masker_of(self.config, self.get_config_requirements())
        try:
            request = self._request(action_name, kwargs, self.config)
            counts.take(run, 1, Given(self.config, "setting").whole("max_per_run", _PER_RUN, 1, 1000))
        except Refused as error:
            return _failure(None, str(error))
        exchange = Exchange(self.scope.services, "ntfy", masker, seconds_left(context, _SECONDS))
        try:
            reply = await exchange.reply(request, statuses=NOT_DONE)
            if not 200 <= reply.status < 300:
                raise exchange.refusal(reply, _reason(exchange.content(reply)))
        except ServiceError as error:
            counts.give_back(run, 1)
            return _failure(error.status, f"Message not sent: {error}")
        context.annotate("http.response.status_code", reply.status)
        return _sent(reply.status, exchange.content(reply))

    def preview_request(self, action_name: str, arguments: dict[str, Any]) -> str:
        """Return the request that a call would send, its secrets masked. :raises Refused: if none would be sent"""
        from engine.remote.request import MASK

        hidden = {key: MASK for key in ("token", "username", "password") if self.config.get(key)}
        shown: str = self._request(action_name, arguments, {**self.config, **hidden}).preview()
        return shown

    def _request(self, action_name: str, kwargs: dict[str, Any], config: dict[str, Any]) -> Any:
        from engine.remote.given import Given
        from engine.remote.request import RemoteRequest, service_address

        if action_name not in ("ntfy_send_message", "send_message"):
            raise Refused(f"Unknown action: {action_name}. There is: ntfy_send_message.")
        topic = Given(config, "setting").text("topic")
        if not _TOPIC.fullmatch(topic):
            raise Refused('The tool\'s setting "topic" must be 1 to 64 letters, digits, hyphens and underscores.')
        body = {"topic": topic, **_message(Given(kwargs))}
        return RemoteRequest.post_json(f"{service_address(config, 'server', _SERVER)}/", body, _authorization(config))

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the one action."""
        return [
            action_definition(
                "ntfy_send_message",
                "Send a push message to the owner's ntfy topic. Where it goes is configured and cannot be chosen.",
                {
                    "message": {**text_definition("The message, plain text.", _LARGEST), "minLength": 1},
                    "title": text_definition("A title above it.", _TITLE),
                    "priority": whole_number_definition("1 (least) to 5 (most urgent); 3 where it is left out.", 1, 5),
                    "tags": {
                        "type": "array",
                        "description": "Tags; names of emoji are shown as such.",
                        "maxItems": _TAGS,
                        "items": {"type": "string", "minLength": 1, "maxLength": 64},
                    },
                    "click": text_definition("An http(s) or mailto address that a tap on the message opens.", 2000),
                    "attach": text_definition("An http(s) address of a file that is attached.", 2000),
                    "delay": text_definition("When to deliver it: 30m, 2h, a Unix time, 'tomorrow, 10am'.", 64),
                },
                "message",
            )
        ]

    def get_config_requirements(self) -> dict[str, Any]:
        """Return where messages go, and what for: all of it is the owner's to say."""
        secret = {"type": "string", "required": False, "secret": True}
        return {
            "topic": {"type": "string", "required": True, "description": "The topic messages are sent to."},
            "server": {"type": "string", "required": False, "default": _SERVER, "description": "The server's address."},
            "token": {**secret, "description": "An access token (tk_...); none is needed for public topics."},
            "username": {"type": "string", "required": False, "description": "With a password, in place of a token."},
            "password": {**secret, "description": "The user's password."},
            "max_per_run": {
                "type": "integer",
                "required": False,
                "minimum": 1,
                "maximum": 1000,
                "default": _PER_RUN,
                "description": "Messages that one run may send.",
            },
        }


def _message(given: Any) -> dict[str, Any]:
    """Return what the model says, as ntfy takes it. :raises Refused: if it takes it not"""
    message = given.text("message")
    if (size := len(message.encode())) > _LARGEST:
        raise Refused(f"The message has {size:,} bytes; at most {_LARGEST:,} are taken.")
    body: dict[str, Any] = {"message": message}
    if given.has("title"):
        body["title"] = given.text("title", longest=_TITLE)
    if given.has("priority"):
        body["priority"] = given.whole("priority", 3, 1, 5)
    if tags := given.texts("tags", _TAGS):
        if not all(map(_TAG.fullmatch, tags)):
            raise Refused("A tag must be 1 to 64 characters without spaces and commas.")
        body["tags"] = list(tags)
    for name in ("click", "attach"):
        if given.has(name):
            link = given.text(name, longest=2000)
            if not _LINK.fullmatch(link) or (name == "attach" and link.startswith("mailto:")):
                raise Refused(f'"{name}" must be an http(s) address{" or a mailto one" if name == "click" else ""}.')
            body[name] = link
    if given.has("delay"):
        body["delay"] = given.text("delay", longest=64)
    return body


def _authorization(config: dict[str, Any]) -> dict[str, str]:
    from engine.api.headers import header_value
    from engine.remote.request import MASK

    token, user, password = (str(config.get(key) or "") for key in ("token", "username", "password"))
    if token:
        return {"Authorization": header_value("Authorization", f"Bearer {token}")}
    if not user and not password:
        return {}
    if ":" in user or not user:
        raise Refused('The tool\'s setting "username" must be given beside a password, without a colon.')
    pair = MASK if password == MASK else b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def _reason(content: Any) -> str | None:
    reason = content.get("error") if isinstance(content, dict) else None
    return reason if isinstance(reason, str) else None


def _sent(status: int, content: Any) -> dict[str, Any]:
    told = content if isinstance(content, dict) else {}
    return {
        "status_code": status,
        "message": "Message sent",
        **{key: told[key] for key in ("id", "time") if key in told},
    }


def _failure(status: int | None, text: str) -> ToolResult:
    return ToolResult({"status_code": status, "message": text}, status="error")
