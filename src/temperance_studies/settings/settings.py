r"""The definition of a setting, and the settings of regression.

A setting is a model, a true distribution of data, and weighted test rows whose Gibbs risk is the
true risk R.  The Gibbs risks of the linear models depend on the test rows through z z', z y and y^2
only.  So any rows with the population's weighted means of these three give R exactly, without
sampling error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol

import numpy as np

from temperance import models
from temperance.data import Array
from temperance.protocols import Model
from temperance_studies.settings.noise import Noise

STORED_AS = "temperance.datasets.settings"  # module path that studies store

Rows = tuple[Array | None, Array, Array]
Version = Literal["as-stated", "as-coded"]
AS_STATED: Version = "as-stated"
AS_CODED: Version = "as-coded"
VERSIONS = (AS_STATED, AS_CODED)


class Setting(Protocol):
    """A model, a true distribution, and test rows that represent it.

    Settings are frozen dataclasses of plain parameters; their type and fields identify them.
    """

    @property
    def name(self) -> str:
        """Short description of the setting."""
        ...

    @property
    def exact(self) -> bool:
        """Whether the population has exactly the true moments."""
        ...

    @property
    def model(self) -> Model:
        """The model that is calibrated."""
        ...

    @property
    def population(self) -> Rows:
        """Inputs, responses and weights of test rows whose Gibbs risk is the true risk."""
        ...

    def draw(self, rng: np.random.Generator) -> tuple[Array | None, Array]:
        """Return a random data set (X, y)."""
        ...

    def __hash__(self) -> int:
        """Hash the fields."""
        ...


@dataclass(frozen=True)
class _GaussianDesign:
    """Rows z = (1, scale N(0, I)) of d columns and y = z'theta + noise, with theta ~ N(0, I)."""

    n: int
    d: int
    noise: Noise

    # Subclasses define these as fields with defaults.
    scale = 1.0
    seed = 0

    @property
    def exact(self) -> bool:
        """Whether the population has exactly the true second moments: True."""
        return True

    @property
    def theta(self) -> Array:
        """The true coefficients, drawn from the setting's own seed."""
        return np.random.default_rng(self.seed).standard_normal(self.d)

    @property
    def population(self) -> Rows:
        """D + 1 rows with the second moments of (z, y)."""
        return _second_moment_rows(self)

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return a random data set (X, y)."""
        inputs = self.scale * rng.standard_normal((self.n, self.d - 1))
        Z = np.column_stack([np.ones(self.n), inputs])
        return Z, Z @ self.theta + self.noise.draw(rng, self.n)


@dataclass(frozen=True)
class LinearSetting(_GaussianDesign):
    r"""Linear regression with a known noise variance, which may be wrong.

    .. math:: z = (1, s N(0, I)), \quad \theta \sim N(0, I), \quad y = z'\theta + \varepsilon

    Parameters
    ----------
    n, d : int
        Rows and columns; the first column is constant.
    noise : Noise
        True distribution of the noise.
    variance : float
        The noise variance that the model assumes.
    scale : float
        Standard deviation of the inputs.
    seed : int
        Seed of theta, which is the same for all data sets.
    version : {"as-stated", "as-coded"}

    Examples
    --------
    >>> from temperance_studies.settings import GaussianNoise
    >>> setting = LinearSetting(40, 20, GaussianNoise(8.0), variance=8.0)
    >>> setting.name
    'linear 40 x 20, variance 8'
    >>> X, y = setting.draw(np.random.default_rng(0))
    >>> X.shape, y.shape
    ((40, 20), (40,))
    """

    variance: float
    scale: float = 1.0
    seed: int = 0
    version: Version = "as-stated"

    @property
    def name(self) -> str:
        """Short description of the setting."""
        return f"linear {self.n} x {self.d}, variance {self.variance:g}{coded(self.version)}"

    @property
    def model(self) -> Model:
        """The model that is calibrated."""
        return models.GaussianLinear(noise_variance=self.variance)


@dataclass(frozen=True)
class UnknownVarianceSetting(_GaussianDesign):
    r"""Linear regression with a noise variance that the model infers.

    Parameters
    ----------
    n, d, noise, scale, seed, version
        As in :class:`LinearSetting`.
    a, b : float
        Shape and rate of the inverse gamma prior.
    """

    scale: float = 0.5
    a: float = 2.0
    b: float = 2.0
    seed: int = 0
    version: Version = "as-stated"

    @property
    def name(self) -> str:
        """Short description of the setting."""
        kind = type(self.noise).__name__.removesuffix("Noise")
        kind = kind if kind == "Gaussian" else kind.lower()
        return f"unknown variance, {kind} noise{coded(self.version)}"

    @property
    def model(self) -> Model:
        """The model that is calibrated."""
        return models.NormalInverseGammaLinear(a=self.a, b=self.b)


@dataclass(frozen=True)
class MeanSetting:
    r"""Observations around one mean, theta ~ N(0, 1).

    Parameters
    ----------
    n : int
    noise : Noise
        True distribution of the noise.
    variance : float
        The noise variance that the model assumes.
    seed : int
        Seed of theta.
    version : {"as-stated", "as-coded"}
    """

    n: int
    noise: Noise
    variance: float
    seed: int = 0
    version: Version = "as-stated"

    @property
    def name(self) -> str:
        """Short description of the setting."""
        return f"mean of {self.n}, variance {self.variance:g}{coded(self.version)}"

    @property
    def exact(self) -> bool:
        """Whether the population has exactly the true moments: True."""
        return True

    @property
    def model(self) -> Model:
        """The model that is calibrated."""
        return models.GaussianMean(noise_variance=self.variance)

    @property
    def theta(self) -> float:
        """The true mean, drawn from the setting's own seed."""
        return float(np.random.default_rng(self.seed).standard_normal())

    @property
    def population(self) -> Rows:
        """Two points with the first two moments of y."""
        return None, self.theta + np.sqrt(self.noise.variance) * np.array([-1.0, 1.0]), np.ones(2)

    def draw(self, rng: np.random.Generator) -> tuple[None, Array]:
        """Return a random data set (None, y)."""
        return None, self.theta + self.noise.draw(rng, self.n)


