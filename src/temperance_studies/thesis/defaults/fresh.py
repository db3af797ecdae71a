r"""Settings with which the default of forecasts is confirmed.

Regressions and classifications with correlated or heavy inputs, more columns than rows, heavy
tails, clusters, a wrong link, six rows, and five thousand.  The *fresh* ones were written to
confirm the first form of the rule, and searched for the second; no search has seen the *unseen*.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from scipy import special, stats

from temperance.data import Array
from temperance.protocols import Model
from temperance_studies.settings import GaussianNoise, MixtureNoise, Setting, StudentNoise
from temperance_studies.settings.logistic import APPROXIMATIONS
from temperance_studies.settings.settings import Rows, frozen
from temperance_studies.thesis.inputs import GaussianRows, HeavyRows, Inputs
from temperance_studies.thesis.stress import StressSetting

STORED_AS = "temperance_thesis.defaults.fresh"  # module path that studies store

POINTS = 1024  # rows of the population of a classification, each with both labels
LINKS = {
    "logistic": special.expit,
    "cauchit": stats.cauchy.cdf,
    "complementary log-log": lambda u: -np.expm1(-np.exp(u)),
}


@dataclass(frozen=True)
class ClusteredSetting(StressSetting):
    """Rows in clusters, whose members share a part of the noise; new rows are of new clusters.

    Parameters
    ----------
    size : int
        Rows of a cluster.
    shared : float
        Variance of the noise that a cluster shares, in addition to the noise of its rows.
    """

    size: int = 5
    shared: float = 1.0

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return a random data set (X, y)."""
        Z, y = super().draw(rng)
        return Z, y + _of_clusters(rng, len(y), self.size, self.shared)

    def draw_test(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return rows each of which is a cluster of its own."""
        Z, y = super().draw(rng)
        return Z, y + _of_clusters(rng, len(y), 1, self.shared)


@dataclass(frozen=True)
class LinkSetting:
    r"""Labels with any link, inputs and clusters, for a logistic model.

    .. math:: P(y = 1) = F(z'\theta + u_g), \quad \theta \sim N(0, I / d), \quad u_g \sim N(0, v)

    Parameters
    ----------
    n, d : int
    approximation : {"jaakkola", "mean-field", "full-covariance", "laplace"}
    link : {"logistic", "cauchit", "complementary log-log"}
        The function F; the model's is logistic.
    inputs : Inputs
    size, shared : int, float
        Rows of a cluster g, and the variance v of its intercept.
    seed : int
        Seed of theta, which is the same for all data sets.
    """

    n: int
    d: int
    approximation: str
    link: Literal["logistic", "cauchit", "complementary log-log"] = "logistic"
    inputs: Inputs = GaussianRows()
    size: int = 1
    shared: float = 0.0
    seed: int = 0

    @property
    def name(self) -> str:
        """Short description of the setting."""
        words = [f"logistic {self.n} x {self.d}", self.approximation]
        words += [f"{self.link} link"] if self.link != "logistic" else []
        words += [_words(self.inputs)] if self.inputs != GaussianRows() else []
        words += [f"clusters of {self.size}"] if self.shared else []
        return ", ".join(words)

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
        return 2 * np.random.default_rng(self.seed).standard_normal(self.d) / np.sqrt(self.d)

    @property
    def population(self) -> Rows:
        """Random rows of new clusters, each with both labels, weighted by their probabilities."""
        return _population(self)

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return a random data set (X, y) in which both labels occur."""
        while True:
            Z = self.inputs.draw(rng, self.n, self.d)
            predictor = Z @ self.theta + _of_clusters(rng, self.n, self.size, self.shared)
            y = (rng.random(self.n) < LINKS[self.link](predictor)).astype(float)
            if np.ptp(y):
                return Z, y


def _of_clusters(rng: np.random.Generator, n: int, size: int, variance: float) -> Array:
    """Return Gaussian numbers that each ``size`` rows share."""
    return np.repeat(np.sqrt(variance) * rng.standard_normal(-(-n // size)), size)[:n]


def _words(inputs: Inputs) -> str:
    if isinstance(inputs, GaussianRows):
        return f"correlation {inputs.correlation:g}"
    return "heavy inputs"


@cache
def _population(setting: LinkSetting) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(POINTS)
    Z = setting.inputs.draw(rng, POINTS, setting.d)
    predictor = Z @ setting.theta + _of_clusters(rng, POINTS, 1, setting.shared)
    p = LINKS[setting.link](predictor)
    X, y, weights = frozen(
        np.concatenate([Z, Z]),
        np.r_[np.ones(POINTS), np.zeros(POINTS)],
        np.r_[p, 1 - p] / POINTS,
    )
    return X, y, weights


def fresh_regressions() -> dict[str, Setting]:
    """Return ten regressions."""
    g, tails = GaussianNoise, StudentNoise(1.0)
    outliers = MixtureNoise(1.0, 49.0, share=0.97)
    return _named(
        StressSetting(
            "80 x 30, correlation .95, unknown variance",
            80,
            30,
            g(2.0),
            None,
            GaussianRows(correlation=0.95),
        ),
        StressSetting("30 x 60, variance 2", 30, 60, g(2.0), 2.0),
        StressSetting("25 x 50, unknown variance", 25, 50, g(0.5)),
        StressSetting("80 x 15, t3 noise, variance 1", 80, 15, tails, 1.0),
        StressSetting("80 x 15, t3 noise, unknown variance", 80, 15, tails),
        StressSetting("6 x 2, variance 1", 6, 2, g(1.0), 1.0),
        StressSetting("6 x 2, unknown variance", 6, 2, g(1.0)),
        StressSetting("5000 x 10, variance 1, truth 3", 5000, 10, g(3.0), 1.0),
        StressSetting("5000 x 20, outliers, unknown variance", 5000, 20, outliers),
        ClusteredSetting("100 x 6, clusters of 5, variance 1", 100, 6, g(1.0), 1.0),
    )


def fresh_classifications() -> dict[str, Setting]:
    """Return eight classifications."""
    correlated = GaussianRows(correlation=0.9)
    return _named(
        LinkSetting(100, 5, "laplace", "cauchit"),
        LinkSetting(60, 10, "mean-field", "complementary log-log"),
        LinkSetting(80, 20, "laplace", inputs=correlated),
        LinkSetting(60, 15, "jaakkola", inputs=HeavyRows()),
        LinkSetting(20, 40, "laplace"),
        LinkSetting(100, 6, "full-covariance", size=5, shared=1.0),
        LinkSetting(6, 2, "laplace"),
        LinkSetting(5000, 10, "laplace", "cauchit"),
    )


def unseen_regressions() -> dict[str, Setting]:
    """Return ten regressions that no search has seen."""
    g, tails = GaussianNoise, StudentNoise(2.0)
    outliers = MixtureNoise(0.5, 25.0, share=0.95)
    alike = GaussianRows(correlation=0.7)
    return _named(
        StressSetting("15 x 4, variance 1, truth 2", 15, 4, g(2.0), 1.0),
        StressSetting("45 x 35, unknown variance", 45, 35, g(1.5)),
        StressSetting("120 x 8, t3 noise, variance 2", 120, 8, tails, 2.0),
        StressSetting("70 x 25, correlation .7, variance 1, truth 3", 70, 25, g(3.0), 1.0, alike),
        StressSetting("35 x 90, unknown variance", 35, 90, g(1.0)),
        StressSetting("8 x 3, unknown variance", 8, 3, g(2.0)),
        StressSetting("2000 x 40, variance 2", 2000, 40, g(2.0), 2.0),
        StressSetting("90 x 12, outliers, unknown variance", 90, 12, outliers),
        StressSetting("150 x 10, bend, unknown variance", 150, 10, g(1.0), bend=1.0),
        ClusteredSetting("120 x 4, clusters of 3, unknown variance", 120, 4, g(1.0), size=3),
    )


def unseen_classifications() -> dict[str, Setting]:
    """Return six classifications that no search has seen."""
    alike = GaussianRows(correlation=0.7)
    return _named(
        LinkSetting(150, 8, "jaakkola", "cauchit"),
        LinkSetting(40, 10, "full-covariance"),
        LinkSetting(70, 25, "mean-field", inputs=alike),
        LinkSetting(50, 3, "laplace", size=5, shared=2.0),
        LinkSetting(30, 12, "laplace", "complementary log-log"),
        LinkSetting(1000, 15, "laplace"),
    )


def _named(*settings: Setting) -> dict[str, Setting]:
    return {setting.name: setting for setting in settings}
