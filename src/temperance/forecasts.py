r"""Forecasts: distributions of n numbers, each a mixture of Student-t or Gaussian laws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from temperance.checks import open_units
from temperance.data import Array, batches

STEPS = 100  # of the search for a quantile, at most
PRECISION = 1e-10  # of a quantile, relative to the widest component or the distance from the mean
ROUNDING = 16  # units of the last digit, within which sums of many terms are right
LEVELS = 400  # of quantiles in the CRPS of a transformed law
LEAST_DOF = 0.5  # with so few degrees of freedom a CRPS is infinite
REACH, PANELS, NODES = 6.0, 61, 8  # of the integral of a CRPS: normal quantiles, and nodes


@dataclass(frozen=True, eq=False)
class Forecast:
    r"""Distributions of n numbers, each sum_k weights_k (location_k + scale_k T_k).

    T_k is Student-t with ``dof_k`` degrees of freedom, Gaussian if these are infinite.

    Parameters
    ----------
    location, scale : arrays of shape (parts, n)
    dof : array of shape (parts,)
    weights : array of shape (parts,), positive with sum 1

    Examples
    --------
    >>> import numpy as np
    >>> location, gaussian = np.array([[-1.0], [1.0]]), np.full(2, np.inf)
    >>> law = Forecast(location, np.ones((2, 1)), gaussian, np.full(2, 0.5))
    >>> print(law.mean, law.std.round(3), law.interval(0.95).round(3))
    [0.] [1.414] [[-2.646  2.646]]
    """

    location: Array
    scale: Array
    dof: Array
    weights: Array

    @classmethod
    def single(cls, location: Array, scale: Array, dof: float = np.inf) -> Forecast:
        """Return distributions of one part."""
        return cls(location[None], scale[None], np.array([dof]), np.ones(1))

    @property
    def mean(self) -> Array:
        """Mean of each number, or the mean of the parts' medians where tails have none."""
        return self.weights @ self.location

    @property
    def std(self) -> Array:
        """Standard deviation; infinite if a part has two degrees of freedom or fewer."""
        with np.errstate(divide="ignore", invalid="ignore"):
            wider = np.where(self.dof > 2, self.dof / (self.dof - 2), np.inf)
        wider = np.where(np.isinf(self.dof), 1.0, wider)
        with np.errstate(invalid="ignore"):  # a part without scale is its location
            square = np.where(self.scale > 0, self.scale**2 * wider[:, None], 0.0)
        return np.sqrt(self.weights @ (square + (self.location - self.mean) ** 2))

    def cdf(self, value: ArrayLike) -> Array:
        """Return the probability of at most ``value``, (n,) or (levels, n)."""
        return self._sum(special.ndtr, special.stdtr, np.asarray(value, dtype=float))

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log density at ``value``, (n,) or (levels, n)."""
        at = np.asarray(value, dtype=float)
        parts = [
            standard_log_density((at - location) / scale, dof) - np.log(scale)
            for location, scale, dof in zip(self.location, self.scale, self.dof, strict=True)
        ]
        if len(parts) == 1:
            return parts[0]
        return special.logsumexp(np.stack(parts, axis=-1) + np.log(self.weights), axis=-1)

    def quantile(self, q: ArrayLike) -> Array:
        """Return the quantiles of order q: (n,), or (levels, n) for several q."""
        at = open_units("q", q)
        standard = [
            special.ndtri(at) if np.isinf(dof) else special.stdtrit(dof, at) for dof in self.dof
        ]
        parts = np.stack(
            [
                location + np.multiply.outer(t, scale)
                for t, location, scale in zip(standard, self.location, self.scale, strict=True)
            ]
        )
        if len(parts) == 1:
            return parts[0]
        found = np.tensordot(self.weights, parts, 1)
        # With few degrees of freedom a quantile is many scales away; rounding is relative to it.
        unit = np.maximum(self.scale.max(axis=0), np.abs(found - self.mean))
        bracket = parts.min(axis=0), parts.max(axis=0)
        return invert(self.cdf, self._density, at[..., None], bracket, found, unit)

    def interval(self, level: ArrayLike = 0.95) -> Array:
        """Return the ends of central intervals: (n, 2), or (levels, n, 2) for several levels."""
        return central_interval(self, level)

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> Array:
        """Return ``size`` independent draws of each number, shape (size, n)."""
        rng = np.random.default_rng(seed)
        n = self.location.shape[1]
        part = rng.choice(len(self.weights), (size, n), p=self.weights)
        square = np.ones((size, n))
        finite = np.isfinite(self.dof)[part]
        dof = self.dof[part][finite]
        square[finite] = dof / rng.chisquare(dof)
        places = np.arange(n)
        deviation = self.scale[part, places] * np.sqrt(square) * rng.standard_normal((size, n))
        return self.location[part, places] + deviation

    def crps(self, value: ArrayLike) -> Array:
        r"""Return the continuous ranked probability score at ``value``, (n,): smaller is better.

        .. math:: \int (F(x) - 1\{x \ge y\})^2 dx,

        by quadrature; infinite if a part has half a degree of freedom or fewer.
        """
        y = np.broadcast_to(np.asarray(value, dtype=float), self.location.shape[1:])
        if self.dof.min() <= LEAST_DOF:
            return np.full(y.shape, np.inf)
        found = np.empty(len(y))
        for part in batches(len(y), 4 * PANELS * NODES):
            law = Forecast(self.location[:, part], self.scale[:, part], self.dof, self.weights)
            found[part] = law._crps(y[part])
        return found

    def transformed(
        self, to: Callable[[Array], Array], back: Callable[[Array], Array]
    ) -> TransformedForecast:
        """Return the distributions of increasing functions ``to`` of the numbers."""
        return TransformedForecast(self, to, back)

    def mixed(self, weights: Array, others: Sequence[Forecast]) -> Forecast:
        """Return the mixture of these distributions and others of the same numbers."""
        laws = [self, *others]
        return Forecast(
            np.concatenate([law.location for law in laws]),
            np.concatenate([law.scale for law in laws]),
            np.concatenate([law.dof for law in laws]),
            np.concatenate([w * law.weights for w, law in zip(weights, laws, strict=True)]),
        )

    def _density(self, value: Array) -> Array:
        return np.exp(self.log_density(value))

    def _sum(self, normal: Any, student: Any, value: Array) -> Array:
        total: Any = 0.0
        for weight, location, scale, dof in zip(
            self.weights, self.location, self.scale, self.dof, strict=True
        ):
            with np.errstate(divide="ignore", invalid="ignore"):
                standard = (value - location) / scale
            total = total + weight * (normal(standard) if np.isinf(dof) else student(dof, standard))
        return total

    def _crps(self, y: Array) -> Array:
        # Panels between quantiles, and between the response and the ends; F^2 below it, (1 - F)^2
        # above.  Beyond the ends tails are powers of the distance.
        ends = self.quantile(special.ndtr(np.linspace(-REACH, REACH, PANELS)))
        ends = np.concatenate([[np.minimum(ends[0], y)], ends, [np.maximum(ends[-1], y)]])
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        total = np.zeros(len(y))
        split = np.clip(y, ends[:-1], ends[1:])
        for left, right, above in ((ends[:-1], split, False), (split, ends[1:], True)):
            half = (right - left) / 2
            at = left[:, None] + half[:, None] * (1 + nodes[:, None])  # (panels, nodes, n)
            F = self.cdf(at)
            total += ((weights @ (1 - F if above else F) ** 2) * half).sum(axis=0)
        dof = self.dof.min()
        if np.isfinite(dof):
            for end, missed in ((ends[0], self.cdf(ends[0])), (ends[-1], 1 - self.cdf(ends[-1]))):
                total += np.abs(end - self.mean) * missed**2 / (2 * dof - 1)
        return total


@dataclass(frozen=True, eq=False)
class TransformedForecast:
    """Distributions of increasing functions of other numbers.

    Parameters
    ----------
    law : the distributions of the others
    to, back : the function and its inverse
    """

    law: Any
    to: Callable[[Array], Array]
    back: Callable[[Array], Array]

    def cdf(self, value: ArrayLike) -> Array:
        """Return the probability of at most ``value``."""
        return self.law.cdf(self.back(np.asarray(value, dtype=float)))

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log density at ``value``, with the slope of ``back`` by differences."""
        at = np.asarray(value, dtype=float)
        step = 1e-6 * np.maximum(np.abs(at), 1e-6)
        slope = (self.back(at + step) - self.back(at - step)) / (2 * step)
        return self.law.log_density(self.back(at)) + np.log(slope)

    def quantile(self, q: ArrayLike) -> Array:
        """Return the quantiles of order q."""
        return self.to(self.law.quantile(q))

    def interval(self, level: ArrayLike = 0.95) -> Array:
        """Return the ends of central intervals."""
        return self.to(self.law.interval(level))

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> Array:
        """Return independent draws, shape (size, n)."""
        return self.to(self.law.sample(size, seed))

    def crps(self, value: ArrayLike) -> Array:
        """Return the CRPS, twice the integral of the quantile score over levels, by quadrature."""
        nodes, weights = np.polynomial.legendre.leggauss(LEVELS)
        levels, y = (1 + nodes) / 2, np.asarray(value, dtype=float)
        quantiles = self.quantile(levels)
        return weights @ (((y < quantiles) - levels[:, None]) * (quantiles - y))


