"""``calljournal tools test`` of a tool without a row: what it would send, and how it fares with its stand-in."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from engine.actions import Action, resolve_actions
from engine.arguments import ArgumentChecker
from engine.call import ToolCall
from engine.cli.example_arguments import example_arguments, example_config
from engine.cli.options import Choice
from engine.cli.outgoing import outgoing_policy
from engine.cli.standing_in import HERE, Standing, Trial, has_stand_ins, standing_in
from engine.config_check import without_secret_values
from engine.context import CallContext
from engine.contract import Scope, Tool
from engine.credentials import Vault
from engine.defaults import internal_row
from engine.engine import Engine
from engine.loading import actions_metadata
from engine.master_keys import MasterKeys
from engine.net.allow_list import AllowList
from engine.net.policy import NetPolicy
from engine.rows import ToolRow
from engine.services import Services
from engine.settings import Settings
from events.codec import encode_json
from events.errors import Refused
from events.types import Executed, Paused, StreamEvent

__all__ = ("Tried", "try_tool")

_USER: Final = "test"
_ROW: Final = "test"
_SHOWN: Final = 600


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """An action that was tried.

    :ivar sends: what a call would send out; None: nothing, or the tool does not say
    :ivar problem: why nothing would be sent
    :ivar outcome: with a stand-in, how the call ended; None: it was not made
    :ivar result: its beginning
    """

    action: str
    effect: str
    require_approval: bool
    arguments: dict[str, Any]
    sends: str | None
    problem: str | None = None
    outcome: str | None = None
    result: str | None = None

    @property
    def is_ok(self) -> bool:
        """Whether nothing went wrong."""
        return self.problem is None and self.outcome in (None, "completed")


async def try_tool(
    choice: Choice,
    name: str,
    tool: type[Tool],
    wanted: Trial | None,
    tell: Callable[[Tried], None],
    *,
    dry_run: bool,
) -> bool:
    """Try every action, or the one that is wanted, and return whether all went well.

    Nothing is sent to anything but the tool's stand-in.

    :param tell: is told of each
    :param dry_run: nothing is sent at all
    :raises Refused: if there is no such action, or the tool has none without a row
    """
    if tool.actions_in_config:
        raise Refused(f"{name!r} has the actions of its rows; name a row's ID (see `calljournal tools list`)")
    well = True
    async with AsyncExitStack() as stack:
        standing: Standing | None = None
        if not dry_run and has_stand_ins():
            standing = await stack.enter_async_context(standing_in(name))
        trial = _TrialOf(name, tool, standing, choice.user or _USER)
        stack.push_async_callback(trial.services.aclose)
        actions = await trial.actions()
        engine = None if standing is None else await stack.enter_async_context(trial.engine())
        known = () if standing is None else standing.trials
        for number, each in enumerate(_calls(name, actions, known, wanted)):
            found = trial.looked_at(actions[each.action], each.arguments)
            if engine is not None and found.problem is None and (wanted is not None or each in known):
                found = await trial.carried_out(engine, found, number)
            tell(found)
            well = well and found.is_ok
    return well


def _calls(name: str, actions: dict[str, Action], known: tuple[Trial, ...], wanted: Trial | None) -> list[Trial]:
    """Return the calls to make: those that the stand-in knows, and of the other actions one each."""
    for each in known if wanted is None else (wanted,):
        if each.action not in actions:
            raise Refused(f"{name!r} has no action {each.action!r} (there are: {', '.join(actions) or 'none'})")
    examples = [Trial(each.name, example_arguments(each.parameters)) for each in actions.values()]
    if wanted is None:
        named = {each.action for each in known}
        return [*known, *(each for each in examples if each.action not in named)]
    if wanted.arguments:
        return [wanted]
    return [each for each in (*known, *examples) if each.action == wanted.action][:1]


class _TrialOf:
    """One tool, with the row it is tried with."""

    def __init__(self, name: str, tool: type[Tool], standing: Standing | None, user: str) -> None:
        net = outgoing_policy() if standing is None else NetPolicy(allow=AllowList(tuple(HERE)))
        self.services = Services(net)
        self._tool = tool
        self._user = user
        self._net = net
        bare = self._made({})
        self._requirements = bare.get_config_requirements()
        self._config = example_config(self._requirements) if standing is None else standing.config
        self._row = internal_row(name) if tool.internal else ToolRow(id=_ROW, name=name, user_id=user)

    def _made(self, config: dict[str, Any]) -> Tool:
        scope = Scope(user_id=self._user, owner=self._user, tool_id=_ROW, services=self.services)
        return self._tool(config, scope)

    async def actions(self) -> dict[str, Action]:
        """Return the actions by name."""
        return {each.name: each for each in resolve_actions(self._row, self._tool, await actions_metadata(self._tool))}

    def looked_at(self, action: Action, arguments: dict[str, Any]) -> Tried:
        """Return what a call would send."""
        preview = getattr(self._made(self._config), "preview_request", None)
        sends, problem = None, ArgumentChecker().validate(action, arguments)
        if problem is None and callable(preview):
            try:
                sends = preview(action.name, arguments)
            except Refused as error:
                problem = str(error)
        return Tried(
            action=action.name,
            effect=action.effect,
            require_approval=action.require_approval,
            arguments=arguments,
            sends=sends,
            problem=problem,
        )

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Engine]:
        """Open an engine on a journal that is thrown away, with the one row."""
        keys = MasterKeys("test", {"test": secrets.token_bytes(32)})
        plain, sealed = without_secret_values(self._requirements, self._config, {})
        blob = Vault(keys).seal(sealed, owner=self._user, row_id=self._row.id) if sealed else None
        row = replace(self._row, config=plain, credentials=blob)
        settings = Settings(net=self._net, master_keys=keys, reconcile_interval=None)
        with TemporaryDirectory(prefix="calljournal-") as folder:
            url = f"sqlite:///{Path(folder, 'journal.db')}"
            async with Engine.open(url, rows=[row], tools=[self._tool], settings=settings) as engine:
                yield engine

    async def carried_out(self, engine: Engine, found: Tried, number: int) -> Tried:
        """Make a call, approving of it where that is asked."""
        context = CallContext(user_id=self._user, message_id="test")
        call = ToolCall(id=f"c{number}", name=found.action, arguments=found.arguments)
        ended: StreamEvent | None = None
        async for event in engine.execute(call, context):
            ended = event
        if isinstance(ended, Paused):
            await engine.decide(ended.key, approve=True, by="calljournal tools test", user_id=self._user)
            async for event in engine.resume(ended.key, context):
                ended = event
        if isinstance(ended, Executed):
            return replace(found, outcome=ended.status, result=_beginning(ended.result))
        return replace(found, outcome=type(ended).__name__.lower(), result=_beginning(getattr(ended, "message", None)))


def _beginning(result: Any) -> str:
    text = result if isinstance(result, str) else encode_json(result).decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
