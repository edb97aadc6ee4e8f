"""A row's tools on its server: listed, compared with what the row keeps, and called."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec
from mcp_types import CallToolRequestParams

from engine.contract import AskAgain, InputRequired, Scope, ToolContext, ToolResult
from engine.mcp.blobs import Blobs
from engine.mcp.calling import Client, answered
from engine.mcp.content import size_of, tool_result
from engine.mcp.definitions import Definition, metadata_of
from engine.mcp.errors import McpError, RefusedByServer
from engine.mcp.exchange import Exchange
from engine.mcp.input_request import InputRequest, answers_to
from engine.mcp.schema import OutputSchemas
from engine.mcp.server import Server
from engine.mcp.session import Annotate
from engine.mcp.surfaced import SURFACED, Surfaced, surfaced_metadata

__all__ = ("ServerTools",)

_COMPARED: Final = 5.0
"""Seconds for asking a server what its tools are now, before a call."""

_IN_A_THREAD: Final = 1 << 20
"""Characters of base64 from which they are decoded beside the event loop."""


class ServerTools:
    """The tools of one row's server, for one user."""

    def __init__(self, config: dict[str, Any], scope: Scope) -> None:
        """Connect to nothing yet.

        :raises InvalidServer: if the configuration names no server that can be reached
        """
        self.server = Server.of(config)
        self._scope = scope
        self._client = Client(self.server, config, scope)
        self._schemas = OutputSchemas()
        self._kept = {
            each["name"]: each for each in scope.actions_metadata or () if isinstance(each.get("definition"), str)
        }

    def __repr__(self) -> str:
        return f"<ServerTools {self.server!r}>"

    async def actions(self) -> list[dict[str, Any]]:
        """Return the server's tools as the metadata of actions. :raises McpError: if it does not list them"""
        try:
            with anyio.fail_after(self.server.timeout):
                definitions = await self._client.definitions()
                capabilities = await self._client.capabilities() if self.server.surfaces else frozenset()
        except TimeoutError:
            raise McpError(f"the MCP server {self.server.address} lists no tools within its timeout") from None
        self._client.sessions.tell(self._client.key, self._scope.tool_id, definitions)
        metadata = metadata_of(definitions.values(), self.server.approval, self.server.timeout)
        surfaced = surfaced_metadata(capabilities, definitions, self.server.timeout)
        # A server may say its client's token back: what it says of its tools is kept, and seen by all who use the row.
        masked: list[dict[str, Any]] = self._client.masker.value([*metadata, *surfaced])
        return masked

    async def compare(self, name: str) -> None:
        """Look whether a tool is what the row says it is; a server that does not tell now is found out by the call.

        :raises AskAgain: if it is another
        """
        kept = self._digest(name)
        if kept is None:
            return
        live: Definition | None = None
        with anyio.move_on_after(_COMPARED):
            try:
                live = (await self._client.definitions()).get(name)
            except McpError:
                return
        if live is not None and live.digest != kept:
            raise AskAgain(
                f"its MCP server has changed this tool since its owner last looked (was {kept[:12]}, is "
                f"{live.digest[:12]}); refresh the row to take over what it is now"
            )

    def _digest(self, name: str) -> str | None:
        if name in self._kept:
            return str(self._kept[name]["definition"])
        told = self._told(name)
        return None if told is None else told.digest

    def _told(self, name: str) -> Definition | None:
        return self._client.sessions.told(self._client.key, self._scope.tool_id).get(name)

    async def call(self, name: str, arguments: dict[str, Any], context: ToolContext, seconds: float) -> Any:
        """Call a tool, or go on with a call that waited for an answer.

        :param seconds: left until the call's deadline
        :raises TimeoutError: if that, or the row's timeout, is over; it may have had its effect
        """
        annotate, limit = partial(self._annotate, context), max(0.0, min(seconds, self.server.timeout))
        try:
            with anyio.fail_after(limit):
                surfaced = self._surfaced(name)
                if surfaced is not None:
                    return await self._read_from(surfaced, arguments, annotate)
                return await self._called(name, arguments, context, annotate)
        except McpError as error:
            if isinstance(error, RefusedByServer):
                context.annotate("rpc.response.status_code", str(error.code))
            return ToolResult({"error": self._client.masker.text(_sentence(error))}, status="error")
        except TimeoutError:
            late = f"the MCP server {self.server.address} came to no end in {limit:.3g} s; it may have had its effect"
            raise TimeoutError(late) from None

    async def _called(self, name: str, arguments: dict[str, Any], context: ToolContext, annotate: Annotate) -> Any:
        call = CallToolRequestParams(name=name, arguments=arguments)
        if context.answer is not msgspec.UNSET:
            answers = answers_to(context.request, context.answer)
            if isinstance(answers, str):
                return InputRequired(context.request, answers)
            try:
                call = answered(call, answers)
            except McpError as error:
                return InputRequired(context.request, str(error))
        result = await self._client.call_result(call, annotate, context.progress)
        asks = InputRequest.of(result)
        return await self._result(name, result) if asks is None else asks.pause()

    def _surfaced(self, name: str) -> Surfaced | None:
        own = self._digest(name) is not None
        return None if own or not self.server.surfaces else next((each for each in SURFACED if each.name == name), None)

    async def _read_from(self, surfaced: Surfaced, arguments: dict[str, Any], annotate: Annotate) -> ToolResult:
        result = await self._client.result_of(surfaced.asked(arguments), annotate)
        kept = self._scope.services.shared(Blobs)
        made = surfaced.result(result, partial(kept.keep, self._scope.user_id))
        return ToolResult(self._client.masker.value(made.data))

    async def _result(self, name: str, result: Mapping[str, Any]) -> ToolResult:
        if size_of(result) > _IN_A_THREAD:
            made, blobs = await anyio.to_thread.run_sync(self._read, name, result)
        else:
            made, blobs = self._read(name, result)
        kept = self._scope.services.shared(Blobs)
        for digest, content in blobs:
            kept.keep(self._scope.user_id, digest, content)
        return made

    def _read(self, name: str, result: Mapping[str, Any]) -> tuple[ToolResult, list[tuple[str, bytes]]]:
        blobs: list[tuple[str, bytes]] = []
        problem = partial(self._schemas.problem, name, self._output(name))
        made = tool_result(result, problem, lambda digest, content: blobs.append((digest, content)))
        return ToolResult(self._client.masker.value(made.data), made.status), blobs

    def _output(self, name: str) -> dict[str, Any] | None:
        if name in self._kept:
            schema = self._kept[name].get("output_schema")
            return schema if isinstance(schema, dict) else None
        told = self._told(name)
        return None if told is None else told.output_schema

    def _annotate(self, context: ToolContext, version: str, exchange: Exchange) -> None:
        context.annotate("mcp.method.name", exchange.method)
        context.annotate("mcp.protocol.version", version)
        context.annotate("network.transport", "tcp")
        context.annotate("server.address", self.server.host)
        context.annotate("server.port", self.server.port)
        if exchange.number is not None:
            context.annotate("jsonrpc.request.id", str(exchange.number))
        if exchange.session_id is not None:
            context.annotate("mcp.session.id", exchange.session_id)


def _sentence(error: McpError) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