def standard_log_density(value: Array, dof: float) -> Array:
    """Return the log density of Student's t, or of the standard normal."""
    if np.isinf(dof):
        return -0.5 * (value**2 + np.log(2 * np.pi))
    normaliser = log_gamma_half_step(dof / 2) - 0.5 * np.log(np.pi * dof)
    return normaliser - (dof + 1) / 2 * np.log1p(value**2 / dof)


def log_gamma_half_step(a: Any) -> Any:
    """Return log Gamma(a + 1/2) - log Gamma(a), also of complex a."""
    if np.iscomplexobj(a):
        return special.loggamma(a + 0.5) - special.loggamma(a)
    return np.log(special.poch(a, 0.5))


def central_interval(law: Any, level: ArrayLike) -> Array:
    """Return the ends of the central intervals of probability ``level``, on the last axis."""
    tail = (1 - open_units("level", level)) / 2
    return np.stack([law.quantile(tail), law.quantile(1 - tail)], axis=-1)


def invert(
    cdf: Callable[[Array], Array],
    density: Callable[[Array], Array],
    goal: Array,
    bracket: tuple[Array, Array],
    start: Array,
    unit: Array | float,
) -> Array:
    """Return where distribution functions reach the goal, by Newton's method within a bracket.

    It solves for the log odds, which are nearly straight: F itself is flat in the tails.
    """
    (low, high), found = bracket, start
    for _ in range(STEPS):
        # Numbers of scale 0 are known: their bracket is a point.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            reached = cdf(found)
            missing = special.logit(goal) - special.logit(reached)
            newton = found + missing * reached * (1 - reached) / density(found)
        below = reached < goal
        low, high = np.where(below, found, low), np.where(below, high, found)
        following = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
        near = np.abs(following - found) <= np.maximum(
            PRECISION * unit, ROUNDING * np.spacing(np.abs(found))
        )
        near |= np.abs(goal - reached) <= ROUNDING * np.spacing(goal)
        found = following
        if near.all():
            break
    return found


