"""``calljournal tools authorize``, with a browser that agrees."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from engine import Engine, ToolRow
from engine.sharing import Grantee
from tests.cli.command import Called, check_refused
from tests.engine.mcp.oauth.authority import authority

KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture
def called(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Called]:
    """The command, with keys of its own, which may reach this machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CALLJOURNAL_MASTER_KEY", KEY)
    monkeypatch.setenv("CALLJOURNAL_ALLOW_HOSTS", "127.0.0.1")
    logger = logging.getLogger("calljournal")
    level = logger.level
    yield Called(capsys)
    logger.setLevel(level)


async def _add(url: str, *rows: tuple[ToolRow, str]) -> None:
    async with Engine.open(url) as engine:
        for row, user in rows:
            await engine.rows.add(row, user_id=user)
        await engine.rows.share(rows[0][0].id, Grantee("user", "bob"), user_id="ada")


def _row(row_id: str, server_url: str, **config: Any) -> ToolRow:
    return ToolRow(id=row_id, name="mcp_tool", config={"server_url": server_url, **config})


def test_the_command_authorizes_its_row_s_server(
    sqlite_url: str, called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shows where to go, opens it, says how it went in one line, and forgets when it is told to."""
    opened: list[str] = []

    def browse(url: str) -> bool:
        opened.append(url)
        return httpx.get(url, follow_redirects=True).status_code == 200

    monkeypatch.setattr("webbrowser.open", browse)
    with authority() as server:
        rows = (
            (_row("m1", server.url, auth_type="oauth", oauth_scopes="read,write"), "ada"),
            (_row("m2", server.url, auth_type="none"), "ada"),
        )
        anyio.run(partial(_add, sqlite_url, *rows))
        run = partial(called, "--database", sqlite_url, "--user", "ada", "tools", "authorize")
        ended = run("m1", "--browser")
        assert (ended.code, ended.err) == (0, "")
        assert ended.lines[0] == {"open": opened[0]}
        assert ended.lines[1:] == [{"row": "m1", "server": server.url, "authorized": True}]
        assert server.queries[0]["scope"] == "read write"
        assert [each["client_name"] for each in server.clients.values()] == ["calljournal"]
        assert "canary" not in ended.out
        plain = run("m1", "--browser", "--no-json")
        assert plain.out.splitlines()[0] == f"To let calljournal use {server.url}, open this in a browser:"
        assert plain.out.splitlines()[2:] == [f"{server.url} is authorized for tool row m1"]
        server.answers["/register"] = [(503, {}, {})]
        check_refused(run("m1"), 3, "127.0.0.1 cannot register a client now (HTTP 503)")
        check_refused(run("m2"), 2, "does not use OAuth")
        check_refused(run("m3"), 2, "m3")
        check_refused(run("m1", "--user", "bob"), 2, "another user's")
        assert [run("m1", "--forget").code for _ in range(2)] == [0, 1]
