r"""Prior information: Holmes and Walker's rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.protocols import HasPriorInformation, Information, Model
from temperance.strategies.rate import InformationStrategy
from temperance.uncertainty.information import Units


@dataclass(frozen=True)
class PriorInformation(InformationStrategy):
    r"""Match the expected gain of information from prior to posterior under model and data.

    .. math::

        \beta = \sqrt{\frac{\overline{E_{f_{\hat\theta}} D}}{\overline{D(x_i)}}}, \qquad
        D(x) = \int |\nabla_\theta \log f_\theta(x)|^2 \pi_0(\theta) d\theta,

    in the coordinates in which the prior is N(mu, I).  The wider the prior, the closer to 1.

    References
    ----------
    .. [1] C. Holmes, S. Walker, Assigning a value to a power likelihood in a general Bayesian
       model, Biometrika 104, 2017.
    """

    def formula(self, model: Model, units: Units, information: Information) -> float:
        """Return the square root of the ratio of the means."""
        if not isinstance(model, HasPriorInformation):
            raise ValueError(
                "PriorInformation needs a model with prior_information(data), as linear and "
                "logistic models have if the scale of their prior is given, got "
                f"{type(model).__name__}; use Sandwich()"
            )
        expected, observed = model.prior_information(units.rows)
        weights = units.rows.weights
        return float(np.sqrt((weights @ expected) / (weights @ observed)))

    @property
    def rule(self) -> str:
        """What the rule matches, as a phrase."""
        return "prior's expected information matched between model and data"
