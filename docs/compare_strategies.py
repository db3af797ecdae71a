r"""Compare the strategies where the true risk is known exactly.

Every setting draws training data again and again, lets each strategy choose beta in [0, 3], and
reads off the excess risk R(beta_hat) - R(beta*), where R is the risk on the true distribution and
beta* minimises it on the same data.

The true distribution enters as a handful of weighted test rows.  The Gibbs risks of the linear
models are sums of terms in z z', z y and y^2 of the test rows and nothing else, so any rows whose
weighted means of these three equal the population's give R itself, without sampling error.

    .venv/bin/python docs/compare_strategies.py --repeats 200 --seed 0
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from temperance import calibrate, models
from temperance.diagnostics import TemperanceWarning
from temperance.strategies import (
    Bayes,
    Bootstrap,
    KFold,
    LeaveOneOut,
    Naive,
    Oracle,
    SafeBayes,
    SampleSplitting,
)
from temperance.types import Model, Strategy

# A ratio of nearly nothing in one setting must not decide a geometric mean.
LEAST_RATIO = 0.01

STRATEGIES: dict[str, Strategy] = {
    "Bayes": Bayes(),
    "naive": Naive(),
    "sample splitting, alpha": SampleSplitting(transfer="alpha"),
    "sample splitting, beta": SampleSplitting(),
    "both directions, alpha": SampleSplitting(transfer="alpha", both_directions=True),
    "both directions, beta": SampleSplitting(both_directions=True),
    "SafeBayes, alpha": SafeBayes(transfer="alpha"),
    "SafeBayes, beta": SafeBayes(),
    "5-fold, alpha": KFold(5, transfer="alpha"),
    "5-fold, beta": KFold(5),
    "10-fold, alpha": KFold(10, transfer="alpha"),
    "10-fold, beta": KFold(10),
    "leave-one-out, alpha": LeaveOneOut(transfer="alpha"),
    "leave-one-out, beta": LeaveOneOut(),
    "bootstrap, 200 draws": Bootstrap(n_draws=200),
    "out-of-bag, 200 draws": Bootstrap(n_draws=200, out_of_bag=True),
}

Rows = tuple[np.ndarray | None, np.ndarray, np.ndarray]
Draw = Callable[[np.random.Generator], tuple[np.ndarray | None, np.ndarray]]


@dataclass(frozen=True)
class Noise:
    """Noise of mean zero: its variance and how to draw it."""

    variance: float
    draw: Callable[[np.random.Generator, int], np.ndarray]


def gaussian(variance: float) -> Noise:
    """Return normal noise."""
    return Noise(variance, lambda rng, n: np.sqrt(variance) * rng.standard_normal(n))


def mixture(first: float, second: float) -> Noise:
    """Return normal noise whose variance is one of two, by the toss of a coin for each row."""

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        return np.sqrt(rng.choice([first, second], size=n)) * rng.standard_normal(n)

    return Noise((first + second) / 2, draw)


def uniform(half_width: float) -> Noise:
    """Return noise that is uniform around zero."""
    return Noise(half_width**2 / 3, lambda rng, n: rng.uniform(-half_width, half_width, n))


@dataclass(frozen=True)
class Setting:
    """A model, the truth, and rows with the second moments of the truth."""

    name: str
    model: Model
    draw: Draw
    population: Rows


def linear(
    name: str, model: Model, n: int, d: int, noise: Noise, theta: np.ndarray, scale: float = 1.0
) -> Setting:
    """Draw rows z = (1, scale N(0, I)) of d columns and y = z'theta + noise."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        Z = np.column_stack([np.ones(n), scale * rng.standard_normal((n, d - 1))])
        return Z, Z @ theta + noise.draw(rng, n)

    # E zz' = diag(1, scale^2, ...).  A root L of the second moment of (z, y), taken as d + 1 rows
    # times sqrt(d + 1), has the mean square L L'.
    square = np.diag(np.r_[1.0, np.full(d - 1, scale**2)])
    cross = square @ theta
    moment = np.block([[square, cross[:, None]], [cross, theta @ cross + noise.variance]])
    rows = np.sqrt(d + 1) * np.linalg.cholesky(moment).T
    return Setting(name, model, draw, (rows[:, :-1], rows[:, -1], np.ones(d + 1)))


def gaussian_mean(name: str, n: int, variance: float, theta: float) -> Setting:
    """Draw observations around one mean; two points have their first two moments."""
    spread = np.sqrt(variance)

    def draw(rng: np.random.Generator) -> tuple[None, np.ndarray]:
        return None, theta + spread * rng.standard_normal(n)

    points = theta + spread * np.array([-1.0, 1.0])
    model = models.GaussianMean(noise_variance=variance)
    return Setting(name, model, draw, (None, points, np.ones(2)))


def polynomial(name: str, n: int, powers: int, assumed: float, noise: Noise) -> Setting:
    """Draw inputs uniform on [-1, 1] and y = x^2 + 5 + noise.

    The moments of the powers are polynomials of degree 2 (powers - 1), which Gauss and Legendre's
    rule of as many points integrates exactly; y = f ± deviation gives the moments of y.
    """

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = rng.uniform(-1.0, 1.0, n)
        return x, x**2 + 5 + noise.draw(rng, n)

    nodes, weights = np.polynomial.legendre.leggauss(powers)
    x = np.tile(nodes, 2)
    y = x**2 + 5 + np.sqrt(noise.variance) * np.repeat([-1.0, 1.0], powers)
    model = models.Polynomial(n_powers=powers, noise_variance=assumed)
    return Setting(name, model, draw, (x, y, np.tile(weights, 2)))


