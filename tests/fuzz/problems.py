"""Hostile calibration problems, each from one number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special
from sklearn import model_selection

from temperance import models, strategies
from temperance.checks import as_data
from temperance.data import Data, Risk
from temperance.protocols import Model, Strategy

Array = NDArray[np.float64]

KNOWN_VARIANCE = ("GaussianLinear", "GaussianMean", "Polynomial")
LINEAR = (*KNOWN_VARIANCE, "NormalInverseGammaLinear")
AVERAGED = ("HierarchicalLinear",)  # over scales of the prior
REAL = LINEAR + AVERAGED
LOGISTIC = (
    "LaplaceLogistic",
    "JaakkolaLogistic",
    "MeanFieldLogistic",
    "FullCovarianceLogistic",
)
BOUNDS = {
    (0.0, 3.0): 0.5,
    (0.0, 1e8): 0.12,
    (0.0, 1e-6): 0.06,
    (1e-3, 1e3): 0.12,
    (0.5, 2.0): 0.1,
    (1.0, 1 + 1e-9): 0.04,
    (0.0, 1e300): 0.02,
    (1e-12, 1e12): 0.04,
}
SENTINEL = 999_999_999.0
SMALLEST = 5e-324


@dataclass(frozen=True, eq=False)
class Problem:
    """Arguments of one calibration; ``problem(seed)`` gives the same again.

    Parameters
    ----------
    seed : what it was drawn from
    model, X, y, weights, strategy, risk, bounds : what ``calibrate`` is given
    hostility : in words, what is unusual about it
    extreme : whether squares of its numbers may overflow or vanish
    """

    seed: int
    model: Model
    X: Any
    y: Any
    weights: Any
    strategy: Strategy
    risk: Risk
    bounds: tuple[float, float]
    hostility: tuple[str, ...]
    extreme: bool

    @property
    def data(self) -> Data:
        """The rows as the library sees them; a problem that it refuses has none."""
        return as_data(self.X, self.y, self.weights)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        n = len(self.y)
        return n, 0 if self.X is None else int(np.size(np.asarray(self.X)) // n)

    @property
    def is_linear(self) -> bool:
        """Whether risks are in closed form."""
        return type(self.model).__name__ in REAL

    def __str__(self) -> str:
        """Return the whole problem in one line."""
        n, d = self.shape
        model = " ".join(repr(self.model).split())
        strategy = " ".join(repr(self.strategy).split())
        return (
            f"seed {self.seed}: {_short(model)} by {_short(strategy)}, {self.risk}, n={n} d={d}, "
            f"bounds {self.bounds}, {', '.join(self.hostility) or 'plain'}"
        )


def problem(seed: int) -> Problem:
    """Draw a problem."""
    rng = np.random.default_rng([20_240_229, seed])
    notes: list[str] = []
    # Scales: mostly moderate, at times of raw units, seldom where squares overflow.
    extreme = bool(rng.random() < 0.03)
    reach = 150.0 if extreme else float(rng.choice([0.5, 2.0, 6.0, 12.0], p=[0.4, 0.25, 0.2, 0.15]))
    if reach > 2:
        notes.append(f"scales 1e±{reach:g}")
    name = str(rng.choice(REAL + LOGISTIC, p=[0.2, 0.05, 0.07, 0.14, 0.1] + [0.11] * 4))
    n, d = _sizes(rng, name)
    X = _inputs(rng, n, d, name, reach, notes)
    if name in LOGISTIC:
        y = _labels(rng, X, notes)
    else:
        y = _responses(rng, X, n, reach, notes)
    X, y = _copies(rng, X, y, notes)
    n = len(y)
    model = _model(rng, name, X, y, reach, notes)
    weights = _weights(rng, n, extreme, notes)
    strategy = _strategy(rng, name, X, y, n, notes)
    risk: Risk = "predictive" if rng.random() < 0.4 else "gibbs"
    if isinstance(strategy, strategies.Stacking):
        risk = "predictive"
    choices = list(BOUNDS)
    bounds = choices[int(rng.choice(len(choices), p=list(BOUNDS.values())))]
    held = _container(rng, X, notes)
    target = _vector_container(rng, y, notes)
    if weights is not None and rng.random() < 0.2:
        weights = pd.Series(weights)
    return Problem(
        seed, model, held, target, weights, strategy, risk, bounds, tuple(notes), extreme
    )


def scale(rng: np.random.Generator, reach: float) -> float:
    """Draw a positive number, at times 1, else log-uniform over ``reach`` decades either way."""
    return 1.0 if rng.random() < 0.4 else float(10.0 ** rng.uniform(-reach, reach))


def _short(text: str, most: int = 160) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _sizes(rng: np.random.Generator, name: str) -> tuple[int, int]:
    n = int(
        rng.choice(
            [rng.integers(2, 13), rng.integers(8, 41), rng.integers(40, 201)], p=[0.6, 0.32, 0.08]
        )
    )
    if name == "GaussianMean":
        return n, 0
    if name == "Polynomial":
        return n, 1
    d = int(
        rng.choice(
            [1, rng.integers(1, 5), rng.integers(4, 13), rng.integers(12, 61), n],
            p=[0.15, 0.5, 0.2, 0.07, 0.08],
        )
    )
    if name in LOGISTIC:
        n, d = min(n, 80), min(d, 20)
    return n, d


def _inputs(
    rng: np.random.Generator, n: int, d: int, name: str, reach: float, notes: list[str]
) -> Array | None:
    if name == "GaussianMean":
        return None
    X = rng.standard_normal((n, d))
    if name == "Polynomial":
        kind = rng.choice(["unit", "years", "wide", "few values"], p=[0.6, 0.1, 0.15, 0.15])
        notes.append(f"inputs {kind}")
        if kind == "unit":
            X = rng.uniform(-1, 1, (n, 1))
        elif kind == "years":
            X = rng.integers(1950, 2024, (n, 1)).astype(float)
        elif kind == "wide":
            X = X * scale(rng, min(reach, 4.0))
        else:
            X = rng.integers(0, 3, (n, 1)).astype(float)
        return X
    tail = rng.random()
    if tail < 0.08:
        X = rng.standard_t(1.2, (n, d))
        notes.append("heavy-tailed inputs")
    elif tail < 0.16:
        X = rng.integers(-1, 2, (n, d)).astype(float)
        notes.append("inputs of few values")
    elif tail < 0.22:
        X = X * (rng.random((n, d)) < 0.2)
        notes.append("sparse inputs")
    if rng.random() < 0.35 or (name in AVERAGED and rng.random() < 0.7):
        X[:, 0] = 1.0
        notes.append("intercept")
    if reach > 2:
        if rng.random() < 0.5:
            X = X * scale(rng, reach)
        else:
            X = X * np.array([scale(rng, reach) for _ in range(d)])
    _columns(rng, X, notes)
    if rng.random() < 0.05:
        X[rng.integers(n), rng.integers(d)] = SENTINEL
        notes.append("a sentinel in X")
    return X


def _columns(rng: np.random.Generator, X: Array, notes: list[str]) -> None:
    """Put raw units and dependent columns into some columns."""
    n, d = X.shape
    kinds = {
        "timestamps": lambda: 1.7e9 + rng.integers(0, 10**7, n),
        "years": lambda: rng.integers(1950, 2024, n).astype(float),
        "a constant column 1e8": lambda: np.full(n, 1e8),
        "a zero column": lambda: np.zeros(n),
        "an equal column": lambda: X[:, rng.integers(d)].copy(),
        "a sum of columns": lambda: X @ rng.integers(-1, 3, d),
        "a nearly equal column": lambda: X[:, rng.integers(d)] * (1 + 1e-9 * rng.random(n)),
        "a multiple of a column": lambda: X[:, rng.integers(d)] * 3.7e5,
    }
    if rng.random() < 0.35:
        for kind in rng.choice(list(kinds), size=int(rng.integers(1, 3)), replace=False):
            X[:, rng.integers(d)] = kinds[str(kind)]()
            notes.append(str(kind))


def _responses(
    rng: np.random.Generator, X: Array | None, n: int, reach: float, notes: list[str]
) -> Array:
    kind = rng.choice(
        ["linear", "noise", "exact", "constant", "heavy", "few values", "zero", "prices"],
        p=[0.42, 0.15, 0.12, 0.08, 0.08, 0.06, 0.03, 0.06],
    )
    if kind not in ("linear", "noise"):
        notes.append(f"y {kind}")
    signal = np.zeros(n)
    if X is not None:
        spread = np.sqrt((X**2).mean(axis=0) if reach < 100 else np.abs(X).max(axis=0) ** 2)
        usable = np.where((spread > 0) & np.isfinite(spread), spread, 1.0)
        signal = (X / usable) @ rng.standard_normal(X.shape[1])
    noise = rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 1)
    y = {
        "linear": signal + noise,
        "noise": noise,
        "exact": signal,
        "constant": np.full(n, float(rng.choice([1.0, 0.1, -3e5]))),
        "heavy": signal + rng.standard_t(1.0, n),
        "few values": rng.integers(0, 3, n).astype(float),
        "zero": np.zeros(n),
        "prices": rng.lognormal(12.5, 0.6, n).round(-2),
    }[str(kind)]
    if kind != "prices":
        y = y * scale(rng, reach)
    if rng.random() < 0.04:
        y[rng.integers(n)] = SENTINEL
        notes.append("a sentinel in y")
    if rng.random() < 0.08:
        y = y + float(rng.choice([1e3, 1e6, 1.7e9]))
        notes.append("y far from 0")
    return y


def _labels(rng: np.random.Generator, X: Array | None, notes: list[str]) -> Array:
    assert X is not None
    n = len(X)
    kind = str(
        rng.choice(
            ["logistic", "separable", "nearly separable", "rare class", "unrelated"],
            p=[0.4, 0.2, 0.15, 0.1, 0.15],
        )
    )
    if kind != "logistic":
        notes.append(f"labels {kind}")
    spread = np.abs(X).max(axis=0)
    logits = (X / np.where(spread > 0, spread, 1.0)) @ rng.standard_normal(X.shape[1])
    logits = logits - np.median(logits)
    if kind == "logistic":
        y = rng.random(n) < special.expit(2 * logits)
    elif kind == "unrelated":
        y = rng.random(n) < 0.5
    elif kind == "rare class":
        y = np.arange(n) == rng.integers(n)
    else:
        y = logits > 0
        if kind == "nearly separable":
            y[rng.integers(n)] ^= True
    if n > 1 and y.all() or not y.any():
        y[0] = not y[0]
    return np.asarray(y, dtype=float)


def _copies(
    rng: np.random.Generator, X: Array | None, y: Array, notes: list[str]
) -> tuple[Array | None, Array]:
    if rng.random() < 0.12:
        count = int(rng.integers(2, 5))
        rows = rng.permutation(np.repeat(np.arange(len(y)), count))[
            : max(2, min(80, count * len(y)))
        ]
        notes.append(f"every row {count} times")
        return (None if X is None else X[rows]), y[rows]
    return X, y


def _model(
    rng: np.random.Generator, name: str, X: Array | None, y: Array, reach: float, notes: list[str]
) -> Model:
    d = 1 if X is None else X.shape[1]
    options: dict[str, Any] = {}
    if name == "Polynomial":
        d = options["n_powers"] = int(rng.integers(1, 9))
    spread = float(np.std(y)) or 1.0
    if name in AVERAGED:
        return _averaged_model(rng, X, spread, reach, notes)
    if name in KNOWN_VARIANCE:
        options["noise_variance"] = (
            max(spread**2, 1e-300) if rng.random() < 0.4 else scale(rng, reach)
        )
    if name == "NormalInverseGammaLinear" and rng.random() < 0.5:
        options["a"] = scale(rng, min(reach, 4.0))
        options["b"] = float(np.clip(scale(rng, reach), 1e-90, 1e90))
    if rng.random() < 0.6:
        kind = str(rng.choice(["scalar", "scalar", "prices", "vector", "matrix"]))
        if kind == "matrix" and name == "MeanFieldLogistic":
            kind = "vector"
        if kind == "scalar":
            options["prior_cov"] = scale(rng, reach)
        elif kind == "prices":
            options["prior_cov"] = 1e11
        elif kind == "vector":
            options["prior_cov"] = np.array([scale(rng, reach) for _ in range(d)])
        else:
            root = rng.standard_normal((d, d)) / np.sqrt(d)
            sides = np.array([scale(rng, min(reach, 60.0) / 2) for _ in range(d)])
            options["prior_cov"] = (np.eye(d) + root @ root.T) * np.outer(sides, sides)
        if kind != "scalar":
            notes.append(f"prior_cov {kind}")
    if rng.random() < 0.3:
        vector = rng.random() < 0.5
        size = scale(rng, reach if name in LINEAR else min(reach, 2.0))
        options["prior_mean"] = size * (rng.standard_normal(d) if vector else 1.0)
        notes.append("prior_mean " + ("vector" if vector else "scalar"))
    model: Model = getattr(models, name)(**options)
    return model


def _averaged_model(
    rng: np.random.Generator, X: Array | None, spread: float, reach: float, notes: list[str]
) -> Model:
    """Draw a model that averages over scales of its prior, with a level if the inputs have one."""
    options: dict[str, Any] = {"intercept": bool(X is not None and np.all(X[:, 0] == 1))}
    if rng.random() < 0.4:
        options["noise_variance"] = (
            max(spread**2, 1e-300) if rng.random() < 0.5 else scale(rng, reach)
        )
    else:
        options["a"] = scale(rng, min(reach, 2.0))
        options["b"] = float(np.clip(scale(rng, reach), 1e-90, 1e90))
    if rng.random() < 0.5:
        drawn = [scale(rng, reach) for _ in range(int(rng.integers(1, 5)))]
        options["scales"] = np.clip(drawn, 1e-49, 1e49)
        notes.append("scales of its own")
    return models.HierarchicalLinear(**options)


def _weights(rng: np.random.Generator, n: int, extreme: bool, notes: list[str]) -> Any:
    kind = str(
        rng.choice(
            [
                "none",
                "ones",
                "integers",
                "1e8",
                "1e-8",
                "some zeros",
                "one dominates",
                "any",
                "tiny",
            ],
            p=[0.66, 0.04, 0.1, 0.03, 0.03, 0.05, 0.04, 0.04, 0.01],
        )
    )
    if kind == "none":
        return None
    notes.append(f"weights {kind}")
    weights = {
        "ones": np.ones(n),
        "integers": rng.integers(1, 5, n).astype(float),
        "1e8": rng.uniform(0.5, 2.0, n) * 1e8,
        "1e-8": rng.uniform(0.5, 2.0, n) * 1e-8,
        "some zeros": rng.integers(0, 3, n).astype(float),
        "one dominates": np.ones(n),
        "any": rng.uniform(0.1, 3.0, n),
        "tiny": np.ones(n),
    }[kind]
    if kind == "one dominates":
        weights[rng.integers(n)] = 1e8
    if kind == "tiny":
        weights[rng.integers(n)] = SMALLEST
    return weights


def _strategy(
    rng: np.random.Generator, name: str, X: Array | None, y: Array, n: int, notes: list[str]
) -> Strategy:
    transfer: Any = "alpha" if rng.random() < 0.3 else "beta"
    kinds = ["k-fold", "loo", "split", "bootstrap", "safe", "splitter", "naive", "oracle", "bayes"]
    odds = np.array([0.22, 0.18, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.02])
    kinds.append("stacking")
    odds = np.append(odds, 0.4 if name in AVERAGED else 0.12)
    if name in LINEAR:
        kinds.append("reference")
        odds = np.append(odds, 0.2)
    kind = str(rng.choice(kinds, p=odds / odds.sum()))
    flag = bool(rng.random() < 0.5)
    duplicates: Any = str(rng.choice(["auto", "auto", "together", "apart"]))
    if kind == "k-fold":
        folds = int(rng.integers(2, min(10, n) + 1))
        return strategies.KFold(folds, transfer, duplicates)
    if kind == "loo":
        return strategies.LeaveOneOut(transfer, duplicates)
    if kind == "split":
        if flag:
            return strategies.SampleSplitting(transfer, True, bool(rng.random() < 0.5), 3)
        return strategies.SampleSplitting(transfer, both_directions=bool(rng.random() < 0.5))
    if kind == "bootstrap":
        return strategies.Bootstrap(int(rng.integers(1, 9)), out_of_bag=flag)
    if kind == "safe":
        stride = int(rng.integers(1, 4)) if rng.random() < 0.3 else None
        start = int(rng.integers(1, max(2, n // 2)))
        return strategies.SafeBayes(transfer, start, int(rng.integers(0, 3)), stride)
    if kind == "splitter":
        folds = min(n, 4)
        splitter = (
            model_selection.KFold(folds, shuffle=True, random_state=int(rng.integers(100)))
            if flag
            else model_selection.ShuffleSplit(3, test_size=0.4, random_state=0)
        )
        return strategies.FromSplitter(splitter, transfer)
    if kind == "naive":
        return strategies.Naive()
    if kind == "oracle":
        rows = rng.integers(0, n, 2 * n)
        fresh = y[rows]
        if name in REAL:
            fresh = fresh + float(np.std(y)) * rng.standard_normal(2 * n)
        return strategies.Oracle(None if X is None else X[rows], fresh)
    if kind == "bayes":
        return strategies.Bayes()
    if kind == "stacking":
        folds = int(rng.integers(2, min(10, n) + 1))
        return strategies.Stacking(strategies.KFold(folds, transfer, duplicates) if flag else None)
    return strategies.ReferenceRisk(None if flag else 2.0, duplicates)


def _container(rng: np.random.Generator, X: Array | None, notes: list[str]) -> Any:
    if X is None:
        return None
    n, d = X.shape
    kind = str(
        rng.choice(
            [
                "array",
                "float32",
                "int",
                "bool",
                "fortran",
                "view",
                "read-only",
                "list",
                "pandas",
                "reversed",
                "vector",
            ],
            p=[0.5, 0.06, 0.04, 0.02, 0.08, 0.08, 0.04, 0.04, 0.06, 0.06, 0.02],
        )
    )
    if kind == "array":
        return X
    if kind == "float32" and (np.abs(X).max() > 1e30 or _least(X) < 1e-30):
        return X
    if kind == "int" and np.abs(X).max() > 1e15:
        return X
    if kind == "vector" and d != 1:
        return X
    notes.append(f"X {kind}")
    if kind == "view":
        wide = np.zeros((2 * n, 3 * d))
        wide[::2, 1::3] = X
        return wide[::2, 1::3]
    if kind == "reversed":
        return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    if kind == "read-only":
        held = X.copy()
        held.flags.writeable = False
        return held
    if kind == "vector":
        return X[:, 0]
    return {
        "float32": lambda: X.astype(np.float32),
        "int": lambda: np.round(X).astype(np.int64),
        "bool": lambda: X > 0,
        "fortran": lambda: np.asfortranarray(X),
        "list": lambda: X.tolist(),
        "pandas": lambda: pd.DataFrame(
            X, columns=[f"x{j}" for j in range(d)], index=range(5, 5 + n)
        ),
    }[kind]()


def _vector_container(rng: np.random.Generator, y: Array, notes: list[str]) -> Any:
    kind = str(
        rng.choice(["array", "pandas", "list", "reversed", "int"], p=[0.7, 0.1, 0.05, 0.05, 0.1])
    )
    if kind == "int" and not (np.all(y == np.round(y)) and np.abs(y).max() < 1e15):
        return y
    if kind == "array":
        return y
    notes.append(f"y as {kind}")
    if kind == "reversed":
        return np.ascontiguousarray(y[::-1])[::-1]
    return {
        "pandas": lambda: pd.Series(y),
        "list": lambda: y.tolist(),
        "int": lambda: y.astype(np.int64),
    }[kind]()


def _least(X: Array) -> float:
    values = np.abs(X[X != 0])
    return float(values.min()) if values.size else 1.0
