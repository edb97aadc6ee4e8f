"""What the HTTP libraries write to their own logs, less what may be a secret: header values, queries, user names."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ("keep_secrets_out",)


def keep_secrets_out(*loggers: str) -> None:
    """Let nothing secret into these loggers, once and for all; they write the rest as before."""
    for name in loggers:
        # Adding a filter again changes nothing.
        logging.getLogger(name).addFilter(_without_secrets)


def _without_secrets(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(map(_bare, record.args))
    for quoting in (" return_value=", " exception="):
        if isinstance(record.msg, str) and "_headers." in record.msg:
            record.msg = record.msg.partition(quoting)[0]
    return True


def _bare(argument: Any) -> Any:
    """Return a URL of any of the libraries without its query and user; anything else as it is."""
    if hasattr(argument, "copy_with") and hasattr(argument, "userinfo"):
        return argument.copy_with(query=None, userinfo=b"", fragment=None)
    return argument
