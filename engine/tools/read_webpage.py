"""``read_webpage``: the text of a page, or of a document, on the public web."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from engine.action_entry import action_definition, text_definition, whole_number_definition
from engine.contract import Tool, ToolResult
from engine.text_fence import marked
from events.errors import Refused

__all__ = ("ReadWebpage",)

_MEGABYTE: Final = 1024 * 1024
_LIMIT: Final = 20_000
_MOST: Final = 60_000
_LAST: Final = 2_000_000
_LONGEST_URL: Final = 8_000
_LONGEST_FIND: Final = 200


class ReadWebpage(Tool):
    """Fetches a page from a public address and returns its text, marked as not to be trusted."""

    name = "read_webpage"
    display_name = "Read webpage"
    description = "Fetch a page from the web and read its text: articles, JSON, PDFs, office documents."
    default_on = True
    effect = "read"
    idempotent = True
    timeout = 60.0
    limits: ClassVar[tuple[str, ...]] = (
        "10 MB per page, decoded; 25 s to fetch it, 25 s to read it",
        "5 redirects, each checked as the first address was",
        f"{_LIMIT:,} characters at once, {_MOST:,} if asked for; of each page the first {_LAST:,}",
        "20 places of a text that is looked for; 1,000 links",
        "1 GiB of memory to read a page; office documents that expand to 200 MB",
        "a page is kept for 300 s, for reading on in it",
    )
    errors: ClassVar[tuple[str, ...]] = (
        "Error: URL parameter is missing.",
        "Error: URL validation failed - ...",
        "Error fetching URL u: ...",
        "Error: URL responded with a redirect but no target location.",
        "Error: URL returned content type 'x', which is no text.",
        "Error: URL returned binary content, which cannot be read as text.",
        "Error: URL returned a PDF, which cannot be read: ...",
        "Error: The page is too large to read (over 10 MB).",
        "Error: The page has N characters; offset M is past its end.",
    )

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        """Fetch and read; whatever goes wrong with the page is an error result."""
        # Imported here: the HTTP client is a tenth of a second that the catalogue need not cost.
        from engine.net.errors import NetError

        if action_name != "read_webpage":
            return _failure(f"Error: Unknown action '{action_name}'. There is: read_webpage.")
        url = kwargs.get("url")
        if not isinstance(url, str) or not url.strip():
            return _failure("Error: URL parameter is missing.")
        try:
            return await self._read(url.strip(), kwargs)
        except NetError as error:
            return _failure(self._net_error(url.strip(), error))
        except Refused as error:
            return _failure(f"Error: {error}")

    def preview_request(self, action_name: str, arguments: dict[str, Any]) -> str:
        """Return the request that a call would send. :raises Refused: if none would be sent"""
        from engine.web.reading import request_of

        if action_name != "read_webpage" or not isinstance(arguments.get("url"), str):
            raise Refused("There is read_webpage, which takes a url.")
        return f"{request_of(self.scope.services, arguments['url'].strip())}\n"

    async def _read(self, url: str, kwargs: dict[str, Any]) -> str:
        from engine.remote.given import Given
        from engine.web.excerpt import excerpt, places
        from engine.web.reading import Wanted, read_page

        given = Given(kwargs)
        offset, limit = given.whole("offset", 0, 0, _LAST), given.whole("limit", _LIMIT, 1, _MOST)
        find = given.text("find", "", _LONGEST_FIND).strip()
        links, whole = given.flag("links"), given.flag("whole_page")
        wanted = Wanted(url, self.scope.user_id, whole)
        page = await read_page(self.scope.services, wanted, again=not (offset or find or links))
        document = page.document
        text = "\n".join(f"- [{link.text}]({link.url})" for link in document.links) if links else document.text
        part = places(text, find, offset) if find else excerpt(text, offset, limit)
        about = [
            f"URL: {page.url}",
            f"Read as: {'links' if links else document.form}",
            part.said + (" The page goes on after that, unread." if document.cut and not links else ""),
        ]
        head = "" if offset or find or links else _stated(document)
        return _fenced(about, head + part.text, "(nothing was found)" if find else "(the page has no text)")

    def _net_error(self, url: str, error: Exception) -> str:
        from engine.net.errors import ResponseTooLarge, UnsafeUserUrlError
        from engine.web.reading import LARGEST

        if isinstance(error, UnsafeUserUrlError):
            return f"Error: URL validation failed - {error}"
        if isinstance(error, ResponseTooLarge):
            largest = min(LARGEST, self.scope.services.net.largest)
            return f"Error: The page is too large to read (over {largest // _MEGABYTE} MB)."
        said = str(error)
        if "redirect but no target" in said:
            return f"Error: URL {said.removeprefix('it ')}."
        return f"Error fetching URL {url.partition('?')[0]}: {said}"

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the one action."""
        return [
            action_definition(
                "read_webpage",
                "Fetch a web page, PDF or office document and return its title and text. Public http(s) addresses "
                "only. Say which address each fact is from.",
                {
                    "url": text_definition("The page's address, with http(s)://.", _LONGEST_URL),
                    "offset": {
                        **whole_number_definition("From which character of the text on.", 0, _LAST),
                        "default": 0,
                    },
                    "limit": {
                        **whole_number_definition("How many characters of the text.", 1, _MOST),
                        "default": _LIMIT,
                    },
                    "find": text_definition("Only the places where this stands, with their offsets.", _LONGEST_FIND),
                    "links": _flag("List the page's links instead of its text."),
                    "whole_page": _flag("All that is on the page, its navigation too, not the article alone."),
                },
                "url",
                effect="read",
                idempotent=True,
            )
        ]

    def get_config_requirements(self) -> dict[str, Any]:
        """Return no settings."""
        return {}


def _flag(description: str) -> dict[str, Any]:
    return {"type": "boolean", "description": description, "default": False}


def _stated(document: Any) -> str:
    """Return what a page says of itself, a line each; it is the page's word, so it stands within the marks."""
    stated = {"Title": document.title, "Author": document.author, "Date": document.date}
    lines = [f"{name}: {' '.join(value.split())}\n" for name, value in stated.items() if value.strip()]
    return "".join([*lines, "\n"]) if lines else ""


def _fenced(about: list[str], text: str, nothing: str) -> str:
    return "\n".join([*about, marked(text.rstrip() or nothing, "is the content of a web page")])


def _failure(text: str) -> ToolResult:
    return ToolResult(text, status="error")
