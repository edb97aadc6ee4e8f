"""``telegram``: messages of a bot to the chats that a row's owner configured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Final

from anyio import to_thread

from engine.action_entry import action_definition, text_definition
from engine.contract import Tool, ToolContext, ToolResult
from engine.refusals import quoted
from events.errors import Refused

__all__ = ("Telegram",)

_SERVER: Final = "https://api.telegram.org"
_TOKEN: Final = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{10,128}")
_CHAT: Final = re.compile(r"-?[0-9]{1,20}|@[A-Za-z0-9_]{4,64}")
_IMAGE: Final = re.compile(r"https?://[^\s\x00-\x1f/@]+(/[^\s\x00-\x1f]*)?")
_LONGEST: Final = 4096
_CAPTION: Final = 1024
_PARTS: Final = 10
_PER_RUN: Final = 20
_SECONDS: Final = 55.0
_ACTIONS: Final = {"telegram_send_message": "sendMessage", "telegram_send_image": "sendPhoto"}


class Telegram(Tool):
    """Sends texts, in several messages where one would be too long, and images by their address.

    The token stands in the URL of every request: nothing that a call leaves behind holds a URL.
    """

    name = "telegram"
    display_name = "Telegram"
    description = "Send messages and images to the configured Telegram chat."
    timeout = 60.0
    limits: ClassVar[tuple[str, ...]] = (
        f"{_LONGEST:,} UTF-16 units per message; longer texts are sent as several, at most {_PARTS}",
        f"{_CAPTION:,} UTF-16 units per caption",
        f"{_PER_RUN} messages per run, unless the row says otherwise",
    )
    errors: ClassVar[tuple[str, ...]] = (
        "Message not sent: Telegram responded with HTTP status 400: Bad Request: chat not found.",
        "N of M messages sent, then: ...",
        "Message not sent: this run has sent N of at most M messages, ...",
        'The chat "..." is none of those the tool may send to.',
    )

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        """Send, and return ``{status_code, message, message_ids}``; what Telegram refuses is an error result."""
        # Imported here: the HTTP client is a tenth of a second that the catalogue need not cost.
        from engine.messaging.run_counts import run_counts, run_of
        from engine.messaging.telegram_bot import TelegramBot
        from engine.remote.exchange import Exchange, seconds_left
        from engine.remote.given import Given, masker_of

        counts, run = self.scope.services.shared(run_counts), run_of(self.scope, context)
        try:
            # In a thread: Markdown can be such that reading it takes a second.
            asked = partial(self._requests, action_name, kwargs, _token(self.config))
            requests = await to_thread.run_sync(asked, abandon_on_cancel=True)
            counts.take(run, len(requests), Given(self.config, "setting").whole("max_per_run", _PER_RUN, 1, 1000))
        except Refused as error:
            return ToolResult({"status_code": None, "message": str(error)}, status="error")
        # What stands after the colon is the secret; whoever splits the token would show it alone.
        secret = {"secret": _token(self.config).partition(":")[2]}
        masker = masker_of(self.config, self.get_config_requirements()).knowing(secret)
        bot = TelegramBot(Exchange(self.scope.services, "Telegram", masker, seconds_left(context, _SECONDS)))
        sent = await bot.sent(requests)
        counts.give_back(run, len(requests) - len(sent.message_ids))
        if sent.status is not None:
            context.annotate("http.response.status_code", sent.status)
        done = "Image sent" if _method(action_name) == "sendPhoto" else "Message sent"
        return sent.result(done, len(requests))

    def preview_request(self, action_name: str, arguments: dict[str, Any]) -> str:
        """Return the requests that a call would send, the token masked. :raises Refused: if none would be sent"""
        from engine.remote.request import MASK

        return "\n".join(request.preview() for request in self._requests(action_name, arguments, MASK))

    def _requests(self, action_name: str, kwargs: dict[str, Any], token: str) -> list[Any]:
        from engine.remote.given import Given
        from engine.remote.request import RemoteRequest, service_address

        method = _method(action_name)
        given = Given(kwargs)
        chat = _chat(self.config, given.text("chat_id", ""))
        bodies = _photo(given) if method == "sendPhoto" else _messages(given)
        url = f"{service_address(self.config, 'server', _SERVER)}/bot{token}/{method}"
        return [RemoteRequest.post_json(url, {"chat_id": chat, **body}) for body in bodies]

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the two actions."""
        chat = text_definition("One of the chats that the owner allows; the configured one where it is left out.", 65)
        return [
            action_definition(
                "telegram_send_message",
                "Send a text to the owner's Telegram chat; a long one is sent as several messages.",
                {
                    "text": {**text_definition("The text.", _LONGEST * _PARTS), "minLength": 1},
                    "parse_mode": text_definition(
                        "Markdown: what the text marks as bold, code or a link is shown so. Left out: the text is "
                        "shown as it is.",
                        choices=("Markdown",),
                    ),
                    "chat_id": chat,
                },
                "text",
            ),
            action_definition(
                "telegram_send_image",
                "Send an image that is on the public web to the owner's Telegram chat.",
                {
                    "image_url": text_definition("The image's http(s) address; Telegram fetches it.", 2000),
                    "caption": text_definition("A text below it.", _CAPTION),
                    "chat_id": chat,
                },
                "image_url",
            ),
        ]

    def get_config_requirements(self) -> dict[str, Any]:
        """Return whose bot it is, and to which chats it may send."""
        return {
            "token": {"type": "string", "required": True, "secret": True, "description": "The bot's token."},
            "chat_id": {
                "type": "string",
                "required": True,
                "description": "The chat: its number, or @name of a channel.",
            },
            "chats": {
                "type": "array",
                "required": False,
                "description": "Further chats that a call may name, by number or @name.",
            },
            "server": {"type": "string", "required": False, "default": _SERVER, "description": "The API's address."},
            "max_per_run": {
                "type": "integer",
                "required": False,
                "minimum": 1,
                "maximum": 1000,
                "default": _PER_RUN,
                "description": "Messages that one run may send.",
            },
        }


