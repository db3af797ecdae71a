r"""Reference risk: the risk expected by a model with free scales, checked by leave-one-out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from temperance.calibration import Calibration
from temperance.checks import one_of, positive
from temperance.curves import ReferenceCurve, RiskCurve
from temperance.data import Array, Data, Risk
from temperance.duplicates import joined_rows, takes_few_values
from temperance.plans import LeaveOneOutPlan
from temperance.protocols import HasReference, Model
from temperance.search.minimise import Minimum
from temperance.strategies.k_fold import PIECES_PER_ROW
from temperance.strategies.selection import conclude, minimum_of, warn_of_minimum
from temperance.uncertainty.beta_range import edge
from temperance.uncertainty.standard_errors import mean_and_error

STORED_AS = "temperance.strategies.reference_risk"  # module path that studies store
HALVINGS = 30  # of the interval that contains the end of the accepted range


@dataclass(frozen=True)
class ReferenceRisk:
    r"""Minimise the risk expected by a reference model, within what leave-one-out accepts.

    .. math::

        \hat\beta = \arg\min_\beta E\bigl[ E_{\theta \sim \pi_\beta} l(\theta, X) \bigr],

    where the outer expectation is over a new X under the posterior of the reference model.  That is
    the same model with unknown noise variance and prior scale, both learnt from the data.  Among
    the betas whose leave-one-out risk is within ``veto`` paired standard errors of its minimum, the
    choice is the one closest to the reference's, in log beta.

    The reported risk is the reference's.  The standard errors are those of leave-one-out; without
    the veto there are none.  For linear models; others need a method ``reference_curve``.

    Parameters
    ----------
    veto : float or None
        Number of standard errors that leave-one-out allows; ``None`` for no check.
    duplicates : {"auto", "together", "apart"}
        Whether identical rows are copies of one observation, which the reference and the veto then
        count once, or different observations; as in :class:`KFold`.

    Examples
    --------
    >>> import numpy as np
    >>> from temperance import calibrate, models
    >>> rng = np.random.default_rng(1)
    >>> X = rng.standard_normal((40, 30))
    >>> y = X[:, 0] + 8 * rng.standard_normal(40)
    >>> calibration = calibrate(models.GaussianLinear(noise_variance=8.0), X, y, ReferenceRisk())
    >>> 0.01 < calibration.beta < 0.5
    True
    """

    veto: float | None = 2.0
    duplicates: Literal["auto", "together", "apart"] = "auto"

    def __post_init__(self) -> None:
        """Refuse a veto that is not positive."""
        if self.veto is not None:
            positive("veto", self.veto)
        one_of("duplicates", self.duplicates, ("auto", "together", "apart"))

    def select(
        self,
        model: Model,
        data: Data,
        bounds: tuple[float, float],
        rng: np.random.Generator,
        risk: Risk = "gibbs",
        optimiser: str = "deterministic",
    ) -> Calibration:
        """Return the calibration with beta within ``bounds``; no randomness is needed."""
        if optimiser != "deterministic":
            raise ValueError(
                f"optimiser must be 'deterministic' for ReferenceRisk, got {optimiser!r}"
            )
        rows = joined_rows(data)
        apart = self._apart(rows)
        counts = rows.weights if apart else np.ones(len(rows))
        reference = self.reference(model, rows, counts, risk)
        method = f"{reference.method}, reference model with free scales"
        choice = minimum_of(reference, bounds)
        if self.veto is None:
            tested = Data(rows.X[:1], rows.y[:1], np.ones(1))
            losses: _Total | _Scattered = _Total(reference)
        else:
            tested = _observations(rows) if apart else rows
            plan = _leave_one_out(tested)
            shared = None if apart else reference.left_out
            left_out = shared or model.risk_curve(tested, plan, risk)
            least = minimum_of(left_out, bounds).beta
            choice = closest_tolerated(choice, left_out, least, tested.weights, bounds, self.veto)
            losses = _Scattered(reference, left_out)
        curve = replace(reference, rows=losses.rows, method=method)
        calibration = conclude(model, data, tested, self, risk, bounds, curve, choice)
        warn_of_minimum(calibration)
        return calibration

    def reference(self, model: Model, rows: Data, counts: Array, risk: Risk) -> ReferenceCurve:
        """Return the reference risk curve of distinct rows; see ``HasReference``."""
        if not isinstance(model, HasReference):
            raise ValueError(
                "model must have a reference for ReferenceRisk, as models of the squared loss have "
                "if the scale of their prior is given (prior_scale in the estimators), got "
                f"{type(model).__name__}; use KFold()"
            )
        return model.reference_curve(rows, counts, risk)

    def _apart(self, rows: Data) -> bool:
        if self.duplicates == "auto":
            return takes_few_values(rows)
        return self.duplicates == "apart"


def _leave_one_out(rows: Data) -> LeaveOneOutPlan:
    if len(rows) < 2:
        raise ValueError(
            "X and y must have at least 2 distinct rows for leave-one-out's veto, got "
            f"{len(rows)}; use ReferenceRisk(veto=None) or Bayes()"
        )
    return LeaveOneOutPlan(rows.weights)


def _observations(rows: Data) -> Data:
    """Return the rows divided into pieces of about one observation each."""
    pieces = np.clip(np.ceil(rows.weights), 1, PIECES_PER_ROW).astype(int)
    X, y, weights = (np.repeat(part, pieces, axis=0) for part in (rows.X, rows.y, rows.weights))
    return Data(X, y, weights / np.repeat(pieces, pieces))


@dataclass(frozen=True, eq=False)
class _Total:
    """A single row with the total risk: without tested rows its error is unknown."""

    reference: RiskCurve

    def rows(self, beta: float) -> tuple[Array, Array]:
        return np.array([self.reference(beta)]), np.ones(1)


@dataclass(frozen=True, eq=False)
class _Scattered:
    """Losses with the scatter of leave-one-out around the reference's risk."""

    reference: RiskCurve
    left_out: RiskCurve

    def rows(self, beta: float) -> tuple[Array, Array]:
        loss, share = self.left_out.rows(beta)
        return loss - share @ loss / share.sum() + self.reference(beta), share


