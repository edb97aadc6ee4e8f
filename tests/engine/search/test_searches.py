"""Searches: what is remembered and for how long, when a service is left alone, which results are one page."""

from __future__ import annotations

from collections.abc import Hashable

import anyio
import pytest

from engine.api.masking import Masker
from engine.pacing.pace import Pace
from engine.pacing.rate import Rate, TooSoon
from engine.remote.exchange import Exchange
from engine.remote.service_error import ServiceError
from engine.search.query import SearchQuery, checked_domains
from engine.search.result import SearchResult, plain, tidied
from engine.search.searches import REMEMBERED, Searches
from engine.services import Services
from events.errors import Refused

__all__ = ()

pytestmark = pytest.mark.anyio


class Clock:
    """Goes as far as it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Scripted:
    """A search service that does what comes next."""

    name = "Scripted"
    per_second = 1000

    def __init__(self, place: Hashable, *outcomes: ServiceError | list[SearchResult]) -> None:
        self.place = place
        self.outcomes = list(outcomes)
        self.asked = 0

    async def found(self, query: SearchQuery, exchange: Exchange) -> list[SearchResult]:
        self.asked += 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, ServiceError):
            raise outcome
        return outcome

    def preview(self, query: SearchQuery) -> str:
        return ""


def query(text: str = "x", **more: object) -> SearchQuery:
    """Return a query."""
    return SearchQuery(kind="web", text=text, **{"count": 10, **more})  # type: ignore[arg-type]


def page(url: str, title: str = "T") -> SearchResult:
    """Return a result."""
    return SearchResult(title=title, url=url, snippet="", published=None, source="")


async def asked(searches: Searches, service: Scripted, wanted: SearchQuery, seconds: float = 5.0) -> list[str] | str:
    """Return the addresses that a search brings, or why there are none."""
    exchange = Exchange(Services(), "Scripted", Masker({}), seconds)
    try:
        return [each.url for each in await searches.results(service, wanted, exchange)]
    except ServiceError as error:
        return str(error)


async def test_a_search_is_remembered_for_a_moment_by_all_that_it_is() -> None:
    clock = Clock()
    searches, service = Searches(clock), Scripted("row 1", [page("https://a.example/")])
    variants = (
        query(),
        query(count=9),
        query(page=1),
        query(options=(("region", "us-en"),)),
        query(only=("a.example",)),
    )
    for _ in range(2):
        for wanted in variants:
            assert await asked(searches, service, wanted) == ["https://a.example/"]
    assert service.asked == len(variants)
    other = Scripted("row 2", [page("https://b.example/")])
    assert await asked(searches, other, query()) == ["https://b.example/"]
    clock.now += REMEMBERED - 1
    await asked(searches, service, query())
    assert service.asked == len(variants)
    clock.now += 1
    await asked(searches, service, query())
    assert service.asked == len(variants) + 1
    assert repr(searches) == "<Searches: 1 remembered>"


async def test_nothing_found_is_remembered_and_a_failure_is_not() -> None:
    searches = Searches(Clock())
    service = Scripted("row", ServiceError("down", 500), [])
    assert await asked(searches, service, query()) == "down"
    assert await asked(searches, service, query()) == []
    assert await asked(searches, service, query()) == []
    assert service.asked == 2


async def test_which_failures_close_a_service_off() -> None:
    for status, closes in (
        (None, True),
        (429, True),
        (500, True),
        (202, True),
        (400, False),
        (401, False),
        (422, False),
    ):
        searches, service = Searches(Clock()), Scripted(("row", status), ServiceError("no", status))
        for place in range(5):
            assert await asked(searches, service, query(f"q{place}")) == "no"
        said = await asked(searches, service, query("again"))
        assert (service.asked == 5) is closes
        assert ("has failed 5 times in a row" in said) is closes
    failure = ServiceError("no", 500)
    four = Scripted("row", *[failure] * 4, [], *[failure] * 4, [])
    searches = Searches(Clock())
    for place in range(11):
        await asked(searches, four, query(f"q{place}"))
    assert four.asked == 11


async def test_a_cancelled_search_is_neither_a_failure_nor_a_success() -> None:
    searches = Searches(Clock())
    failing = Scripted("row", ServiceError("no", 500))
    for place in range(4):
        await asked(searches, failing, query(f"q{place}"))

    class Endless(Scripted):
        async def found(self, query: SearchQuery, exchange: Exchange) -> list[SearchResult]:
            await anyio.sleep_forever()
            raise AssertionError

    with anyio.move_on_after(0.05) as scope:
        await asked(searches, Endless("row", []), query("cancelled"))
    assert scope.cancelled_caught
    assert await asked(searches, failing, query("fifth")) == "no"
    assert "5 times in a row" in await asked(searches, failing, query("sixth"))


async def test_a_search_whose_turn_does_not_come_in_time_is_not_made() -> None:
    searches, service = Searches(), Scripted("slow", [])
    service.per_second = 1
    for seconds, said in ((5.0, []), (0.2, "Too many searches are waiting for their turn; try again in a moment.")):
        assert await asked(searches, service, query(f"{seconds}"), seconds) == said
    assert service.asked == 1


async def test_a_turn_that_would_come_too_late_is_not_waited_for() -> None:
    pace, second = Pace(), Rate(calls=1, seconds=1, burst=1)
    await pace.turn("a", second, 5)
    began = anyio.current_time()
    with pytest.raises(TooSoon, match=r"not for another (1|0\.\d+) s"):
        await pace.turn("a", second, 0.5)
    await pace.turn("b", second, 0.5)
    assert anyio.current_time() - began < 0.5
    with anyio.move_on_after(0.02) as scope:
        await pace.turn("a", second, 5)
    assert scope.cancelled_caught


async def test_who_comes_first_is_first_and_who_comes_in_vain_is_told_at_once() -> None:
    pace, rate = Pace(), Rate(calls=20, seconds=1, burst=1)
    passed: list[int] = []
    refused: list[float] = []

    async def come(number: int) -> None:
        began = anyio.current_time()
        try:
            await pace.turn("a", rate, 0.5)
            passed.append(number)
        except TooSoon:
            refused.append(anyio.current_time() - began)

    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(come, number)
            await anyio.lowlevel.checkpoint()
    assert passed == sorted(passed)
    assert 11 <= len(passed) < 20
    assert max(refused) < 0.3


def test_which_results_are_kept() -> None:
    same = (
        "https://www.a.example/p?x=1",
        "http://a.example/p/?x=1#there",
        "https://A.example/p?utm_source=y&x=1&fbclid=2",
    )
    others = ("https://a.example/p?x=2", "https://a.example/P?x=1", "https://b.a.example/p?x=1")
    none = (
        "ftp://a.example/",
        "javascript:alert(1)",
        "https://",
        "",
        f"https://a.example/{'y' * 2000}",
        "https://a\n/",
    )
    found = [page(url) for url in (*same, *others, *none)]
    assert [each.url for each in tidied(found, query())] == [same[0], *others]
    assert [each.url for each in tidied(found, query(count=2))] == [same[0], others[0]]
    assert [each.url for each in tidied(found, query(without=("b.a.example",)))] == [same[0], *others[:2]]
    assert [each.url for each in tidied(found, query(only=("example",)))] == [same[0], *others]
    assert tidied(found, query(only=("xa.example",))) == []
    (only,) = tidied([page("https://a.example/x", "<b>A</b>\x00 &lt;b&gt;\n 1 < 2")], query())
    assert (only.title, only.source) == ("A <b> 1 < 2", "a.example")


def test_texts_and_domains() -> None:
    assert plain("a &amp; b <a href='x'>c</a> 3 < 4 > 2") == "a & b c 3 < 4 > 2"
    assert plain(None) == ""
    assert plain("x" * 50, 10) == "x" * 10 + "..."
    assert checked_domains(("WWW.Example.org", "*.example.org.", "b.example")) == ("example.org", "b.example")
    for wrong in ("example", "http://a.example", "a.example/x", "a b.example", "", "-a.example", "a..example"):
        with pytest.raises(Refused, match="no domain"):
            checked_domains((wrong,))
    assert query(only=("a.example",), without=("b.example", "c.example")).operators(30) == "x site:a.example"
    assert query(only=("a.example", "b.example")).operators(400) == "x"
