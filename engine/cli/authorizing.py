"""``calljournal tools authorize``: a person gives a tool row access to its server (OAuth)."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, Final

import anyio
import click

from engine.cli.failure import DONE, NO
from engine.cli.options import Choice, taking
from events.errors import Refused, Unavailable

__all__ = ("authorize",)

_CLIENT_NAME: Final = "calljournal"


@click.command()
@click.argument("row_id", metavar="ROW_ID")
@click.option("--port", metavar="PORT", type=click.IntRange(0, 65535), default=0, help="Of the callback; else any.")
@click.option("--browser/--no-browser", default=None, help="Open a browser, or not. Default: on a terminal.")
@click.option("--forget", is_flag=True, help="Remove the stored authorization instead.")
@taking("database", "user", "as_json")
def authorize(choice: Choice, row_id: str, port: int, browser: bool | None, forget: bool) -> int:
    """Agree, in a browser, that a tool row uses its server as you.

    The browser comes back to this machine, to 127.0.0.1: on another machine, forward a --port to there. After five
    minutes without an answer the command gives up. What was stored before stays until a new consent takes its place.

    Exit code 1: there was nothing to --forget.
    """
    return anyio.run(partial(_authorize, choice, row_id, port=port, browser=browser, forget=forget))


async def _authorize(choice: Choice, row_id: str, *, port: int, browser: bool | None, forget: bool) -> int:
    from engine.cli.database import opened
    from engine.cli.outgoing import outgoing_policy
    from engine.contract import Scope
    from engine.credentials import Vault
    from engine.mcp.errors import NotAnswered
    from engine.services import Services

    async with opened(choice.url) as log:
        services = Services(outgoing_policy(), vault=Vault(), store=log.store)
        try:
            config, owner = await _row(log.store, choice.user, row_id)
            scope = Scope(user_id=choice.user, owner=owner, tool_id=row_id, services=services)
            if forget:
                return await _forget(choice, config, scope)
            await _consent(choice, config, scope, port=port, browser=browser)
        except NotAnswered as error:
            raise Unavailable(str(error)) from error
        finally:
            await services.aclose()
    return DONE


async def _row(store: Any, user_id: str | None, row_id: str) -> tuple[dict[str, Any], str | None]:
    """Return a row's configuration, and whose it is. :raises Refused: if it is not the user's, or needs no consent"""
    from engine.row_changes import read_held

    held = await read_held(store, user_id, row_id)
    if held.role != "owner":
        raise Refused(f"tool row {row_id!r} is another user's: it works with their authorization, and they give it")
    if held.row.config.get("auth_type") != "oauth":
        raise Refused(f"tool row {row_id!r} does not use OAuth; its auth_type would have to be oauth")
    return held.row.config, held.row.user_id


async def _consent(choice: Choice, config: dict[str, Any], scope: Any, *, port: int, browser: bool | None) -> None:
    from engine.cli.output import Output
    from engine.cli.plain import one_line
    from engine.mcp.oauth_errors import shown
    from engine.mcp.oauth_flow import authorize as agree

    output = Output(choice)
    url = str(config.get("server_url") or "")
    opens = (sys.stdout is not None and sys.stdout.isatty()) if browser is None else browser

    async def show(address: str) -> None:
        text = f"To let {_CLIENT_NAME} use {shown(url)}, open this in a browser:\n{one_line(address)}"
        await output.live(partial(_print, output, {"open": address}, text))
        if opens:
            await anyio.to_thread.run_sync(_open, address, abandon_on_cancel=True)

    name = str(config.get("oauth_client_name") or _CLIENT_NAME)
    await agree(url, config.get("oauth_scopes"), name, scope, show, port=port)
    done = {"row": scope.tool_id, "server": shown(url), "authorized": True}
    await output.live(partial(_print, output, done, f"{shown(url)} is authorized for tool row {scope.tool_id}"))


async def _forget(choice: Choice, config: dict[str, Any], scope: Any) -> int:
    from engine.cli.output import Output
    from engine.mcp.oauth import place_of
    from engine.mcp.oauth_errors import shown
    from engine.mcp.refreshing import Grants

    output, url = Output(choice), str(config.get("server_url") or "")
    there = await scope.services.shared(Grants).at(place_of(url, scope)).forget()
    said = "is forgotten" if there else "was not there"
    done = {"row": scope.tool_id, "server": shown(url), "authorized": False, "forgotten": there}
    await output.live(partial(_print, output, done, f"the authorization for {shown(url)} {said}"))
    return DONE if there else NO


def _print(output: Any, record: dict[str, Any], text: str) -> None:
    if output.as_json:
        output.record(record)
    else:
        output.console.print(text, soft_wrap=True)


def _open(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
