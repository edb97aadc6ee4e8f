"""What follows from the log: the state table, and the read models."""

from projections.attempts import AttemptsProjection

__all__ = ("AttemptsProjection",)
