"""What the choice of beta does to neural networks, the numbers of docs/neural-networks.md.

``python -m benchmarks.neural digits --labels-wrong 0.2`` prints a Markdown table: forecasts at the
chosen beta and at beta = 1, beside temperature scaling of one network and a deep ensemble, which is
the ensemble at beta = 1.  ``tabular`` does the same for breast cancer.  ``cost --steps 300`` prints
the time of the whole choice beside that of one training.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.datasets import load_breast_cancer, load_digits

from temperance import calibrate, expected_risk, models
from temperance.messages import TemperanceWarning
from temperance.models.neural import HMC, Ensemble, LastLayerLaplace, MeanField, Training
from temperance.strategies import KFold

KINDS = ("mean-field", "laplace-last-layer", "hmc", "ensemble")
BINS = 15  # of the expected calibration error
TEST_SHARE = 0.3
COST_SIZES = (64, 512, 2048, 4096)


class Problem(NamedTuple):
    """Rows to train and to test, rows from elsewhere, and the number of classes."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    clean_test: np.ndarray
    elsewhere: np.ndarray
    classes: int


class Scores(NamedTuple):
    """Forecasts of the test rows judged; entropy is that of forecasts of rows from elsewhere."""

    beta: float
    log_loss: float
    clean_log_loss: float
    error: float
    calibration_error: float
    entropy: float
    entropy_elsewhere: float
    seconds: float


def problem(name: str, labels_wrong: float, seed: int) -> Problem:
    """Return a split of a data set, with a share of all labels replaced by random ones."""
    rng = np.random.default_rng(seed)
    X, y = {"digits": load_digits, "tabular": load_breast_cancer}[name](return_X_y=True)
    order = rng.permutation(len(y))
    X, y, cut = X[order], y[order], int(TEST_SHARE * len(y))
    classes = int(y.max()) + 1
    seen = np.where(rng.random(len(y)) < labels_wrong, other_labels(y, classes, rng), y)
    if name == "digits":
        X = X / 16
        # The pixels of each image in another order: the same grey values, no digit.
        elsewhere = rng.permuted(X[:cut], axis=1)
    else:
        X = (X - X[cut:].mean(axis=0)) / X[cut:].std(axis=0)
        elsewhere = 3 * rng.standard_normal((cut, X.shape[1]))
    return Problem(X[cut:], seen[cut:], X[:cut], seen[:cut], y[:cut], elsewhere, classes)


