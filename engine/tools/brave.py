"""``brave``: searches of the web, of images and of news by Brave's search interface."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from engine.action_entry import action_definition, text_definition, whole_number_definition
from engine.contract import Tool, ToolContext, ToolResult
from events.errors import Refused

__all__ = ("Brave",)

_ADDRESS: Final = "https://api.search.brave.com/res/v1"
_SECONDS: Final = 25.0
_LEVELS: Final = ("moderate", "strict", "off")
_COUNTS: Final = {
    "brave_web_search": ("web", 10, 20),
    "brave_image_search": ("image", 5, 100),
    "brave_news_search": ("news", 10, 50),
}
_OPTIONS: Final = {
    "brave_web_search": ("country", "search_lang", "freshness"),
    "brave_image_search": ("country", "search_lang"),
    "brave_news_search": ("country", "search_lang", "freshness"),
}


class Brave(Tool):
    """Searches with the row's token and returns ``{status_code, provider, results, message}``."""

    name = "brave"
    display_name = "Brave search"
    description = "Search the web, images and news with Brave."
    effect = "read"
    idempotent = True
    timeout = 30.0
    untrusted = True
    limits: ClassVar[tuple[str, ...]] = (
        "400 characters and 50 words per query",
        "20 web results, 50 of news, 100 images per search; 48,000 characters together",
        "1 request per second and row, unless the row says otherwise",
        "the same search is remembered for 60 s",
    )
    errors: ClassVar[tuple[str, ...]] = (
        "The query has N characters and M words; Brave takes 400 characters and 50 words. Shorten it.",
        "Brave responded with HTTP status 429: ...",
        "Brave cannot be reached or read: ...",
        "Brave has failed 5 times in a row; it is asked again in N s.",
    )

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        """Search; what Brave refuses is an error result, and that there is nothing is none."""
        # Imported here: the HTTP client is a tenth of a second that the catalogue need not cost.
        from engine.remote.exchange import seconds_left
        from engine.remote.given import masker_of
        from engine.search.attempts import Attempt, search_result
        from engine.search.tool_calls import failed

        try:
            attempts = self._attempts(Attempt("brave", self._service(), self._query(action_name, kwargs)))
        except Refused as error:
            return failed(error)
        masker = masker_of(self.config, self.get_config_requirements())
        result = await search_result(self.scope.services, attempts, masker, seconds_left(context, _SECONDS))
        if isinstance(result, ToolResult) and (status := result.data["status_code"]) is not None:
            context.annotate("http.response.status_code", status)
        return result

    def preview_request(self, action_name: str, arguments: dict[str, Any]) -> str:
        """Return the request that a call would send, its token masked. :raises Refused: if none would be sent"""
        from engine.remote.request import MASK

        shown: str = self._service(MASK).preview(self._query(action_name, arguments))
        return shown

    def _attempts(self, first: Any) -> list[Any]:
        from engine.remote.request import service_address
        from engine.search.attempts import with_duckduckgo

        if self.config.get("fallback") is not True:
            return [first]
        return with_duckduckgo(
            first,
            service_address(self.config, "fallback_url", "https://duckduckgo.com"),
            service_address(self.config, "fallback_html_url", "https://html.duckduckgo.com"),
            first.service.safesearch,
        )

    def _service(self, token: str | None = None) -> Any:
        from engine.api.headers import header_value
        from engine.remote.given import Given
        from engine.remote.request import service_address
        from engine.search.brave_search import BraveSearch

        config = Given(self.config, "setting")
        if token is None and not config.has("token"):
            raise Refused("The tool has no token: its owner must set it.")
        address = service_address(self.config, "base_url", _ADDRESS)
        return BraveSearch(
            place=("brave", self.scope.owner, self.scope.tool_id, address),
            token=token or header_value("X-Subscription-Token", config.text("token", longest=500)),
            address=address,
            safesearch=config.choice("safesearch", _LEVELS[0], *_LEVELS),
            per_second=config.whole("requests_per_second", 1, 1, 100),
        )

    def _query(self, action_name: str, kwargs: dict[str, Any]) -> Any:
        from engine.remote.given import Given
        from engine.search.brave_search import LONGEST, WORDS
        from engine.search.tool_calls import query_of

        if action_name not in _COUNTS:
            raise Refused(f"Unknown action: {action_name}. There are: {', '.join(_COUNTS)}.")
        kind, default, most = _COUNTS[action_name]
        return query_of(
            "Brave",
            kind,  # type: ignore[arg-type]
            Given(kwargs),
            self.config,
            count=("count", default, most),
            longest=LONGEST,
            words=WORDS,
            options=_OPTIONS[action_name],
        )

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the three actions."""
        return [
            _definition("brave_web_search", "Search the web", _freshness(), _offset()),
            _definition("brave_image_search", "Search images"),
            _definition("brave_news_search", "Search news", _freshness(), _offset()),
        ]

    def get_config_requirements(self) -> dict[str, Any]:
        """Return the token, and what the owner may set for all searches."""
        from engine.search.tool_calls import domain_requirements

        return {
            "token": {"type": "string", "required": True, "secret": True, "description": "The subscription token."},
            "safesearch": {
                "type": "string",
                "required": False,
                "enum": list(_LEVELS),
                "default": _LEVELS[0],
                "description": "What is left out; images know no moderate, so that is strict.",
            },
            **domain_requirements(),
            "requests_per_second": {
                "type": "integer",
                "required": False,
                "minimum": 1,
                "maximum": 100,
                "default": 1,
                "description": "What the subscription allows.",
            },
            "base_url": {
                "type": "string",
                "required": False,
                "default": _ADDRESS,
                "description": "The interface's address.",
            },
            "fallback": {
                "type": "boolean",
                "required": False,
                "default": False,
                "description": "Whether DuckDuckGo is asked where Brave does not answer.",
            },
            "fallback_url": {"type": "string", "required": False, "description": "DuckDuckGo's address."},
            "fallback_html_url": {"type": "string", "required": False, "description": "Its plain pages' address."},
        }


def _definition(name: str, purpose: str, *further: dict[str, Any]) -> dict[str, Any]:
    from engine.search.tool_calls import domain_definitions

    _, default, most = _COUNTS[name]
    properties: dict[str, Any] = {
        "query": {**text_definition("The query: at most 400 characters and 50 words.", 400), "minLength": 1},
        "count": {**whole_number_definition("How many results.", 1, most), "default": default},
        "country": {**text_definition("Two letters, or ALL.", 3), "pattern": "^([A-Za-z]{2}|ALL)$"},
        "search_lang": {
            **text_definition("The results' language: two letters, like en.", 10),
            "pattern": "^[a-z]{2}(-[a-z]{2,4})?$",
        },
    }
    for each in further:
        properties |= each
    said = f"{purpose} with Brave. Results come with title, address and text; say which address each fact is from."
    return action_definition(
        name, said, {**properties, **domain_definitions()}, "query", effect="read", idempotent=True
    )


def _freshness() -> dict[str, Any]:
    return {
        "freshness": {
            **text_definition("How old: pd a day, pw a week, pm a month, py a year, or 2026-01-01to2026-01-31.", 22),
            "pattern": "^(pd|pw|pm|py|[0-9]{4}-[0-9]{2}-[0-9]{2}to[0-9]{4}-[0-9]{2}-[0-9]{2})$",
        }
    }


def _offset() -> dict[str, Any]:
    return {"offset": {**whole_number_definition("How many pages of results to pass over.", 0, 9), "default": 0}}
