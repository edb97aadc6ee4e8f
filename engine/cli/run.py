"""``calljournal run``: a provider's response in, its calls carried out, their events as they happen."""

from __future__ import annotations

from functools import partial
from shlex import quote

import anyio
import click

from engine.cli.failure import DONE, NO, Interrupted
from engine.cli.options import Choice, taking
from engine.cli.response import FAMILIES, Turn, read_turn
from engine.cli.terminal import Approval, require_terminal
from events.keys import require_storable

__all__ = ("run",)


@click.command()
@click.argument("file")
@click.option("--family", type=click.Choice(FAMILIES), help="Whose response it is; else told by its shape.")
@click.option("--message", metavar="ID", help="The turn; else the response's own id, else one made of its content.")
@click.option("--conversation", metavar="ID", help="The conversation it belongs to.")
@click.option("--headless", is_flag=True, help="Nobody watches: what would ask somebody is denied.")
@click.option(
    "--approve",
    "approval",
    type=click.Choice(("ask", "never", "always")),
    default="never",
    help="What needs approval: ask here, leave it waiting (the default), or approve it all.",
)
@taking("database", "user", "tools", "as_json")
def run(
    choice: Choice,
    file: str,
    family: str | None,
    message: str | None,
    conversation: str | None,
    headless: bool,
    approval: Approval,
) -> int:
    """Carry out a provider's tool calls.

    FILE is the whole response as JSON; - reads standard input. Each event is printed once it is in the journal. The
    same file again gives what is recorded, and runs nothing twice. Exit code 1: a call failed, was denied, or waits.
    """
    if headless and approval != "never":
        raise click.UsageError("a run that nobody watches has nobody to approve; leave --headless or --approve out")
    if approval == "ask":
        require_terminal()
    turn = read_turn(file, family, message)
    require_storable(conversation, "the conversation id")
    try:
        completed = anyio.run(partial(_carry_out, choice, turn, conversation, headless, approval))
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; what had begun is recorded (calljournal attempts --message {quote(turn.message_id)}), "
            "and the same command goes on with the rest"
        ) from None
    return DONE if completed else NO


async def _carry_out(choice: Choice, turn: Turn, conversation: str | None, headless: bool, approval: Approval) -> bool:
    from engine.cli.approving import Approver
    from engine.cli.output import Output
    from engine.cli.stream import EventStream
    from engine.cli.working import working
    from engine.context import CallContext

    context = CallContext(
        user_id=choice.user, message_id=turn.message_id, conversation_id=conversation, headless=headless
    )
    async with working(choice, make=True) as engine:
        stream = EventStream(Output(choice), await engine.log.head())
        await stream.begin(turn)
        approver = Approver(engine, stream, context, approval)
        for call in turn.calls:
            await approver.settle(await stream.show(engine.execute(call, context)))
        return await stream.end(turn)