def _method(action_name: str) -> str:
    method = _ACTIONS.get(action_name) or _ACTIONS.get(f"telegram_{action_name}")
    if method is None:
        raise Refused(f"Unknown action: {action_name}. There are: {', '.join(_ACTIONS)}.")
    return method


def _token(config: Mapping[str, Any]) -> str:
    token = config.get("token")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise Refused("The tool's token is missing, or no token of a Telegram bot: its owner must set it.")
    return token


def _chat(config: Mapping[str, Any], named: str) -> str:
    """Return the chat to send to. :raises Refused: if there is none, or it is not one of the owner's"""
    chats = [str(chat) for chat in (config.get("chat_id"), *(config.get("chats") or ())) if chat not in (None, "")]
    if not chats:
        raise Refused("The tool has no chat to send to: its owner must set chat_id.")
    chat = named or chats[0]
    if chat not in chats:
        raise Refused(f"The chat {quoted(chat)} is none of those the tool may send to.")
    if not _CHAT.fullmatch(chat):
        raise Refused(f"The chat {quoted(chat)} is neither a number nor the @name of a channel.")
    return chat


def _messages(given: Any) -> list[dict[str, Any]]:
    from engine.messaging.markdown import rendered
    from engine.messaging.parts import parted

    text: str = given.text("text")
    spans: list[dict[str, Any]] = []
    if given.choice("parse_mode", "", "Markdown"):
        text, spans = rendered(text)
    parts = parted(text, _LONGEST, spans)
    if not parts:
        raise Refused("The text has nothing to see.")
    if len(parts) > _PARTS:
        raise Refused(f"The text would be {len(parts)} messages; at most {_PARTS} are sent. Shorten it.")
    return [{"text": part, **({"entities": entities} if entities else {})} for part, entities in parts]


def _photo(given: Any) -> list[dict[str, Any]]:
    from engine.messaging.parts import units

    url = given.text("image_url", longest=2000).strip()
    if not _IMAGE.fullmatch(url):
        raise Refused('"image_url" must be an http(s) address on the public web, without user and password.')
    caption = given.text("caption", "")
    if units(caption) > _CAPTION:
        raise Refused(f"The caption has {units(caption):,} UTF-16 units; at most {_CAPTION:,} are taken.")
    return [{"photo": url, **({"caption": caption} if caption.strip() else {})}]
