r"""Common code of models from other libraries that can only be sampled.

Their posteriors with exponents c over the rows,

    pi_c(theta)  ∝  prod_i p(y_i | theta)^c_i pi_0(theta),

are all that a ladder of draws needs: c = beta w for the pair with weights w.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.checks import as_data, non_negative, open_unit, whole
from temperance.curves import RiskCurve
from temperance.data import Array, Data, Risk
from temperance.models.sampled.arviz_tree import arviz_tree, require_arviz
from temperance.models.sampled.curve import risk_curve_from
from temperance.models.sampled.draws import Draws, Sampler
from temperance.models.sampled.information import InformationFromDraws
from temperance.models.sampled.interrupted import Interrupted
from temperance.models.sampled.ladder import Ladders, Report, SampledLadders
from temperance.models.sampled.mixture import MixesDraws
from temperance.models.sampled.own_rows import OwnRows
from temperance.models.sampled.progress import reporter
from temperance.models.sampled.reliability import (
    Reliability,
    relative_efficiency,
    split_rhat,
    warn_of,
)
from temperance.plans import AnyPlan, Pairs
from temperance.protocols import Preferences


class SampledModel(MixesDraws, InformationFromDraws):
    """Base of models that provide a :class:`Sampler` of their tempered posteriors."""

    chains: int
    draws: int
    warmup: int
    overlap: float
    seed: int
    progress: Report | bool | None = None

    preferences: ClassVar[Preferences] = Preferences(leave_one_out=True, only_curves=True)

    def __post_init__(self) -> None:
        """Refuse invalid numbers of chains and draws."""
        whole("chains", self.chains, 2)
        whole("draws", self.draws, 50)
        whole("warmup", self.warmup, 50)
        open_unit("overlap", self.overlap)
        whole("seed", self.seed, 0)

    def sampler(self, data: Data) -> Sampler:
        """Return the sampler of this model on these data."""
        raise NotImplementedError(f"{type(self).__name__} must write its sampler")

    def observed(self, data: Data) -> Mapping[str, Array]:
        """Return the observed variables by name."""
        return {"y": data.y}

    def labelled(self, drawn: Draws, data: Data) -> Draws:
        """Return draws with the names of dimensions and their labels, if the model has any."""
        return drawn

    def check(self, data: Data) -> None:
        """Refuse data for which the model cannot be sampled."""
        require_arviz()
        self.sampler(data)

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the curve that the plan estimates, from a ladder of draws for each pair."""
        sampler = self.sampler(data)

        def ladders(pairs: Pairs) -> Ladders:
            report = reporter(self.progress)
            return self._interrupted.ladders(
                data, pairs, lambda: SampledLadders(sampler, pairs, self.seed, self.overlap, report)
            )

        return risk_curve_from(ladders, plan, risk)

    @cached_property
    def _interrupted(self) -> Interrupted:
        return Interrupted()

    def posterior(
        self, X: ArrayLike | None, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> Any:
        """Return draws of the posterior at ``alpha`` on all data (``n`` is Bayes), as ArviZ."""
        data = as_data(X, y, weights)
        beta = non_negative("alpha", alpha) / data.size
        require_arviz()
        drawn = self.sampler(data).draw(beta * data.weights, self.seed)
        reliability = _reliability(drawn)
        warn_of(reliability, reliability.draws)
        return self.as_posterior(drawn, data, beta, str(reliability))

    def shape_of_posterior(self) -> tuple[int, int]:
        """Return the number of chains and of draws of each."""
        return self.chains, self.draws

    def as_posterior(self, drawn: Draws, data: Data, beta: float, method: str) -> Any:
        """Return draws as an ArviZ object."""
        temperature = {"alpha": beta * data.size, "beta": beta, "size": data.size}
        about = {"model": type(self).__name__, "seed": self.seed, "method": method}
        return arviz_tree(self.labelled(drawn, data), self.observed(data), temperature | about)


class CarriesData(OwnRows, SampledModel):
    """A sampled model that contains its data: ``calibrate(model, model.X, model.y)``."""

    def own_sampler(self) -> Sampler:
        """Return the sampler on the model's own data."""
        raise NotImplementedError(f"{type(self).__name__} must write its sampler")

    def sampler(self, data: Data) -> Sampler:
        """Return the sampler for some of the model's own rows."""
        return _RowsOf(self.own_sampler(), self.index(data), len(self.y))


@dataclass(frozen=True, eq=False)
class _RowsOf:
    """A sampler of all rows, used for some rows: repeated rows add up their exponents."""

    whole: Sampler
    index: NDArray[np.intp]
    count: int

    def draw(self, exponents: Array, seed: int, start: Any = None) -> Draws:
        on_all = np.zeros(self.count)
        np.add.at(on_all, self.index, exponents)
        drawn = self.whole.draw(on_all, seed, start)
        return replace(drawn, losses=drawn.losses[..., self.index])


def refuse_nan(losses: Array) -> None:
    """Refuse draws at which the log likelihood is nan."""
    bad = np.argwhere(np.isnan(losses))
    if len(bad):
        raise ValueError(
            f"the log likelihood must be a number at every draw, got nan in row {bad[0][-1]}: "
            "check its value where the prior puts the parameters"
        )


def as_rows(name: str, values: Any, rows: int) -> Array:
    """Return log likelihoods (chains, size, rows, ...) summed over all axes after the rows."""
    array = np.asarray(values, dtype=float)
    if array.ndim < 3 or array.shape[2] != rows:
        raise ValueError(
            f"the log likelihood of {name!r} must have {rows} rows, got shape {array.shape[2:]}"
        )
    return array.reshape(*array.shape[:3], -1).sum(axis=3)


def _reliability(draws: Draws) -> Reliability:
    total = draws.losses.sum(axis=2)
    return Reliability(
        rungs=1,
        draws=total.size,
        effective=total.size * relative_efficiency(total),
        rhat=split_rhat(total),
        overlap=1.0,
        divergent=draws.divergent,
    )
