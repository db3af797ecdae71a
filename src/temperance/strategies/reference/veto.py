r"""Let leave-one-out veto a choice that other grounds suggest."""

from __future__ import annotations

from temperance.calibration import mean_and_error
from temperance.curves import RiskCurve
from temperance.search.beta_range import edge
from temperance.search.minimise import Minimum
from temperance.types import Array

HALVINGS = 30


def closest_tolerated(
    choice: Minimum,
    curve: RiskCurve,
    least: float,
    weights: Array,
    bounds: tuple[float, float],
    errors: float,
) -> Minimum:
    r"""Return the point closest to the choice that a curve does not rule out.

    Distances are those of log beta, as far as beta matters (:class:`search.log_scale.Ruler`).

    Beta is ruled out when its mean loss exceeds that at the curve's minimum by more than
    ``errors`` standard errors of that difference, paired over rows.

    Parameters
    ----------
    choice : Minimum
        What is returned if nothing speaks against it.
    curve : RiskCurve
        Of leave-one-out.
    least : float
        Where its minimum is.
    weights : array of shape (n,)
        Observations that each row of the curve stands for.
    bounds : (float, float)
    errors : float
    """
    if choice.beta == least:
        return choice
    smallest, share = curve.rows(least)
    ruler = curve.ruler(bounds)

    def tolerated(beta: float) -> bool:
        difference, error = mean_and_error(curve.rows(beta)[0] - smallest, share, weights)
        return not difference > errors * error  # too few rows for an error rule nothing out

    def distance(beta: float) -> float:
        return float(abs(ruler.t(beta) - ruler.t(choice.beta)))

    if tolerated(choice.beta):
        return choice
    outside = {True: choice.beta, False: choice.beta}  # the last that was ruled out, on each side
    scan = ruler.scan(curve.search.points, curve.search.step)
    for beta in sorted({*scan.tolist(), least}, key=distance):
        if tolerated(beta):
            break
        outside[beta > choice.beta] = beta
    found = edge(tolerated, beta, outside[beta > choice.beta], ruler, HALVINGS)
    least = choice.beta if choice.least is None else choice.least
    return Minimum(found, at_bound=found in bounds, least=least)