def other_labels(y: np.ndarray, classes: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random label other than its own for each row."""
    return (y + rng.integers(1, classes, len(y))) % classes


@lru_cache
def network(inputs: int, classes: int, hidden: tuple[int, ...]) -> tuple[Callable, Callable, list]:
    """Return apply, init and prior scales of a perceptron with ReLU.

    The same functions for the same sizes, so that programs are compiled once.
    """
    sizes = [inputs, *hidden, classes]
    spreads = [np.sqrt(2 / each) for each in sizes[:-1]]

    def init(key: Any) -> list:
        keys = jax.random.split(key, len(spreads))
        return [
            (spread * jax.random.normal(key, shape), jnp.zeros(shape[1]))
            for key, spread, shape in zip(keys, spreads, pairwise(sizes), strict=True)
        ]

    def apply(params: list, X: Any) -> Any:
        for weights, bias in params[:-1]:
            X = jax.nn.relu(X @ weights + bias)
        weights, bias = params[-1]
        return X @ weights + bias

    return apply, init, [(spread, 1.0) for spread in spreads]


def scores(
    probabilities: Callable[[np.ndarray], np.ndarray], data: Problem, beta: float, seconds: float
) -> Scores:
    """Judge the probabilities of classes."""
    test, away = (np.clip(probabilities(X), 1e-12, 1.0) for X in (data.X_test, data.elsewhere))
    every = np.arange(len(test))
    return Scores(
        beta,
        float(-np.log(test[every, data.y_test]).mean()),
        float(-np.log(test[every, data.clean_test]).mean()),
        float((test.argmax(axis=1) != data.clean_test).mean()),
        calibration_error(test, data.y_test),
        float(entropy(test).mean()),
        float(entropy(away).mean()),
        seconds,
    )


def entropy(probabilities: np.ndarray) -> np.ndarray:
    """Return the entropy of each row, in nats."""
    return -(probabilities * np.log(probabilities)).sum(axis=1)


def calibration_error(probabilities: np.ndarray, y: np.ndarray) -> float:
    """Return the mean distance of confidence and accuracy over bins of confidence."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(place, confidence - right, BINS)
    return float(np.abs(gaps).sum() / len(y))


def scaled_by_temperature(model: Any, data: Problem) -> Iterator[tuple[str, Scores]]:
    """Yield one network at beta = 1, and the same with a temperature fitted to rows held out."""
    begin = time.perf_counter()
    held = len(data.y) // 5
    posterior = model.posterior(data.X[held:], data.y[held:], len(data.y) - held)
    mode = posterior.params(posterior.task.prior.theta(posterior.variables["mode"]))

    def logits(X: np.ndarray) -> np.ndarray:
        return np.asarray(model.apply(mode, jnp.asarray(X, dtype=jnp.float32)), dtype=float)

    known, labels = logits(data.X[:held]), data.y[:held]

    def loss(log_temperature: float) -> float:
        scaled = log_softmax(known / np.exp(log_temperature), axis=1)
        return float(-scaled[np.arange(held), labels].mean())

    temperature = np.exp(minimize_scalar(loss, bounds=(-4, 4), method="bounded").x)
    seconds = time.perf_counter() - begin
    for name, divisor in (
        ("one network, 4/5 of the rows", 1.0),
        ("the same, temperature scaling", temperature),
    ):
        yield (
            name,
            scores(
                lambda X, by=divisor: np.exp(log_softmax(logits(X) / by, axis=1)),
                data,
                1 / divisor,
                seconds,
            ),
        )


def method(kind: str, asked: argparse.Namespace) -> Any:
    """Return the kind of posterior with its settings."""
    return {
        "mean-field": MeanField(),
        "laplace-last-layer": LastLayerLaplace(),
        "hmc": HMC(warmup=asked.warmup, moves=asked.moves, steps=asked.leapfrog),
        "ensemble": Ensemble(),
    }[kind]


def judged(data: Problem, asked: argparse.Namespace, seed: int) -> Iterator[tuple[str, Scores]]:
    """Yield the scores of all forecasts on one split."""
    apply, init, scale = network(data.X.shape[1], data.classes, tuple(asked.hidden))
    bounds = tuple(asked.bounds)

    def model(kind: str) -> Any:
        return models.NeuralNetwork(
            apply,
            init,
            prior_scale=scale,
            posterior=method(kind, asked),
            training=Training(asked.steps, asked.learning_rate, asked.batch_size),
            lowest_beta=bounds[0],
            draws=asked.draws,
            seed=seed,
        )

    for kind in asked.posteriors:
        begin = time.perf_counter()
        chosen = calibrate(
            model(kind), data.X, data.y, KFold(asked.folds), risk="predictive", bounds=bounds
        )
        beta, posterior = chosen.beta, chosen.posterior
        seconds = time.perf_counter() - begin
        print(f"\n{kind}, split {seed}, {seconds:.1f} s\n{chosen}", flush=True)
        yield f"{kind}, chosen", scores(posterior.predict, data, beta, seconds)
        begin = time.perf_counter()
        bayes = chosen.posterior_at(1.0)
        seconds = time.perf_counter() - begin
        yield f"{kind}, beta = 1", scores(bayes.predict, data, 1.0, seconds)
        grid = chosen.table.curve.betas
        grid = grid[grid > 0]
        test = expected_risk(
            model(kind),
            (data.X, data.y),
            (data.X_test, data.y_test),
            grid * len(data.y),
            risk="predictive",
        )
        at = np.interp(np.log(beta), np.log(grid), test)
        print(
            f"smallest test risk {test.min():.4f} at beta = {grid[test.argmin()]:.3g}; regret of "
            f"the choice {at - test.min():.4f}",
            flush=True,
        )
    yield from scaled_by_temperature(model("laplace-last-layer"), data)
    if "ensemble" not in asked.posteriors:
        begin = time.perf_counter()
        posterior = model("ensemble").posterior(data.X, data.y, len(data.y))
        found = scores(posterior.predict, data, 1.0, time.perf_counter() - begin)
        yield "ensemble, beta = 1", found


def table(rows: dict[str, list[Scores]], labels_wrong: float) -> str:
    """Return means over splits with standard errors, in Markdown."""
    titles = ["forecast", "beta", "log loss", "with right labels", "error", "calibration error"]
    titles += ["entropy", "entropy elsewhere", "seconds"]
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for name, found in rows.items():
        parts = np.array(found)
        mean, spread = parts.mean(axis=0), parts.std(axis=0, ddof=1 if len(parts) > 1 else 0)
        error = spread / np.sqrt(len(parts))
        betas = " ".join(f"{each:.3g}" for each in parts[:, 0])
        cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(mean[1:-1], error[1:-1], strict=True)]
        lines.append(f"| {name} | {betas} | {' | '.join(cells)} | {mean[-1]:.1f} |")
    if labels_wrong == 0:
        return "\n".join(_without(line, 3) for line in lines)
    return "\n".join(lines)


