r"""Logistic regression in which a share of the labels is random, with scaled coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from temperance.checks import one_of
from temperance.data import Array
from temperance.protocols import Model
from temperance_studies.settings.logistic import APPROXIMATIONS
from temperance_studies.settings.logistic_risk import GaussianInputs
from temperance_studies.settings.settings import Rows, Version, frozen

STORED_AS = "temperance.datasets.noisy_labels"  # module path that studies store

POINTS = 1024


@dataclass(frozen=True)
class NoisyLabelSetting:
    r"""Labels of a logistic model, of which a share is redrawn with equal probabilities.

    .. math::

        z = (1, s N(0, I)), \quad \theta \sim c N(0, I), \quad
        P(y = 1) = (1 - p) / (1 + e^{-z'\theta}) + p / 2

    The true Gibbs risk is exact, as in :class:`temperance_studies.settings.LogisticSetting`.

    Parameters
    ----------
    n, d : int
        Rows and columns; the first column is constant.
    approximation : {"jaakkola", "mean-field", "full-covariance", "laplace"}
    scale : float
        Standard deviation s of the inputs.
    size : float
        Factor c of the coefficients.
    noise : float
        Share p of the labels that are redrawn.
    seed : int
        Seed of theta, which is the same for all data sets.

    Examples
    --------
    >>> NoisyLabelSetting(50, 30, "laplace", noise=0.4).name
    'logistic 50 x 30, laplace, scale 0.5, size 1, noise 0.4'
    """

    n: int
    d: int
    approximation: str
    scale: float = 0.5
    size: float = 1.0
    noise: float = 0.0
    seed: int = 0
    version: Version = "as-stated"

    def __post_init__(self) -> None:
        """Refuse an unknown approximation."""
        one_of("approximation", self.approximation, tuple(APPROXIMATIONS))

    @property
    def name(self) -> str:
        """Short description of the setting."""
        return (
            f"logistic {self.n} x {self.d}, {self.approximation}, scale {self.scale:g}, "
            f"size {self.size:g}, noise {self.noise:g}"
        )

    @property
    def exact(self) -> bool:
        """Whether the population has exactly the true moments: False, it approximates them."""
        return False

    @property
    def model(self) -> Model:
        """The model that is calibrated."""
        return APPROXIMATIONS[self.approximation]()

    @property
    def theta(self) -> Array:
        """The true coefficients, drawn from the setting's own seed."""
        return self.size * np.random.default_rng(self.seed).standard_normal(self.d)

    @property
    def population(self) -> Rows:
        """Points with both labels, weighted by their probabilities."""
        return _rows(self)

    def gibbs_risk(self, mean: Array, cov: Array) -> float:
        """Return the true Gibbs risk of the posterior N(mean, cov)."""
        return _inputs(self).risk(mean, cov)

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return a random data set (X, y) with both classes."""
        while True:
            inputs = self.scale * rng.standard_normal((self.n, self.d - 1))
            Z = np.column_stack([np.ones(self.n), inputs])
            y = (rng.random(self.n) < _probability(self, Z @ self.theta)).astype(float)
            if np.ptp(y):
                return Z, y


def _probability(setting: NoisyLabelSetting, predictor: Array) -> Array:
    return (1 - setting.noise) * np.exp(-np.logaddexp(0.0, -predictor)) + setting.noise / 2


@cache
def _inputs(setting: NoisyLabelSetting) -> GaussianInputs:
    d, scale, theta = setting.d, setting.scale, setting.theta
    mean = np.eye(d)[0]
    root = np.vstack([np.zeros(d - 1), scale * np.eye(d - 1)])
    # By Stein's lemma E[p(z'theta) g] = scale theta E[p'], with z'theta ~ N(theta_0, spread^2).
    spread = scale * float(np.linalg.norm(theta[1:]))
    steps = np.linspace(-10.0, 10.0, 20001)
    weights = np.exp(-(steps**2) / 2)
    weights /= weights.sum()
    p = np.exp(-np.logaddexp(0.0, -(theta[0] + spread * steps)))
    share = 1 - setting.noise
    product = share * scale**2 * theta * (weights @ (p * (1 - p)))
    product[0] = share * (weights @ p) + setting.noise / 2
    return GaussianInputs(np.ones(1), mean[None], root[None], product)


@cache
def _rows(setting: NoisyLabelSetting) -> tuple[Array, Array, Array]:
    from scipy.special import ndtri
    from scipy.stats import qmc

    points = ndtri(qmc.Sobol(setting.d - 1, seed=0).random(POINTS))
    Z = np.column_stack([np.ones(POINTS), setting.scale * points])
    p = _probability(setting, Z @ setting.theta)
    X, y, weights = frozen(
        np.concatenate([Z, Z]),
        np.r_[np.ones(POINTS), np.zeros(POINTS)],
        np.r_[p, 1 - p] / POINTS,
    )
    return X, y, weights
