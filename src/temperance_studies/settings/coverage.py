r"""Settings with a known parameter, for the coverage of credible sets.

Rows are z = (1, N(0, I)).  The parameter is the true one or, where the model is wrong, the
pseudo-true one: the minimiser of the population's mean loss.  All settings are this library's own.
Those of a normal mean, of unequal variances, of a quantile and of classes are of the four kinds
that Wu and Martin (arXiv:2012.11349) compare rates on; their designs and numbers are others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol

import numpy as np
from scipy import special, stats

from temperance import losses, models
from temperance.data import Array, Data, Labels
from temperance.protocols import HasInformation, Model
from temperance_studies.settings.settings import Setting, frozen

STORED_AS = "temperance.datasets.coverage"  # module path that studies store

POINTS = 2**16  # inputs of the population of a setting without a closed form
NEGLIGIBLE = 1e-12  # weight of a row of that population
WIDE = 100.0  # prior variance that hardly shrinks


class ParameterSetting(Protocol):
    """A model, a true distribution, and the parameter that credible sets should cover.

    Settings are frozen dataclasses of plain parameters; their type and fields identify them.
    """

    @property
    def name(self) -> str:
        """Short description of the setting."""
        ...

    @property
    def model(self) -> Model:
        """The model that is calibrated."""
        ...

    @property
    def parameter(self) -> Array:
        """The true or pseudo-true parameter, shape (p,)."""
        ...

    @property
    def groups(self) -> Labels | None:
        """Labels of dependent rows of every data set, or None if rows are independent."""
        ...

    def draw(self, rng: np.random.Generator) -> tuple[Array | None, Array]:
        """Return a random data set (X, y)."""
        ...

    def __hash__(self) -> int:
        """Hash the fields."""
        ...


def parameter_of(setting: ParameterSetting | Setting) -> Array:
    """Return the setting's parameter; without one, the minimiser on its population."""
    given = getattr(setting, "parameter", None)
    return _minimiser(setting) if given is None else np.asarray(given, dtype=float)


@cache
def _minimiser(setting: Any) -> Array:
    model, population = setting.model, getattr(setting, "population", None)
    if population is None or not isinstance(model, HasInformation):
        raise ValueError(
            f"settings must have a parameter, or a population and a model with information(data), "
            f"for coverage, got {setting.name!r}"
        )
    X, y, weights = population
    rows = np.empty((len(y), 0)) if X is None else X
    return frozen(model.information(Data(rows, y, weights)).minimiser)[0]


@dataclass(frozen=True)
class MeanCoverage:
    """Observations N(1, variance); the model assumes the variance 1.

    Parameters
    ----------
    n : int
    variance : float
        The true variance.
    """

    n: int
    variance: float = 4.0

    groups = None

    @property
    def name(self) -> str:
        """Short description of the setting."""
        return f"normal mean, variance {self.variance:g} not 1, n = {self.n}"

    @property
    def model(self) -> Model:
        """The model that is calibrated."""
        return models.GaussianMean(prior_cov=WIDE)

    @property
    def parameter(self) -> Array:
        """The true mean."""
        return np.ones(1)

    def draw(self, rng: np.random.Generator) -> tuple[None, Array]:
        """Return a random data set (None, y)."""
        return None, 1.0 + np.sqrt(self.variance) * rng.standard_normal(self.n)


@dataclass(frozen=True)
class _Rows:
    """Rows z = (1, N(0, I)) and responses around z'theta."""

    n: int

    groups = None
    coefficients = (1.0, 1.0, -1.0, 0.0)

    @property
    def parameter(self) -> Array:
        """The true coefficients of z."""
        return np.array(self.coefficients)

    def inputs(self, rng: np.random.Generator) -> Array:
        """Return random rows z."""
        columns = len(self.coefficients) - 1
        return np.column_stack([np.ones(self.n), rng.standard_normal((self.n, columns))])

    def responses(self, Z: Array, rng: np.random.Generator) -> Array:
        """Return random responses to rows."""
        raise NotImplementedError(f"{type(self).__name__} must draw its responses")

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return a random data set (Z, y), with the column of ones."""
        Z = self.inputs(rng)
        return Z, self.responses(Z, rng)


@dataclass(frozen=True)
class LinearCoverage(_Rows):
    r"""Linear regression with normal or other noise.

    Parameters
    ----------
    n : int
    noise : {"normal", "unequal", "student"}
        N(0, 1); normal with the standard deviation \|x_1\|; or Student-t with 3 degrees of freedom.
    square : float
        Coefficient of x_1^2, which the model omits; the pseudo-true intercept is larger by it.
    """

    noise: Literal["normal", "unequal", "student"] = "normal"
    square: float = 0.0

    @property
    def name(self) -> str:
        """Short description of the setting."""
        kind = {"normal": "right model", "unequal": "sd = |x|", "student": "t3 noise"}[self.noise]
        return f"linear, {'omitted square' if self.square else kind}, n = {self.n}"

    @property
    def model(self) -> Model:
        """The model that is calibrated; it infers the noise variance."""
        return models.NormalInverseGammaLinear(a=0.1, b=0.1, prior_cov=WIDE)

    @property
    def parameter(self) -> Array:
        """The coefficients of the best linear function."""
        return np.array(self.coefficients) + self.square * np.array([1.0, 0.0, 0.0, 0.0])

    def responses(self, Z: Array, rng: np.random.Generator) -> Array:
        """Return random responses to rows."""
        noise = (
            rng.standard_t(3, self.n) if self.noise == "student" else rng.standard_normal(self.n)
        )
        if self.noise == "unequal":
            noise = np.abs(Z[:, 1]) * noise
        return Z @ self.coefficients + self.square * Z[:, 1] ** 2 + noise


@dataclass(frozen=True)
class ClusterCoverage(LinearCoverage):
    """Linear regression on groups of rows that share x_1 and a part of their noise.

    Parameters
    ----------
    n, noise, square
        As in :class:`LinearCoverage`.
    size : int
        Rows of a group.
    """

    size: int = 4

    @property
    def name(self) -> str:
        """Short description of the setting."""
        return f"linear, groups of {self.size}, n = {self.n}"

    @property
    def groups(self) -> Labels:  # type: ignore[override]
        """Labels of the groups."""
        return np.arange(self.n) // self.size

    def inputs(self, rng: np.random.Generator) -> Array:
        """Return random rows; the first input is the same within a group."""
        Z = super().inputs(rng)
        Z[:, 1] = Z[self.groups * self.size, 1]
        return Z

    def responses(self, Z: Array, rng: np.random.Generator) -> Array:
        """Return random responses: the groups' part of the noise has variance 1 as well."""
        common = rng.standard_normal(self.n)[self.groups * self.size]
        return super().responses(Z, rng) + common