def closest_tolerated(
    choice: Minimum,
    curve: RiskCurve,
    least: float,
    weights: Array,
    bounds: tuple[float, float],
    errors: float,
) -> Minimum:
    r"""Return the point closest to the choice that a curve does not rule out.

    Distances are those of log beta, on the search scale (:class:`search.log_scale.Ruler`).

    Beta is ruled out when its mean loss exceeds that at the curve's minimum by more than
    ``errors`` standard errors of that difference, paired over rows.

    Parameters
    ----------
    choice : Minimum
        Returned if the curve does not rule it out.
    curve : RiskCurve
        The curve of leave-one-out.
    least : float
        Beta at its minimum.
    weights : array of shape (n,)
        Number of observations that each row of the curve represents.
    bounds : (float, float)
    errors : float
    """
    if choice.beta == least:
        return choice
    smallest, share = curve.rows(least)
    ruler = curve.ruler(bounds)

    def tolerated(beta: float) -> bool:
        difference, error = mean_and_error(curve.rows(beta)[0] - smallest, share, weights)
        return not difference > errors * error  # a nan error rules nothing out

    def distance(beta: float) -> float:
        return float(abs(ruler.t(beta) - ruler.t(choice.beta)))

    if tolerated(choice.beta):
        return choice
    outside = {True: choice.beta, False: choice.beta}  # last beta ruled out on each side
    scan = ruler.scan(curve.search.points, curve.search.step)
    for beta in sorted({*scan.tolist(), least}, key=distance):
        if tolerated(beta):
            break
        outside[beta > choice.beta] = beta
    found = edge(tolerated, beta, outside[beta > choice.beta], ruler, HALVINGS)
    least = choice.beta if choice.least is None else choice.least
    return Minimum(found, at_bound=found in bounds, least=least)
