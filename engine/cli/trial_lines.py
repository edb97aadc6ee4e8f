"""An action that was tried, as people read it."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from engine.cli.plain import json_text, one_line, visible

__all__ = ("trial_text",)


def trial_text(tried: Any) -> Text:
    """Return a :class:`~engine.cli.tool_trial.Tried` as lines."""
    text = Text()
    asks = ", needs approval" if tried.require_approval else ""
    text.append(tried.action, style="bold").append(f"  ({tried.effect}{asks})\n")
    text.append(f"  with {json_text(tried.arguments)}\n")
    if tried.problem is not None:
        text.append(f"  is refused: {one_line(tried.problem)}\n", style="red")
    elif tried.sends is not None:
        text.append("  sends\n")
        text.append("".join(f"    {line}\n" for line in visible(tried.sends).rstrip().splitlines()), style="cyan")
    else:
        text.append("  sends nothing out\n")
    if tried.outcome is not None:
        colour = "green" if tried.outcome == "completed" else "red"
        text.append(f"  {tried.outcome}: ", style=colour).append(f"{one_line(tried.result or '')}\n")
    return text