@dataclass(frozen=True)
class PolynomialSetting:
    r"""Inputs uniform on [-1, 1] and y = x^2 + 5 + noise, fitted by a polynomial.

    Parameters
    ----------
    n : int
    n_powers : int
        Columns of the model; its degree is one less.
    noise : Noise
        True distribution of the noise.
    variance : float
        The noise variance that the model assumes.
    noisy_test : bool
        Whether test responses have noise as well; it adds a constant to the Gibbs risk, and changes
        the predictive risk in other ways too.
    version : {"as-stated", "as-coded"}
    """

    n: int
    n_powers: int
    noise: Noise
    variance: float
    noisy_test: bool = True
    version: Version = "as-stated"

    @property
    def name(self) -> str:
        """Short description of the setting."""
        truth = f"{self.noise.variance:g}".removeprefix("0")
        assumed = f"{self.variance:g}".removeprefix("0")
        return f"polynomial, variance {assumed}, truth {truth}{coded(self.version)}"

    @property
    def exact(self) -> bool:
        """Whether the population has exactly the true moments: True."""
        return True

    @property
    def model(self) -> Model:
        """The model that is calibrated."""
        return models.Polynomial(n_powers=self.n_powers, noise_variance=self.variance)

    @staticmethod
    def truth(x: Array) -> Array:
        """Return the regression function x^2 + 5."""
        return x**2 + 5

    @property
    def population(self) -> Rows:
        """Gauss-Legendre points, which integrate the squared powers exactly."""
        nodes, weights = np.polynomial.legendre.leggauss(max(self.n_powers, 3))
        x = np.tile(nodes, 2)
        deviation = np.sqrt(self.noise.variance) if self.noisy_test else 0.0
        y = self.truth(x) + deviation * np.repeat([-1.0, 1.0], len(nodes))
        return x, y, np.tile(weights, 2)

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return a random data set (x, y)."""
        x = rng.uniform(-1.0, 1.0, self.n)
        return x, self.truth(x) + self.noise.draw(rng, self.n)

    def draw_test(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return random test data (x, y), without noise unless ``noisy_test``."""
        x, y = self.draw(rng)
        return x, y if self.noisy_test else self.truth(x)


def coded(version: Version) -> str:
    """Return the part of a name that gives the version."""
    return ", as coded" if version == "as-coded" else ""


def frozen(*arrays: Array) -> tuple[Array, ...]:
    """Return arrays as read-only, for a cache."""
    for array in arrays:
        array.flags.writeable = False
    return arrays


@cache
def _second_moment_rows(setting: _GaussianDesign) -> tuple[Array, Array, Array]:
    # E zz' = diag(1, scale^2, ...).  A root L of the second moment of (z, y), taken as d + 1 rows
    # times sqrt(d + 1), has the mean square L L'.
    d, theta = setting.d, setting.theta
    square = np.diag(np.r_[1.0, np.full(d - 1, setting.scale**2)])
    cross = square @ theta
    moment = np.block([[square, cross[:, None]], [cross, theta @ cross + setting.noise.variance]])
    rows = np.sqrt(d + 1) * np.linalg.cholesky(moment).T
    X, y, weights = frozen(rows[:, :-1].copy(), rows[:, -1].copy(), np.ones(d + 1))
    return X, y, weights
