"""What follows from the log: the state table, and the read models."""

from projections.attempts import AttemptsProjection
from projections.fold import fold_row
from projections.projection import Projection, ProjectionStatistics
from projections.rebuild import rebuild
from projections.report import Problem, Report, Resume
from projections.row import AttemptRow
from projections.runner import reset_projection, run_projection
from projections.transcript import TranscriptEntry, transcript
from projections.verify import verify

__all__ = (
    "AttemptRow",
    "AttemptsProjection",
    "Problem",
    "Projection",
    "ProjectionStatistics",
    "Report",
    "Resume",
    "TranscriptEntry",
    "fold_row",
    "rebuild",
    "reset_projection",
    "run_projection",
    "transcript",
    "verify",
)
