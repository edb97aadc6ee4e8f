"""What is searched for, the same for every search service."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

import msgspec

from engine.refusals import quoted
from events.errors import Refused

__all__ = ("DOMAINS", "SearchKind", "SearchQuery", "checked_domains", "checked_text")

SearchKind: TypeAlias = Literal["web", "image", "news"]

DOMAINS: Final = 20
"""Domains that a query includes or excludes, at most."""

_DOMAIN: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})+")


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One search.

    :ivar count: results wanted
    :ivar page: how many pages of results to pass over
    :ivar options: further parameters, as the service names them
    :ivar only: domains of which results are wanted, theirs below included; empty: all
    :ivar without: domains of which none are
    """

    kind: SearchKind
    text: str
    count: int
    page: int = 0
    options: tuple[tuple[str, str], ...] = ()
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def is_narrowed(self) -> bool:
        """Whether results will be left out, so that more than are wanted should be asked for."""
        return bool(self.only or self.without)

    def operators(self, room: int) -> str:
        """Return the text with as many domains as search services can be asked for, and fit.

        Only one domain to search in can be asked for beside other words; what is not asked for is filtered afterwards.

        :param room: characters of the whole
        """
        wanted = [f"site:{self.only[0]}"] if len(self.only) == 1 else []
        text = self.text
        for term in (*wanted, *(f"-site:{domain}" for domain in self.without)):
            if len(text) + 1 + len(term) <= room:
                text = f"{text} {term}"
        return text


def checked_text(service: str, text: str, longest: int, words: int | None = None) -> str:
    """Return a query's text without spaces at its ends.

    :raises Refused: if there is none, or it is longer than the service takes
    """
    text = " ".join(text.split())
    if not text:
        raise Refused("The query is empty.")
    counted = len(text.split())
    if len(text) > longest or (words is not None and counted > words):
        most = f"{longest} characters" + ("" if words is None else f" and {words} words")
        raise Refused(f"The query has {len(text)} characters and {counted} words; {service} takes {most}. Shorten it.")
    return text


def checked_domains(domains: tuple[str, ...]) -> tuple[str, ...]:
    """Return domains in lower case, without ``www.``, each once. :raises Refused: if one is none"""
    kept: dict[str, None] = {}
    for domain in domains:
        bare = domain.strip().lower().removeprefix("*.").removeprefix("www.").rstrip(".")
        if not _DOMAIN.fullmatch(bare):
            raise Refused(f"{quoted(domain)} is no domain; give it like example.org, without http:// and path.")
        kept[bare] = None
    return tuple(kept)
