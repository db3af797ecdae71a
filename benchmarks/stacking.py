"""What stacking costs beside one beta from the same rows: ``python -m benchmarks.stacking``."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.timing import once
from temperance import calibrate, models
from temperance.protocols import Model
from temperance.strategies import KFold, LeaveOneOut, Stacking

LINEAR = (
    models.GaussianLinear(),
    models.NormalInverseGammaLinear(),
    models.HierarchicalLinear(intercept=False),
)
LOGISTIC = (models.LaplaceLogistic(), models.MeanFieldLogistic())
SHAPES = ((60, 10), (1000, 20), (10_000, 20))
TIMES = 3


def best(model: Model, X: Any, y: Any, strategy: Any) -> float:
    """Return the least CPU time of a calibration, in milliseconds, of several."""

    def call() -> None:
        assert calibrate(model, X, y, strategy, risk="predictive").beta >= 0

    call()
    return 1000 * min(once(call) for _ in range(TIMES))


def main() -> None:
    """Print a table."""
    warnings.simplefilter("ignore")
    print("| model | rows x columns | source | one beta (ms) | stacking (ms) | ratio |")
    print("|---|---|---|---|---|---|")
    for n, d in SHAPES:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, d))
        signal = X @ rng.standard_normal(d) / np.sqrt(d)
        y, labels = signal + rng.standard_normal(n), (signal + rng.logistic(size=n) > 0) * 1.0
        cases = [(model, y, LeaveOneOut()) for model in LINEAR]
        cases += [(model, labels, KFold()) for model in LOGISTIC]
        for model, response, source in cases:
            own, stack = (best(model, X, response, rule) for rule in (source, Stacking(source)))
            print(
                f"| `{type(model).__name__}` | {n} x {d} | `{type(source).__name__}` | {own:.1f} | "
                f"{stack:.1f} | {stack / own:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
