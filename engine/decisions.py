"""``decide``: a person allows or rejects a call that waits; from the log alone, on any worker, exactly once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from time import time_ns
from typing import Any

import msgspec

from engine.deadlines import is_past
from engine.definition import Definition, Missing, definition_of, is_client_call
from engine.gate import Deny
from engine.journalled import journal_form
from engine.outcomes import Edited, approved, denied
from engine.proposal import storable
from engine.refusals import not_an_object
from engine.remembering import remember_approval, require_rememberable
from engine.runtime import Runtime
from engine.standing import Standing, impossible, stand
from events.errors import Refused, VersionConflict
from events.keys import require_storable
from events.persistence import run_to_end
from events.types import Approved, Denied

__all__ = ("decide", "expired")

_EXPIRED = "This call was not run: nobody let it go on before its deadline."


async def decide(
    runtime: Runtime,
    key: str,
    *,
    approve: bool,
    by: str,
    user_id: str | None,
    comment: str | None = None,
    arguments: dict[str, Any] | None = None,
    remember: timedelta | None = None,
) -> Approved | Denied:
    """Append one person's decision on a call that waits, and return it as recorded.

    Nothing runs by it. Past the call's deadline the answer is Denied(expired), whatever was decided. Cancelled while
    the append is under way, it is appended; deciding again says so.

    :param arguments: run instead of the model's (``{}`` is an edit too); must be valid by the action's schema
    :param remember: for so long, allow the same action in the same conversation without asking: see ``engine.rules``
    :raises NotFound: if the tenant has no such call
    :raises Refused: if it does not wait for a decision (the text names its state), or the edit is not valid
    :raises LogUnavailable: if the decision cannot be written, or was and cannot be remembered
    """
    _require_usable(by, approve, arguments, remember)
    decided = partial(_decided, runtime, key, approve, by, user_id, comment, arguments, remember)
    return await (decided() if remember is None else run_to_end(decided))


async def _decided(
    runtime: Runtime,
    key: str,
    approve: bool,
    by: str,
    user_id: str | None,
    comment: str | None,
    arguments: dict[str, Any] | None,
    duration: timedelta | None,
) -> Approved | Denied:
    while True:
        standing = await stand(runtime, key, user_id)
        event = await _decision(runtime, standing, approve, by, comment, arguments)
        if duration is not None and isinstance(event, Approved):
            require_rememberable(standing, duration)
        caller, began = runtime.telemetry.caller(), time_ns()
        try:
            (decided,) = await runtime.journal.step(standing.proposed, [event], standing.row.version)
        except VersionConflict:
            # Somebody else was faster: what became of the call decides.
            continue
        waited = (datetime.now(UTC) - standing.row.updated_at).total_seconds()
        runtime.telemetry.decided(standing.proposed, decided, waited, caller, began)
        assert isinstance(decided, Approved | Denied)
        if duration is not None and isinstance(decided, Approved):
            await remember_approval(runtime, standing, decided, duration)
        return decided


def expired(standing: Standing) -> Denied:
    """Return the end of a call that nobody let go on in time."""
    return denied(standing.proposed, Deny("expired", "expired", _EXPIRED))


def _require_usable(by: str, approve: bool, arguments: object, remember: timedelta | None) -> None:
    if not by.strip():
        raise Refused("a decision needs somebody who makes it; give by")
    require_storable(by, "the name of who decides")
    if arguments is not None and not approve:
        raise Refused("a rejected call does not run, so its arguments cannot be edited; leave out arguments")
    if remember is not None and not approve:
        raise Refused("a rejection cannot be remembered; add a rule to engine.rules, or leave out remember")


async def _decision(
    runtime: Runtime,
    standing: Standing,
    approve: bool,
    by: str,
    comment: str | None,
    arguments: dict[str, Any] | None,
) -> Approved | Denied:
    row, phase = standing.row, standing.phase
    verb = "approved" if approve else "rejected"
    if phase is None or row.gate != "paused":
        raise impossible(standing, verb, "it does not wait for a decision")
    if phase == "paused:awaiting_approval":
        if is_past(row.expires_at):
            return expired(standing)
    elif approve:
        raise impossible(standing, verb, "what it waits for is given by submit_result")
    if not approve:
        return denied(standing.proposed, Deny("rejected", "rejected", _rejection(comment)), by)
    if row.late:
        raise impossible(standing, verb)
    edited = msgspec.UNSET if arguments is None else await _edited(runtime, standing, arguments)
    said = None if comment is None else storable(comment)
    return approved(standing.proposed, by, said, row.fingerprint, edited)


def _rejection(comment: str | None) -> str:
    said = storable(comment).strip()
    why = f"Their reason: {said}" if said else "They gave no reason."
    return f"This call was rejected by the user and was not run. {why}"


async def _edited(runtime: Runtime, standing: Standing, arguments: dict[str, Any]) -> Edited:
    """Return edited arguments in their journalled form. :raises Refused: if they are not valid"""
    proposed, edited = standing.proposed, journal_form(arguments)
    if is_client_call(runtime, proposed):
        # The client knows its tool's schema; here is only known that arguments are an object.
        problem = None if isinstance(edited, dict) else not_an_object(proposed.action_name, edited)
        _require_none(standing, problem)
        assert isinstance(edited, dict)
        return edited
    found = await definition_of(runtime, proposed)
    if isinstance(found, Missing):
        raise impossible(standing, "approved with edited arguments", found.why)
    return _kept(runtime, standing, found, edited)


def _kept(runtime: Runtime, standing: Standing, definition: Definition, edited: Any) -> Edited:
    proposed = standing.proposed
    hidden = definition.hidden(runtime.secrets, proposed)
    if hidden is not None:
        edited = hidden.edited(edited, proposed.arguments, proposed)
    _require_none(standing, runtime.checker.validate(definition.action, edited))
    kept = edited if hidden is None else hidden.arguments(edited, proposed)
    assert isinstance(kept, dict)
    return kept


def _require_none(standing: Standing, problem: str | None) -> None:
    if problem is not None:
        raise Refused(f"{problem} Call {standing.row.key!r} still waits.")
