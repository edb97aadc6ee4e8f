"""What makes it happen: tools, gate, executor, service."""

from engine import siblings as siblings  # first: the others import what it looks after

# isort: split
from engine.call import ToolCall, parse_calls
from engine.context import CallContext
from engine.contract import Attachment, InputRequired, Scope, Tool, ToolContext, ToolResult
from engine.discovery import ToolManager
from engine.engine import Engine
from engine.guards import ResultGuard
from engine.rows import ActionSettings, ToolRow
from engine.rule import EVERYONE, Rule
from engine.schemas import Prepared
from engine.settings import Limits, Settings
from engine.sharing import Grantee
from engine.stream import CallAssembler, parse_stream
from engine.tool_policy import ToolPolicy

__all__ = (
    "EVERYONE",
    "ActionSettings",
    "Attachment",
    "CallAssembler",
    "CallContext",
    "Engine",
    "Grantee",
    "InputRequired",
    "Limits",
    "Prepared",
    "ResultGuard",
    "Rule",
    "Scope",
    "Settings",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolManager",
    "ToolPolicy",
    "ToolResult",
    "ToolRow",
    "parse_calls",
    "parse_stream",
)
