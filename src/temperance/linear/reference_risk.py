"""The reference risk, a rule for the Gibbs risk of linear models."""

from __future__ import annotations

from dataclasses import dataclass

from temperance.strategies.leave_one_out import LeaveOneOut


@dataclass(frozen=True)
class ReferenceRisk(LeaveOneOut):
    """To be written on the engine."""
