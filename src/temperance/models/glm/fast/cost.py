"""What fits of logistic models cost, as measured, for messages on what would take too long."""

from __future__ import annotations

from temperance.models.glm.fast.leave_one_out import many_rows

COLUMNS = 25.0  # from which matrices over the columns cost more than passes over the rows
NEWTON_STEPS = 10  # fits that cost as much as a fit, a Newton step for each row and some refits


def cost_of_fits(count: float, rows: int, columns: int) -> float:
    """Return the cost of calibrating on ``count`` fits: rows that pass, as if columns were few."""
    return count * rows * (1 + (columns / COLUMNS) ** 2)


def fits_to_leave_one_out(rows: int, columns: int) -> int:
    """Return how many fits leave-one-out is worth."""
    return NEWTON_STEPS if many_rows(rows, columns) else rows
