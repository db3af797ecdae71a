r"""SafeBayes: predict every row from the rows before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.calibration import Calibration
from temperance.checks import one_of, whole
from temperance.curves import RiskCurve
from temperance.data import Data, Risk
from temperance.plans import AnyPlan, Plan, PrefixPlan, Transfer
from temperance.protocols import HasOtherLosses, LossName, Model
from temperance.strategies.selection import CurveStrategy

GROWTH = 0.02  # relative growth of the training rows after which models are fitted again


@dataclass(frozen=True)
class SafeBayes(CurveStrategy):
    r"""Minimise the cumulative loss of one-step-ahead prediction.

    .. math:: \sum_{t} E_{\theta \sim \pi^{(1..t)}}[l(\theta, X_{t+1})]

    Grünwald's rule keeps beta, the default; the thesis' variant is ``SafeBayes(transfer="alpha")``.
    That is R-log-SafeBayes; ``loss="square"`` is R-square, and with ``in_model`` the loss is that
    of the posterior mean of the parameters, :math:`l(E_\pi \theta, X_{t+1})`: I-log and I-square.

    Parameters
    ----------
    transfer : {"beta", "alpha"}
        What is kept equal from a prefix to all rows.
    start : int
        Number of first rows that are not tested.
    permutations : int
        Average over this many random orders; 0 keeps the order of the data.
    stride : int, optional
        Predict this many rows at a time: the first k s rows train and the next s are tested.  By
        default linear models predict every row from all rows before it.  Other models are fitted
        again whenever the training rows have grown by 2 %: for every row up to the hundredth, then
        less and less often, so that time is linear in the rows.  1 fits for every row, in quadratic
        time.
    loss : {"log", "square"}
        The model's own loss, or squared error, for linear models.
    in_model : bool
        Predict with the posterior mean of the parameters instead of draws, for linear models.

    References
    ----------
    .. [1] P. Grünwald, The safe Bayesian, ALT 2012.
    .. [2] P. Grünwald, T. van Ommen, Inconsistency of Bayesian inference for misspecified linear
       models, and a proposal for repairing it, Bayesian Analysis 12, 2017.
    """

    transfer: Transfer = "beta"
    start: int = 1
    permutations: int = 0
    stride: int | None = None
    loss: LossName = "log"
    in_model: bool = False

    def __post_init__(self) -> None:
        """Refuse invalid options."""
        one_of("transfer", self.transfer, ("beta", "alpha"))
        whole("start", self.start, 1)
        whole("permutations", self.permutations, 0)
        if self.stride is not None:
            whole("stride", self.stride, 1)
        one_of("loss", self.loss, ("log", "square"))
        one_of("in_model", self.in_model, (False, True))

    def select(
        self,
        model: Model,
        data: Data,
        bounds: tuple[float, float],
        rng: np.random.Generator,
        risk: Risk = "gibbs",
        optimiser: str = "deterministic",
    ) -> Calibration:
        """Return the calibration with beta within ``bounds``."""
        if self._plain:
            return super().select(model, data, bounds, rng, risk, optimiser)
        name = f"SafeBayes(loss={self.loss!r}, in_model={self.in_model!r})"
        if not isinstance(model, HasOtherLosses):
            raise ValueError(
                f"{name} needs a linear model of a given prior, got {type(model).__name__}"
            )
        if risk != "gibbs" or optimiser != "deterministic":
            raise ValueError(
                f"{name} has a loss of its own: risk must be 'gibbs' and optimiser "
                f"'deterministic', got {risk!r} and {optimiser!r}"
            )
        return super().select(model, data, bounds, rng, risk, optimiser)

    @property
    def _plain(self) -> bool:
        return self.loss == "log" and not self.in_model

    def curve(self, model: Model, rows: Data, plan: AnyPlan, risk: Risk) -> RiskCurve:
        """Return the curve of the loss."""
        if self._plain or not isinstance(model, HasOtherLosses):
            return super().curve(model, rows, plan, risk)
        return model.other_curve(rows, plan, self.loss, self.in_model)

    def plan(self, data: Data, rng: np.random.Generator) -> PrefixPlan | Plan:
        """Return a plan in which every prefix predicts the next row, or the next few."""
        n = len(data)
        if n <= self.start:
            raise ValueError(
                f"start must be less than the number of rows, got {self.start!r} for {n} rows"
            )
        if self.permutations:
            orders = np.stack([rng.permutation(n) for _ in range(self.permutations)])
        else:
            orders = np.arange(n)[None]
        stride, growth = (1, GROWTH) if self.stride is None else (self.stride, 0.0)
        first = -(-self.start // stride) * stride
        if first >= n:
            raise ValueError(
                f"stride must be less than the number of rows, got {stride!r} for {n} rows"
            )
        prefixes = PrefixPlan(data.weights, orders, first, self.transfer, growth, stride)
        return (
            prefixes if stride == 1 else prefixes.pairs()
        )  # an explicit stride is used by all models
