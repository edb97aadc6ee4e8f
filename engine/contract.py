"""The contract every tool keeps: ``Tool``, and what it is given (DESIGN 6, Tool contract)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, ClassVar, Literal, Protocol

import msgspec

from engine.services import Services
from events.errors import Refused
from events.types import Effect, ResultStatus

__all__ = ("AskAgain", "Attachment", "InputRequired", "Scope", "Tool", "ToolContext", "ToolResult", "ToolStore")


class ToolResult(msgspec.Struct, frozen=True):
    """A tool's result with its in-band status said outright, where a plain value would not say it."""

    data: Any
    status: ResultStatus = "completed"


class InputRequired(msgspec.Struct, frozen=True):
    """Returned by a tool that cannot go on without input: the call waits, and is run anew once there is an answer.

    :ivar request: what is asked, JSON content; it comes back beside the answer, so it may carry a server's state
    :ivar reason: for people
    """

    request: Any
    reason: str = "its tool asks for input"


class AskAgain(Refused):
    """Raised by ``preview_decision``: what was approved, or shown to the model, is not what would run now.

    A person must look at it, whatever is allowed otherwise; the text says why, to them.
    """


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A file that came with the turn."""

    id: str
    filename: str | None = None
    mime_type: str | None = None
    ref: str | None = None


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Who a tool instance is for; instances are cached by it.

    :ivar user_id: who calls
    :ivar owner: whose row (and whose credentials) it is
    :ivar tool_id: the row's id
    :ivar services: what the engine's tools share; they are no part of what an instance is cached by
    :ivar actions_metadata: what the row keeps of its tool's actions; None: nothing
    """

    user_id: str | None
    owner: str | None
    tool_id: str
    services: Services = msgspec.field(default_factory=Services)
    actions_metadata: list[dict[str, Any]] | None = None


class ToolStore(Protocol):
    """A tool's way to the journal's database (SQLAlchemy Core); tenant and row id are bound beforehand."""

    @property
    def tenant(self) -> str:
        """The encoded tenant column's value (see ``events.keys.tenant_column``)."""
        ...

    @property
    def tool_id(self) -> str:
        """The tool row's id."""
        ...

    @property
    def dialect(self) -> str:
        """The database's: ``sqlite`` or ``postgresql``."""
        ...

    async def read(self, statement: Any) -> Sequence[Any]:
        """Run one select and return its rows. :raises LogUnavailable: if the database cannot be read"""
        ...

    async def write(self, *statements: Any) -> list[int]:
        """Run statements in one transaction through the log's writer and return the rows each touched.

        :raises LogUnavailable: if they were not written
        """
        ...


def _unseen(name: str, value: str | bool | int | float) -> None:
    """Take no note: the call has no span."""


class ToolContext(msgspec.Struct, kw_only=True):
    """What differs from call to call: never part of the (cached) instance.

    ``deadline`` is a moment in UTC; ``idempotency_key`` is the journal key, the same on every run of one call.
    ``progress`` takes (done, total or None, message) and may be called any number of times.
    ``answer`` is what came back for an ``InputRequired``, and ``request`` what had been asked.
    ``annotate`` takes (name, value): an attribute of the call's span, never a secret.
    """

    user_id: str | None
    message_id: str | None
    call_id: str
    conversation_id: str | None
    run_id: str | None
    agent_id: str | None
    attachments: tuple[Attachment, ...]
    idempotency_key: str
    deadline: datetime
    progress: Callable[[float, float | None, str], None]
    store: ToolStore
    annotate: Callable[[str, str | bool | int | float], None] = _unseen
    request: Any = None
    answer: Any | msgspec.UnsetType = msgspec.UNSET


