"""Ten folds of other losses, beside fits that a user would do instead.

Run by ``python -m benchmarks.losses``; the full covariance of counts takes about a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import HuberRegressor, PoissonRegressor, QuantileRegressor

from benchmarks.problems import named
from benchmarks.record import Record
from benchmarks.timing import compare
from temperance import calibrate, losses, models, strategies

PENALTIES = np.logspace(-3, 1, 10)
KINDS = {
    True: ("full-covariance", "mean-field", "laplace"),
    False: ("full-covariance", "mean-field"),
}


def measure(quick: bool) -> Iterator[Record]:
    """Yield medians, counts and robust regressions."""
    few, many = ((100, 3), (300, 3)) if quick else ((1000, 10), (100_000, 20))
    X, y, counts = problem(*few)
    ten = range(10)
    quantiles = {
        "10 x QuantileRegressor": lambda: [QuantileRegressor(alpha=0.0).fit(X, y) for _ in ten]
    }
    yield from _beside("pinball", losses.Pinball(0.5), few, X, y, quantiles)
    robust = {"10 x HuberRegressor": lambda: [HuberRegressor(max_iter=1000).fit(X, y) for _ in ten]}
    yield from _beside("Huber", losses.Huber(1.345), few, X, y, robust)
    X, _, counts = problem(*many)
    path = {
        "PoissonRegressor, 10 penalties": lambda: [
            PoissonRegressor(alpha=penalty).fit(X, counts) for penalty in PENALTIES
        ]
    }
    yield from _beside("Poisson", losses.Poisson(), many, X, counts, path)


def problem(n: int, d: int) -> tuple[Any, Any, Any]:
    """Return inputs, responses with heavy tails, and overdispersed counts."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    u = X @ (rng.standard_normal(d) / np.sqrt(d))
    rate = np.exp(0.5 * u) * rng.gamma(3.0, 1 / 3, n)
    return X, u + rng.standard_t(3, n), rng.poisson(rate).astype(float)


def _beside(
    name: str,
    loss: losses.Loss,
    shape: tuple[int, int],
    X: Any,
    y: Any,
    peers: dict[str, Callable[[], Any]],
) -> Iterator[Record]:
    [peer] = peers
    folds = strategies.KFold(10)
    ours = {
        f"{name}, {kind}, ten folds": (
            lambda kind=kind: calibrate(models.GibbsLinear(loss, kind), X, y, folds, risk="gibbs"),
            peer,
        )
        for kind in KINDS[loss.smooth]
    }
    return compare("losses", named(*shape), ours, peers)


if __name__ == "__main__":
    for record in measure(quick=False):
        print(f"{record.work}, {record.size}: {record.seconds:.3g} s {record.beside or ''}")