def settings(seed: int) -> list[Setting]:
    """Build the settings; theta ~ N(0, I) is drawn once for each."""
    theta = np.random.default_rng(seed).standard_normal(40)
    built = []
    for n, d, variance, slip in (
        (40, 40, 8.0, False),
        (100, 20, 4.0, False),
        (100, 20, 20.0, False),
        (40, 40, 16.0, False),
        (16, 40, 0.2, False),
        (40, 40, 8.0, True),
        (100, 20, 4.0, True),
        (40, 40, 16.0, True),
    ):
        # The slip: what was meant as a variance is used as a standard deviation.
        true = variance**2 if slip else variance
        name = f"linear {n} x {d}, variance {variance:g}"
        if slip:
            name += f", truth {true:g}"
        model = models.GaussianLinear(noise_variance=variance)
        built.append(linear(name, model, n, d, gaussian(true), theta[:d]))
    built.append(gaussian_mean("mean of 40, variance 4", 40, 4.0, float(theta[0])))
    built.append(polynomial("polynomial, variance .01, truth .5", 30, 12, 0.01, gaussian(0.5)))
    for name, noise in (
        ("Gaussian", gaussian(3.5)),
        ("mixture", mixture(12.0, 0.1)),
        ("uniform", uniform(4.5)),
    ):
        model = models.NormalInverseGammaLinear(a=2.0, b=2.0)
        built.append(linear(f"unknown variance, {name} noise", model, 60, 40, noise, theta, 0.5))
    return built


def choices(
    setting: Setting, rng: np.random.Generator
) -> tuple[float, dict[str, float], dict[str, float]]:
    """Draw once; return beta*, the excess risk of each strategy and its seconds."""
    X, y = setting.draw(rng)
    oracle = calibrate(setting.model, X, y, Oracle(*setting.population))
    least = oracle.curve(oracle.beta)
    excess, seconds = {}, {}
    for name, strategy in STRATEGIES.items():
        began = time.perf_counter()
        beta = calibrate(setting.model, X, y, strategy, seed=rng).beta
        seconds[name] = time.perf_counter() - began
        excess[name] = max(oracle.curve(beta) - least, 0.0)
    return oracle.beta, excess, seconds


def main() -> None:
    """Run the comparison and print it as Markdown."""
    parser = argparse.ArgumentParser(description="Compare the strategies by their true risk.")
    parser.add_argument("--repeats", type=int, default=200, help="data sets for each setting")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.repeats < 2:
        parser.error(f"--repeats must be at least 2, got {arguments.repeats}")
    warnings.simplefilter("ignore", TemperanceWarning)
    began = time.perf_counter()
    problems = settings(arguments.seed)
    best = np.empty((len(problems), arguments.repeats))
    excess, seconds = np.empty((2, len(problems), arguments.repeats, len(STRATEGIES)))
    for i, problem in enumerate(problems):
        for j in range(arguments.repeats):
            rng = np.random.default_rng([arguments.seed, i, j])
            best[i, j], risk, spent = choices(problem, rng)
            excess[i, j], seconds[i, j] = list(risk.values()), list(spent.values())
    print(summary(excess, seconds))
    print()
    print(by_setting(problems, best, excess))
    print(f"\n{arguments.repeats} repeats, {time.perf_counter() - began:.0f} s")


def significance(excess: np.ndarray) -> np.ndarray:
    """Mean difference from Bayes in units of its standard error, (settings, strategies)."""
    difference = excess - excess[:, :, :1]
    error = difference.std(axis=1, ddof=1) / np.sqrt(excess.shape[1])
    return difference.mean(axis=1) / np.where(error > 0, error, 1.0)


def summary(excess: np.ndarray, seconds: np.ndarray) -> str:
    """One line for each strategy; arrays are (settings, repeats, strategies)."""
    ratio = excess.mean(axis=1) / excess[:, :, :1].mean(axis=1)
    overall = np.exp(np.log(np.maximum(ratio, LEAST_RATIO)).mean(axis=0))
    errors = significance(excess)
    better, worse = (errors < -2).sum(axis=0), (errors > 2).sum(axis=0)
    lines = [
        "| strategy | excess risk, Bayes = 1 | worst setting | better than Bayes | worse | ms |",
        "|---|---|---|---|---|---|",
    ]
    for k, name in enumerate(STRATEGIES):
        lines.append(
            f"| {name} | {overall[k]:.2f} | {ratio[:, k].max():.2f} | {better[k]} | {worse[k]} "
            f"| {1000 * seconds[:, :, k].mean():.1f} |"
        )
    return "\n".join(lines)


def by_setting(problems: list[Setting], best: np.ndarray, excess: np.ndarray) -> str:
    """One line for each setting: the excess relative to Bayes, bold when clearly larger."""
    shown = {
        "naive": "naive",
        "sample splitting, alpha": "split, alpha",
        "sample splitting, beta": "split, beta",
        "SafeBayes, alpha": "SafeBayes, alpha",
        "SafeBayes, beta": "SafeBayes, beta",
        "10-fold, beta": "10-fold, beta",
        "leave-one-out, beta": "leave-one-out, beta",
        "bootstrap, 200 draws": "bootstrap",
    }
    columns = [list(STRATEGIES).index(name) for name in shown]
    ratio = excess.mean(axis=1) / excess[:, :, :1].mean(axis=1)
    bold = np.where(significance(excess) > 2, "**", "")
    lines = [
        "| setting | median best beta | excess of Bayes | " + " | ".join(shown.values()) + " |",
        "|---|---|---|" + "---|" * len(shown),
    ]
    for i, problem in enumerate(problems):
        cells = " | ".join(f"{bold[i, k]}{ratio[i, k]:.2f}{bold[i, k]}" for k in columns)
        lines.append(
            f"| {problem.name} | {np.median(best[i]):.2f} | {excess[i, :, 0].mean():.3g} "
            f"| {cells} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
