r"""Reference risk for logistic models, in the variants that were measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.curves import RiskCurve
from temperance.models.logistic.curve import logistic_risk_curve
from temperance.models.logistic.model import LogisticRegression
from temperance.models.reference.logistic import Evidence, reference_rows
from temperance.optimise import Minimum
from temperance.strategies import ReferenceRisk
from temperance.types import Array, Data, Model, Risk

HALVINGS = 12


@dataclass(frozen=True)
class LogisticReferenceRisk(ReferenceRisk):
    """Reference risk with a free scale of the prior, for logistic models.

    Parameters
    ----------
    veto, duplicates
        As in :class:`temperance.strategies.ReferenceRisk`; no veto by default, since leave-one-out
        takes n fits.
    evidence : {"jaakkola", "laplace"}
        What weighs the scales.
    spread : float
        Prior standard deviation of the logarithm of the scale.
    caution : float
        Share of the expected gain over Bayes to give up for a choice closer to Bayes.
    """

    veto: float | None = None
    evidence: Evidence = "laplace"
    spread: float = 2.0
    caution: float = 0.0

    def locate(self, curve: RiskCurve, bounds: tuple[float, float]) -> Minimum:
        """Go from Bayes towards the minimum until the expected gain is enough."""
        least = super().locate(curve, bounds)
        bayes = float(np.clip(1.0, *bounds))
        near, far = bayes, least.beta
        risk, at_bayes = (float(curve(beta)) for beta in (far, bayes))
        enough = risk + self.caution * (at_bayes - risk)
        for _ in range(HALVINGS if self.caution else 0):
            middle = (near + far) / 2
            near, far = (near, middle) if curve(middle) <= enough else (middle, far)
        return least if far == least.beta else Minimum(far)

    def reference(self, model: Model, rows: Data, counts: Array, risk: Risk) -> RiskCurve:
        """Return the risk that the reference expects, by quadrature."""
        if not isinstance(model, LogisticRegression):
            raise ValueError(f"model must be logistic, got {type(model).__name__}")
        fresh, plan = reference_rows(model, rows, counts, self.evidence, self.spread)
        return logistic_risk_curve(fresh, plan, risk, model)
