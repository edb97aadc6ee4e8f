"""The migration chain of the engine's own tables, and all chains in the order in which they are applied."""

from __future__ import annotations

from engine.schema import EPOCH, HEAD
from events.migration import EVENTS_CHAIN, Chain
from projections.migration import PROJECTIONS_CHAIN

__all__ = ("CHAINS", "ENGINE_CHAIN")

ENGINE_CHAIN = Chain("engine", HEAD, EPOCH)

CHAINS: tuple[Chain, ...] = (EVENTS_CHAIN, PROJECTIONS_CHAIN, ENGINE_CHAIN)
