"""``Engine``: open one, and one method per verb; each delegates to the file that does it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from types import TracebackType
from typing import Any

import msgspec

from engine.call import ToolCall
from engine.configured_rows import Rows
from engine.context import CallContext
from engine.contract import Tool
from engine.guards import ResultGuard
from engine.kept import Kept
from engine.openings import Openings
from engine.rounds import RoundStatistics
from engine.rows import ToolRow
from engine.rules import Rules
from engine.runtime import Runtime
from engine.schemas import Prepared
from engine.settings import Settings
from engine.spool import SpoolStatistics
from engine.stuck import ReconcileReport
from events.log import EventLog, LogStatistics
from events.types import Approved, Denied, Executed, Failed, Paused, Proposed
from projections.row import AttemptRow

__all__ = ("Engine", "EngineOpening", "EngineStatistics")


class EngineStatistics(msgspec.Struct, frozen=True):
    """A snapshot: the worker's id, its log, calls in flight, what its reconciliations came to, and its spool."""

    worker: str
    log: LogStatistics
    in_flight: int
    reconciled: RoundStatistics
    spool: SpoolStatistics


class Engine:
    """One worker on one journal; made by :meth:`open`.

    :ivar log: the journal's log
    :ivar rules: the operator's rules
    :ivar rows: the tool rows that users keep in the journal
    :ivar kept: what tools keep of users, to list, export and erase
    :ivar openings: ``await openings(context)`` is what its tools want a model to be told as a conversation starts
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.log: EventLog = runtime.log
        self.rules = Rules(runtime.log.store)
        self.rows = Rows(runtime.log.store, runtime.toolsets.tools, is_given=runtime.toolsets.is_given)
        self.kept = Kept(runtime.log.store, runtime.toolsets.tools)
        self.openings = Openings(runtime)
        # Looked up once: an import statement costs each call half a microsecond.
        from engine.execution import execute

        self._execute = execute

    def __repr__(self) -> str:
        return f"<Engine {self._runtime.worker} on {self._runtime.log!r}>"

    @staticmethod
    def open(
        url: str = "sqlite:///journal.db",
        *,
        rows: Sequence[ToolRow] = (),
        tools: Sequence[type[Tool]] = (),
        guards: Sequence[ResultGuard] = (),
        settings: Settings | None = None,
    ) -> EngineOpening:
        """Return an async context manager that opens an engine and closes it.

        :param url: ``sqlite:///path``, ``sqlite://`` (memory), ``postgresql://…``, ``null://`` (stores nothing)
        :param rows: the stored tool rows; default rows come besides
        :param tools: tool classes known besides those that discovery finds
        :param guards: see every result before anybody else does
        :raises LogUnavailable: on entering, if the database cannot be reached
        :raises SchemaMismatch: on entering, if its tables do not fit this release
        :raises Refused: on entering, if the URL, a row or a default tool is not valid
        """
        return EngineOpening(url, tuple(rows), tuple(tools), tuple(guards), settings or Settings())

    def statistics(self) -> EngineStatistics:
        """Return a snapshot."""
        runtime = self._runtime
        return EngineStatistics(
            runtime.worker,
            runtime.log.statistics(),
            len(runtime.flights),
            runtime.rounds.statistics(),
            SpoolStatistics() if runtime.spool is None else runtime.spool.statistics(),
        )

    async def prepare_tools_for_llm(
        self, context: CallContext, family: str = "openai", *, strict: bool = False
    ) -> Prepared:
        """Return the turn's tools as a provider's function definitions (``functions``) and the way back (``names``).

        Prepared once for the same rows; ``encoded`` is the same as bytes for a request's body. With a conversation, its
        log is read: an action keeps the name by which the conversation has called it, and no name means another action.

        :param strict: of openai's families: each function whose schema can be said in their strict form has it
        """
        toolset = await self._runtime.toolsets.resolve(context, now=True)
        if context.conversation_id is None:
            return toolset.prepared(family, strict=strict)
        remembered = await self._runtime.conversations.remembered(context, toolset, anew=True)
        return toolset.prepared(family, strict=strict, remembered=remembered)

    def execute(
        self, call: ToolCall, context: CallContext, prepared: Prepared | None = None, reraise: bool = False
    ) -> AsyncGenerator[Proposed | Paused | Denied | Executed | Failed, None]:
        """Return the stream of a call's events: Proposed, then one of Paused, Denied, Executed, Failed.

        Each is durable before it is yielded. Close the stream (``contextlib.aclosing``) where it may be left early:
        a call that is left does not stay in flight.

        :param prepared: what the model was shown; None: a fresh preparation
        :param reraise: raise what the tool raised, after its Failed
        :raises LogUnavailable: if the proposal cannot be written; then nothing ran
        """
        return self._execute(self._runtime, call, context, prepared, reraise)

    def execute_all(
        self, calls: Sequence[ToolCall], context: CallContext, prepared: Prepared | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[Proposed | Paused | Denied | Executed | Failed]]:
        """Return an async context manager over a turn's parallel calls; entered, it gives their events as they happen.

        Every Proposed is appended, in list order, before any tool runs. A call that waits or was refused holds up no
        other. Left early, it closes whatever still runs.

        :raises LogUnavailable: on entering, if a proposal cannot be written (then nothing ran); at the end of the
            events, if an outcome cannot be
        """
        from engine.parallel import ParallelCalls

        return ParallelCalls(self._runtime, calls, context, prepared)

    async def decide(
        self,
        key: str,
        *,
        approve: bool,
        by: str,
        user_id: str | None,
        comment: str | None = None,
        arguments: dict[str, Any] | None = None,
        remember: timedelta | None = None,
    ) -> Approved | Denied:
        """Allow or reject a call that waits, and return the decision as recorded; nothing runs by it.

        Of several at the same time exactly one is recorded. Past the deadline the answer is Denied(expired).

        :param by: who decides
        :param comment: why; of a rejection the model is told
        :param arguments: run instead of the model's; ``{}`` is an edit too
        :param remember: allow the like of it without asking, for so long
        :raises NotFound: if the tenant has no such call
        :raises Refused: if it does not wait for a decision (the text names its state), or the edit is not valid
        :raises LogUnavailable: if the decision cannot be written
        """
        from engine.decisions import decide

        return await decide(
            self._runtime,
            key,
            approve=approve,
            by=by,
            user_id=user_id,
            comment=comment,
            arguments=arguments,
            remember=remember,
        )

    def resume(
        self, key: str, context: CallContext
    ) -> AsyncGenerator[Proposed | Paused | Denied | Executed | Failed, None]:
        """Return the stream of an approved call that now runs: the one event that this appends, no second Proposed.

        What runs is what was approved. A changed definition asks again (Paused). Of ``context`` only the user and the
        attachments are read. Close the stream where it may be left early, as with :meth:`execute`.

        :raises NotFound: if the tenant has no such call
        :raises Refused: if it is not approved, or another worker was faster; the text names its state
        :raises LogUnavailable: if the claim cannot be written (nothing ran), or the outcome
        """
        from engine.resuming import resume

        return resume(self._runtime, key, context)

    def submit_result(
        self, key: str, result: Any, context: CallContext
    ) -> AsyncGenerator[Proposed | Paused | Denied | Executed | Failed, None]:
        """Return the stream of a call that waited for this: its client's result, or the answer its tool asked for.

        :raises NotFound: if the tenant has no such call
        :raises Refused: if it does not wait for this, or somebody else was faster; the text names its state
        :raises LogUnavailable: if it cannot be written: the call still waits
        """
        from engine.submission import submit_result

        return submit_result(self._runtime, key, result, context)

    async def confirm(self, message_id: str, *, user_id: str | None) -> int:
        """Say that the message carrying its calls' results is stored; return how many calls became confirmed.

        All executed calls of the message in one append, all or none; again: 0.

        :raises LogUnavailable: if it cannot be written
        """
        from engine.confirmation import confirm

        return await confirm(self._runtime, message_id, user_id)

    async def tool_results(
        self,
        message_id: str,
        *,
        user_id: str | None,
        family: str = "openai",
        calls: Sequence[ToolCall] | None = None,
        limit: int | None = None,
        close_open: bool = False,
    ) -> list[dict[str, Any]]:
        """Return the provider's own result messages for every call of a turn, in call order.

        No call is left without an answer: what finished is answered from the log, whatever was denied, failed, waits or
        was interrupted by an honest text, so that a turn that broke off can always be continued.

        :param message_id: the message, or the run of calls that had none
        :param calls: the turn's calls; answers those too that the log never saw, and says how ids pair with rows
        :param limit: characters of one result, at least 200; a longer one becomes JSON that says it was cut
        :param close_open: close what still waits: moving on without a decision is a decision
        :raises Refused: if the limit is too small
        :raises LogUnavailable: if the log cannot be read (or, with ``close_open``, written)
        """
        from engine.answers import answers
        from engine.result_messages import result_messages

        return result_messages(await answers(self._runtime, message_id, user_id, calls, limit, close_open), family)

    async def attempt(self, key: str, *, user_id: str | None) -> AttemptRow | None:
        """Return the ``tool_call_attempts`` row of a call, or None where the tenant has no such call.

        :raises LogUnavailable: if the log cannot be read, or what became of the call is still in this machine's spool
        """
        from engine.catching_up import catch_up
        from projections.rows import read_attempt

        await catch_up(self._runtime, user_id, key=key)
        return await read_attempt(self._runtime.log, key, user_id)

    async def reconcile(self, dry_run: bool = False) -> ReconcileReport:
        """Find what is stuck, of every tenant, close what is safe to close, and return what was found.

        Calls whose worker is gone become Failed(orphaned), calls past their deadline Denied(expired) or
        Failed(timeout); each by an append of its own, so that of several reconciliations at once exactly one closes it.
        Calls approved and not run, or not confirmed, are reported. A call that a live worker runs is left alone, and
        nobody is taken for dead before this engine has renewed its own lease without a gap for one lease period:
        those calls are ``held``, for ``steady_in`` seconds more.

        The report is for operators: it names calls of every tenant.

        :param dry_run: append nothing
        :raises LogUnavailable: if the database cannot be read or written; what was closed is closed
        """
        from engine.reconcile import reconcile

        return await reconcile(self._runtime, dry_run)


class EngineOpening:
    """Opens an engine on entering, closes it on leaving."""

    def __init__(
        self,
        url: str,
        rows: tuple[ToolRow, ...],
        tools: tuple[type[Tool], ...],
        guards: tuple[ResultGuard, ...],
        settings: Settings,
    ) -> None:
        self._arguments: tuple[Any, ...] = (url, rows, tools, guards, settings)
        self._closing: Any = None

    async def __aenter__(self) -> Engine:
        from engine.starting import start

        runtime, self._closing = await start(*self._arguments)
        return Engine(runtime)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._closing.stop()