@dataclass(frozen=True)
class QuantileCoverage(_Rows):
    """Median regression with Student-t noise of 3 degrees of freedom."""

    @property
    def name(self) -> str:
        """Short description of the setting."""
        return f"median, t3 noise, n = {self.n}"

    @property
    def model(self) -> Model:
        """The model that is calibrated."""
        return models.GibbsLinear(losses.Pinball(0.5), "full-covariance", prior_cov=WIDE)

    def responses(self, Z: Array, rng: np.random.Generator) -> Array:
        """Return random responses to rows."""
        return Z @ self.coefficients + rng.standard_t(3, self.n)


@dataclass(frozen=True)
class LinkCoverage(_Rows):
    """Classes with P(y = 1) = 1 - exp(-exp(z'theta)), fitted by a logistic model."""

    coefficients = (-0.5, 0.8, -0.5, 0.0)

    @property
    def name(self) -> str:
        """Short description of the setting."""
        return f"logistic, wrong link, n = {self.n}"

    @property
    def model(self) -> Model:
        """The model that is calibrated."""
        return models.LaplaceLogistic(prior_cov=WIDE)

    @property
    def parameter(self) -> Array:
        """The pseudo-true coefficients, from 2^16 quasi-random inputs."""
        return _best_logistic(self.coefficients)

    def responses(self, Z: Array, rng: np.random.Generator) -> Array:
        """Return random classes 0 and 1."""
        return (rng.random(self.n) < _complementary(Z @ self.coefficients)).astype(float)


@dataclass(frozen=True)
class CountCoverage(_Rows):
    """Counts with a log link whose variance is mu + mu^2 / 2, fitted by a Poisson model."""

    coefficients = (0.5, 0.5, -0.3, 0.0)

    @property
    def name(self) -> str:
        """Short description of the setting."""
        return f"Poisson, overdispersed, n = {self.n}"

    @property
    def model(self) -> Model:
        """The model that is calibrated."""
        return models.GibbsLinear(losses.Poisson(), "full-covariance", prior_cov=WIDE)

    def responses(self, Z: Array, rng: np.random.Generator) -> Array:
        """Return random counts: the rate of each row has a gamma factor of shape 2."""
        rate = np.exp(Z @ self.coefficients) * rng.gamma(2.0, 0.5, self.n)
        return rng.poisson(rate).astype(float)


def _complementary(u: Array) -> Array:
    """Return 1 - exp(-exp(u))."""
    return -np.expm1(-np.exp(u))


@cache
def _best_logistic(coefficients: tuple[float, ...]) -> Array:
    points = stats.qmc.Sobol(len(coefficients) - 1, seed=0).random(POINTS)
    Z = np.column_stack([np.ones(POINTS), special.ndtri(points)])
    p = _complementary(Z @ np.array(coefficients))
    # Each input is two rows: class 1 with the weight p, class 0 with 1 - p.
    rows, y = np.tile(Z, (2, 1)), np.repeat([1.0, 0.0], POINTS)
    weights = np.concatenate([p, 1 - p])
    used = weights > NEGLIGIBLE
    data = Data(rows[used], y[used], weights[used])
    return frozen(models.LaplaceLogistic(prior_cov=WIDE).information(data).minimiser)[0]


COVERAGE: dict[str, Any] = {
    "mean": MeanCoverage,
    "right": LinearCoverage,
    "heteroscedastic": lambda n: LinearCoverage(n, "unequal"),
    "t3": lambda n: LinearCoverage(n, "student"),
    "omitted-square": lambda n: LinearCoverage(n, square=1.0),
    "clusters": lambda n: ClusterCoverage(n, size=2 if n < 80 else 4),
    "logistic": LinkCoverage,
    "poisson": CountCoverage,
    "median": QuantileCoverage,
}
