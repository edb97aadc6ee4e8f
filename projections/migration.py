"""The migration chain of the projections' tables."""

from __future__ import annotations

from events.migration import Chain
from projections.schema import HEAD

__all__ = ("PROJECTIONS_CHAIN",)

PROJECTIONS_CHAIN = Chain("projections", HEAD)