class Tool(ABC):
    """A tool: three methods, and class attributes that say everything else about it once.

    ``internal``: not in the catalogue, loadable by name. ``user_scoped``: a call without a user is Failed(load).
    ``default_on``: has a synthesised default row. ``headless_allowed``: may be in a run nobody watches.
    ``needs_row``: its storage refers to a real row, so it cannot be a default. ``cacheable``: one instance may serve
    several calls. ``actions_in_config``: its actions are its row's ``config["actions"]``. ``live_gate``: whether
    ``preview_decision`` adds to the row's flag or replaces it. ``effect``: what a call does to the world (unknown =
    write). ``idempotent``: running it twice is as good as once. ``timeout``: seconds. ``serial``: of the parallel calls
    of one turn, those of one row run one after another, in the order in which the model made them. ``limits`` and
    ``errors``: for people, a sentence each: what it holds to, and what it answers where it cannot do what was asked.
    ``untrusted``: others write what it returns, and it sets no marks around that itself: a model is told its results
    between marks.

    A tool may have ``preview_decision(action_name, arguments)``, sync or async: asked at the moment of the call, with
    what the action would receive, it returns ``(needs_approval, denylisted)``, two booleans. Denylisted calls need a
    person each time, whatever is allowed otherwise. Raising, or taking longer than ten seconds, counts as that;
    raising ``AskAgain`` tells the person why. It may have ``preview_request(action_name, arguments) -> str``: what the
    call would send out, without its secrets; it sends nothing, and raises ``Refused`` where the call would be refused.
    One with ``actions_in_config`` may have a class method ``completed_definition(definition) -> definition``: a
    configured action as it is to be read, e.g. with an argument more.
    It may have ``opening(context) -> str | None``, sync or async: what a model should be told at the start of a
    conversation, e.g. what there is to look at; None: nothing. It is asked only for turns in which every action of it
    that reads would run without a person. There is no call then (``call_id`` and ``idempotency_key`` are empty), and
    its store reads only. See ``engine.openings``.
    One that keeps things of users in tables of the journal's database may have a class method ``keeping() -> Keeping``
    that says where (``engine.keeping``): then they can be listed, exported and erased with ``engine.kept``.
    And it may have a class method ``unavailable(services) -> str | None``, sync or async, asked at most every 30 s: why
    it cannot work at present, for people. While it says so, raises, or takes longer than a second, it is in no turn.
    """

    name: ClassVar[str] = ""
    display_name: ClassVar[str] = ""
    description: ClassVar[str] = ""
    internal: ClassVar[bool] = False
    user_scoped: ClassVar[bool] = False
    default_on: ClassVar[bool] = False
    headless_allowed: ClassVar[bool] = True
    needs_row: ClassVar[bool] = False
    cacheable: ClassVar[bool] = True
    actions_in_config: ClassVar[bool] = False
    live_gate: ClassVar[Literal["adds", "replaces"]] = "adds"
    effect: ClassVar[Effect] = "write"
    idempotent: ClassVar[bool] = False
    timeout: ClassVar[float] = 120.0
    serial: ClassVar[bool] = False
    untrusted: ClassVar[bool] = False
    limits: ClassVar[tuple[str, ...]] = ()
    errors: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: dict[str, Any], scope: Scope) -> None:
        """Keep the row's configuration (credentials merged in) and who the instance is for."""
        self.config = config
        self.scope = scope

    @abstractmethod
    def execute_action(self, action_name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Run an action and return its result: JSON content, or anything with a JSON form.

        ``ToolResult`` says its status outright, ``InputRequired`` that the call must wait.

        Sync or async; a sync one runs in a worker thread. Declare ``(self, action_name, context, /, **kwargs)`` to
        be given the call's ``ToolContext``. An exception becomes Failed(exception).
        """

    @abstractmethod
    def get_actions_metadata(self) -> Any:
        """Return the actions: ``[{"name", "description", "parameters": JSON Schema, ...}]``; may be async.

        An entry may carry ``effect``, ``idempotent``, ``timeout`` and ``require_approval``: they override the class.
        """

    @abstractmethod
    def get_config_requirements(self) -> dict[str, Any]:
        """Return what a row of this tool must be configured with: ``{key: {"type", "required", "secret", ...}}``.

        Asked with the configuration that is to be stored, on which it may depend; see docs/tools.md. A tool may have
        ``config_problems()`` besides: asked with the secrets too, it returns what is wrong, as a list of texts.
        """