def _without(line: str, column: int) -> str:
    cells = line.split("|")
    return "|".join(cells[: column + 1] + cells[column + 2 :])


def compare(asked: argparse.Namespace) -> None:
    """Print the table of one data set."""
    rows: dict[str, list[Scores]] = {}
    for seed in range(asked.splits):
        data = problem(asked.what, asked.labels_wrong, seed)
        for name, found in judged(data, asked, seed):
            rows.setdefault(name, []).append(found)
    words = f"{100 * asked.labels_wrong:g} % of the labels wrong" if asked.labels_wrong else "clean"
    print(
        f"\n{asked.what}, {words}; {len(data.y)} rows to train, {len(data.y_test)} to test, "
        f"{asked.splits} splits, {asked.folds} folds, hidden layers {asked.hidden}, "
        f"{device()}\n\n{table(rows, asked.labels_wrong)}"
    )


def cost(asked: argparse.Namespace) -> None:
    """Print seconds of one training and of the whole choice, for several sizes of network."""
    data = problem("digits", 0.0, 0)
    titles = ["hidden layers", "parameters", "networks of the choice", "side by side"]
    titles += ["one training (s)", "the choice (s)", "ratio"]
    steps = f"at most {asked.steps} steps of {asked.batch_size} rows"
    print(f"\n{device()}; {steps}, compilation not counted\n")
    print("| " + " | ".join(titles) + " |\n|" + "---|" * len(titles), flush=True)
    for width in asked.sizes:
        apply, init, scale = network(data.X.shape[1], data.classes, (width, width))
        model = models.NeuralNetwork(
            apply,
            init,
            prior_scale=scale,
            training=Training(asked.steps, asked.learning_rate, asked.batch_size),
            lowest_beta=asked.bounds[0],
            draws=asked.draws,
        )

        def choose(model: Any = model) -> Any:
            chosen = calibrate(
                model,
                data.X,
                data.y,
                KFold(asked.folds),
                risk="predictive",
                bounds=tuple(asked.bounds),
            )
            return chosen.table.curve

        def train_one(model: Any = model) -> Any:
            return model.posterior(data.X, data.y, len(data.y)).settled

        one, _ = _second_time(train_one)
        whole, curve = _second_time(choose)
        count, _ = curve.grid.counts()
        row = [
            f"{width}, {width}",
            f"{model.network.size:,}",
            str(count),
            str(min(count, model.lanes(data.X, data.y))),
            f"{one:.2f}",
            f"{whole:.2f}",
            f"{whole / one:.1f}",
        ]
        print("| " + " | ".join(row) + " |", flush=True)


def _second_time(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of the second call, after compilation, and its result."""
    function()
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def device() -> str:
    """Return the name of the device that JAX takes."""
    return jax.devices()[0].device_kind


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.neural", description=__doc__)
    parser.add_argument("what", choices=("digits", "tabular", "cost"))
    parser.add_argument("--labels-wrong", type=float, default=0.0, help="share of wrong labels")
    parser.add_argument("--posteriors", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--hidden", type=int, nargs="*", default=[64, 64])
    parser.add_argument("--bounds", type=float, nargs=2, default=[0.01, 100.0])
    parser.add_argument("--draws", type=int, default=64)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--warmup", type=int, default=200, help="of HMC")
    parser.add_argument("--moves", type=int, default=400, help="of HMC")
    parser.add_argument("--leapfrog", type=int, default=30, help="steps of a move of HMC")
    parser.add_argument("--sizes", type=int, nargs="*", default=list(COST_SIZES), help="of cost")
    asked = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TemperanceWarning)
        cost(asked) if asked.what == "cost" else compare(asked)


if __name__ == "__main__":
    main()