def forecast(model: Any, X: Any) -> Any:
    """Return the forecast of a fitted estimator, inside scikit-learn's meta-estimators as well.

    Pipelines, searches and ``TransformedTargetRegressor`` are unwrapped; their last estimator
    must have a method ``forecast``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from temperance import GibbsRegressor
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> model = make_pipeline(PolynomialFeatures(2), GibbsRegressor()).fit(X, np.cos(X[:, 0]))
    >>> forecast(model, [[0.5]]).mean.round(2)
    array([0.88])
    """
    if hasattr(model, "forecast"):
        return model.forecast(X)
    if hasattr(model, "best_estimator_"):
        return forecast(model.best_estimator_, X)
    if hasattr(model, "steps"):
        for _, step in model.steps[:-1]:
            X = X if step is None or step == "passthrough" else step.transform(X)
        return forecast(model.steps[-1][1], X)
    if hasattr(model, "regressor_") and hasattr(model, "transformer_"):
        law = forecast(model.regressor_, X)
        one = np.array([0.0, 1.0])
        to, back = (
            _columnwise(change)
            for change in (model.transformer_.inverse_transform, model.transformer_.transform)
        )
        if np.diff(to(one)) <= 0:
            raise ValueError("model must transform its target by an increasing function")
        return TransformedForecast(law, to, back)
    raise ValueError(f"model must have a method forecast, got {type(model).__name__}")


def _columnwise(change: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def apply(values: Array) -> Array:
        return np.asarray(change(values.reshape(-1, 1))).reshape(values.shape)

    return apply
