"""``duckduckgo``: searches of the web, of images and of news without a key."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, ClassVar, Final

from engine.action_entry import action_definition, text_definition, whole_number_definition
from engine.contract import Tool, ToolContext
from engine.services import Services
from events.errors import Refused

__all__ = ("DuckDuckGo",)

_ADDRESS: Final = "https://duckduckgo.com"
_HTML_ADDRESS: Final = "https://html.duckduckgo.com"
_SECONDS: Final = 15
_LEVELS: Final = ("moderate", "strict", "off")
_KINDS: Final = {"ddg_web_search": "web", "ddg_image_search": "image", "ddg_news_search": "news"}
_OPTIONS: Final = {
    "ddg_web_search": ("region", "timelimit"),
    "ddg_image_search": ("region",),
    "ddg_news_search": ("region", "timelimit"),
}
_RESULTS: Final = {"ddg_web_search": 20, "ddg_image_search": 50, "ddg_news_search": 20}
_COUNT: Final = 5
_MISSING: Final = "The package ddgs is not installed: its operator must install calljournal[search]."


class DuckDuckGo(Tool):
    """Searches and returns ``{status_code, provider, results, message}``.

    What to request, and how to read what comes back, the ddgs library knows; the requests go the engine's one way out.
    """

    name = "duckduckgo"
    display_name = "DuckDuckGo search"
    description = "Search the web, images and news with DuckDuckGo; no key is needed."
    effect = "read"
    idempotent = True
    timeout = 60.0
    untrusted = True
    limits: ClassVar[tuple[str, ...]] = (
        "500 characters per query",
        "20 web results, 20 of news, 50 images per search; 48,000 characters together",
        "1 search per second, of all rows together",
        "the same search is remembered for 60 s",
    )
    errors: ClassVar[tuple[str, ...]] = (
        "The query has N characters and M words; DuckDuckGo takes 500 characters. Shorten it.",
        "DuckDuckGo takes the search for a robot's and asks for a person; try again later, or otherwise.",
        "DuckDuckGo cannot be reached or read: ...",
        "DuckDuckGo has failed 5 times in a row; it is asked again in N s.",
    )

    @classmethod
    def unavailable(cls, _services: Services) -> str | None:
        """Return that the library is missing; None: it is there."""
        return _MISSING if find_spec("ddgs") is None else None

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        """Search; that there is nothing is no error."""
        # Imported here: the HTTP client is a tenth of a second that the catalogue need not cost.
        from engine.api.masking import Masker
        from engine.remote.exchange import seconds_left
        from engine.remote.given import Given
        from engine.search.attempts import Attempt, search_result
        from engine.search.tool_calls import failed

        try:
            attempt = Attempt("duckduckgo", self._service(), self._query(action_name, kwargs))
            seconds = Given(self.config, "setting").whole("timeout", _SECONDS, 1, 300)
        except Refused as error:
            return failed(error)
        return await search_result(self.scope.services, [attempt], Masker({}), seconds_left(context, float(seconds)))

    def preview_request(self, action_name: str, arguments: dict[str, Any]) -> str:
        """Return the requests that a call would send. :raises Refused: if none would be sent"""
        shown: str = self._service().preview(self._query(action_name, arguments))
        return shown

    def _service(self) -> Any:
        from engine.remote.given import Given
        from engine.remote.request import service_address

        try:
            from engine.search.duckduckgo_search import DuckDuckGoSearch
        except ImportError:
            raise Refused(_MISSING) from None
        return DuckDuckGoSearch(
            address=service_address(self.config, "base_url", _ADDRESS),
            html_address=service_address(self.config, "html_base_url", _HTML_ADDRESS),
            safesearch=Given(self.config, "setting").choice("safesearch", _LEVELS[0], *_LEVELS),
        )

    def _query(self, action_name: str, kwargs: dict[str, Any]) -> Any:
        from engine.remote.given import Given
        from engine.search.tool_calls import query_of

        if action_name not in _KINDS:
            raise Refused(f"Unknown action: {action_name}. There are: {', '.join(_KINDS)}.")
        return query_of(
            "DuckDuckGo",
            _KINDS[action_name],  # type: ignore[arg-type]
            Given(kwargs),
            self.config,
            count=("max_results", _COUNT, _RESULTS[action_name]),
            longest=500,
            options=_OPTIONS[action_name],
        )

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the three actions."""
        return [
            _definition("ddg_web_search", "Search the web", "d a day, w a week, m a month, y a year", "dwmy"),
            _definition("ddg_image_search", "Search images"),
            _definition("ddg_news_search", "Search news", "d a day, w a week, m a month", "dwm"),
        ]

    def get_config_requirements(self) -> dict[str, Any]:
        """Return what the owner may set for all searches."""
        from engine.search.tool_calls import domain_requirements

        return {
            "safesearch": {
                "type": "string",
                "required": False,
                "enum": list(_LEVELS),
                "default": _LEVELS[0],
                "description": "What is left out.",
            },
            **domain_requirements(),
            "timeout": {
                "type": "integer",
                "required": False,
                "minimum": 1,
                "maximum": 300,
                "default": _SECONDS,
                "description": "Seconds for a search, within the 60 that a call has.",
            },
            "base_url": {"type": "string", "required": False, "default": _ADDRESS, "description": "Its address."},
            "html_base_url": {
                "type": "string",
                "required": False,
                "default": _HTML_ADDRESS,
                "description": "The address of its plain pages, where web results are.",
            },
        }


def _definition(name: str, purpose: str, times: str = "", letters: str = "") -> dict[str, Any]:
    from engine.search.tool_calls import domain_definitions

    properties: dict[str, Any] = {
        "query": {**text_definition("The query.", 500), "minLength": 1},
        "max_results": {**whole_number_definition("How many results.", 1, _RESULTS[name]), "default": _COUNT},
        "region": {
            **text_definition("Country and language, like us-en; wt-wt for none.", 5),
            "pattern": "^[a-z]{2}-[a-z]{2}$",
        },
    }
    if letters:
        properties["timelimit"] = text_definition(f"How old at most: {times}.", choices=list(letters))
    said = f"{purpose} with DuckDuckGo. Results come with title, address and text; say which address each fact is from."
    return action_definition(
        name, said, {**properties, **domain_definitions()}, "query", effect="read", idempotent=True
    )
