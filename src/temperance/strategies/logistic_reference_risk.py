r"""Reference risk for logistic models, which have one scale to free: that of the prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.curves import RiskCurve
from temperance.models.logistic.curve import logistic_risk_curve
from temperance.models.logistic.model import LogisticRegression
from temperance.models.reference.logistic import Evidence, reference_rows
from temperance.optimise import Minimum
from temperance.strategies.reference_risk import ReferenceRisk
from temperance.types import Array, Data, Model, Risk
from temperance.validation import one_of, positive, shown

HALVINGS = 12


@dataclass(frozen=True)
class LogisticReferenceRisk(ReferenceRisk):
    r"""Go from Bayes towards the minimum of the risk that a reference model expects.

    .. math::

        C(\hat\beta) = C_{\min} + c\,(C(1) - C_{\min}), \qquad
        C(\beta) = E\bigl[ E_{\theta \sim \pi_\beta} l(\theta, X) \bigr],

    where the outer expectation is over a new X under the posterior of the reference: the same
    model, whose prior has a free scale that is learnt from the data.  Labels that are partly random
    look like a small scale, so that the minimum itself can be worse than Bayes; the choice gives up
    the share c, the ``caution``, of the expected gain and stays closer to beta = 1.

    Parameters
    ----------
    veto : float or None
        As in :class:`ReferenceRisk`; none by default, since leave-one-out takes n fits.
    duplicates : {"auto", "together", "apart"}
        As in :class:`ReferenceRisk`.
    evidence : {"laplace", "jaakkola"}
        What weighs the scales: Laplace's approximation, or Jaakkola and Jordan's bound.
    spread : float
        Prior standard deviation of the logarithm of the scale.
    caution : float
        Share of the expected gain over Bayes to give up for a choice closer to Bayes.

    Examples
    --------
    >>> import numpy as np
    >>> from temperance import calibrate, models
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([np.ones(50), rng.standard_normal((50, 9))])
    >>> y = (X @ rng.standard_normal(10) + rng.logistic(size=50) > 0).astype(int)
    >>> calibration = calibrate(models.LaplaceLogistic(), X, y, LogisticReferenceRisk())
    >>> 1.0 < calibration.beta < 3.0
    True
    """

    veto: float | None = None
    evidence: Evidence = "laplace"
    spread: float = 3.0
    caution: float = 0.3

    def __post_init__(self) -> None:
        """Refuse options that are none."""
        super().__post_init__()
        one_of("evidence", self.evidence, ("laplace", "jaakkola"))
        positive("spread", self.spread)
        if not 0 <= self.caution < 1:
            raise ValueError(f"caution must be at least 0 and below 1, got {shown(self.caution)}")

    def locate(self, curve: RiskCurve, bounds: tuple[float, float]) -> Minimum:
        """Go from Bayes towards the minimum until the expected gain is enough."""
        least = super().locate(curve, bounds)
        if not self.caution:
            return least
        near, far = float(np.clip(1.0, *bounds)), least.beta
        at_bayes, risk = (float(curve(beta)) for beta in (near, far))
        enough = risk + self.caution * (at_bayes - risk)
        for _ in range(HALVINGS):
            middle = (near + far) / 2
            near, far = (near, middle) if curve(middle) <= enough else (middle, far)
        return least if far == least.beta else Minimum(far, least=least.beta)

    def reference(self, model: Model, rows: Data, counts: Array, risk: Risk) -> RiskCurve:
        """Return the risk that the reference expects, by quadrature."""
        if not isinstance(model, LogisticRegression):
            raise ValueError(
                f"model must be logistic for LogisticReferenceRisk, got {type(model).__name__}; "
                "use ReferenceRisk() if it is linear, or KFold()"
            )
        fresh, plan = reference_rows(model, rows, counts, self.evidence, self.spread)
        return logistic_risk_curve(fresh, plan, risk, model)
