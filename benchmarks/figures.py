"""Figures: what was measured, how often, and what it should be."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

__all__ = ("Figure", "Results")


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measured quantity; its value is the median of the samples.

    :ivar goal: what is to be reached; None: shown for comparison
    :ivar at_most: the goal is an upper bound
    """

    name: str
    unit: str
    samples: tuple[float, ...]
    goal: float | None = None
    at_most: bool = False

    @classmethod
    def of(
        cls, name: str, unit: str, samples: Sequence[float], goal: float | None = None, *, at_most: bool = False
    ) -> Figure:
        """Make a figure from samples of any kind of sequence."""
        return cls(name=name, unit=unit, samples=tuple(samples), goal=goal, at_most=at_most)

    @property
    def value(self) -> float:
        """The median."""
        return statistics.median(self.samples)

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.at_most else self.value >= self.goal


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """A run: where and how it was made, and its figures."""

    environment: dict[str, str]
    figures: tuple[Figure, ...]

    def save(self, path: str) -> None:
        """Write the run to a JSON file."""
        with open(path, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(self), indent=1))

    @classmethod
    def load(cls, path: str) -> Results:
        """Read a run from a JSON file."""
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=cls)
