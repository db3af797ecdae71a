"""Log scores and times of SoftmaxLogistic beside scikit-learn's LogisticRegressionCV.

Run with ``python -m benchmarks.several_classes [repetitions of iris and wine] [of digits]``.  The
prior variance of the coefficients of standardised columns is 0.1, or that of a grid with the
largest evidence or bound of it; intercepts have the variance 100.  Both take five folds to tune,
and are judged by the mean log probability of the rows that five outer folds leave out.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from temperance import calibrate, models, strategies
from temperance.data import Data

GRID = np.geomspace(0.01, 100.0, 9)
FIXED = 2  # the variance 0.1


def with_ones(X):
    """Return rows that begin with a constant."""
    return np.column_stack([np.ones(len(X)), X])


def _most_evident(candidates, data, choose):
    return int(np.argmax([getattr(model, choose)(data) for model in candidates]))


def ours(X, y, X_new, choose):
    """Return log probabilities by SoftmaxLogistic, the prior variance and beta."""
    Z, data = with_ones(X), Data(with_ones(X), y.astype(float), np.ones(len(y)))
    candidates = [models.SoftmaxLogistic(np.r_[100.0, np.full(X.shape[1], v)]) for v in GRID]
    best = FIXED if choose == "fixed" else _most_evident(candidates, data, choose)
    found = calibrate(
        candidates[best], Z, y, strategies.KFold(5), risk="predictive", bounds=(0, 100)
    )
    return found.posterior.log_predict(with_ones(X_new)), GRID[best], found.beta


def theirs(X, y, X_new):
    """Return log probabilities by LogisticRegressionCV and its C."""
    model = LogisticRegressionCV(scoring="neg_log_loss", max_iter=1000).fit(X, y)
    return model.predict_log_proba(X_new), float(np.ravel(model.C_)[0])


def main() -> None:
    """Print a line for each data set."""
    warnings.simplefilter("ignore")
    few, many = (int(each) for each in (*sys.argv[1:], "5", "1")[:2])
    kinds = ("fixed", "evidence_bound", "log_evidence")
    for load in (load_iris, load_wine, load_digits):
        X, y = load(return_X_y=True)
        large = load is load_digits
        rows = []
        for repetition in range(many if large else few):
            folds = StratifiedKFold(5, shuffle=True, random_state=repetition)
            for train, test in folds.split(X, y):
                scale = StandardScaler().fit(X[train])
                parts = scale.transform(X[train]), y[train], scale.transform(X[test])
                own = np.arange(len(test)), y[test]
                row = []
                begin = time.process_time()
                found, C = theirs(*parts)
                row += [found[own].mean(), time.process_time() - begin, C]
                for kind in kinds[: 1 if large else 3]:
                    begin = time.process_time()
                    found, variance, beta = ours(*parts, kind)
                    row += [found[own].mean(), time.process_time() - begin, variance, beta]
                rows.append(row)
        table = np.array(rows)
        mean, middle = table.mean(axis=0), np.median(table, axis=0)
        gap = table[:, 3] - table[:, 0]
        print(f"{load.__name__[5:]}: {len(table)} splits")
        print(f"  LogisticRegressionCV  {mean[0]:.4f}  {mean[1]:.2f} s  C {middle[2]:.3g}")
        for j, kind in enumerate(kinds[: 1 if large else 3]):
            score, seconds, variance, beta = (*mean[3 + 4 * j :][:2], *middle[5 + 4 * j :][:2])
            print(
                f"  ours, {kind:15} {score:.4f}  {seconds:.2f} s  ({seconds / mean[1]:.1f} times)"
                f"  variance {variance:.3g}  beta {beta:.3g}"
            )
        print(
            f"  difference {gap.mean():+.4f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
