"""What every calibration must obey, whatever the problem: each says what is wrong, or nothing."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from temperance import calibrate, models, strategies
from temperance.calibration import Calibration
from temperance.checks import LARGEST_BETA, as_data
from temperance.data import Data
from temperance.messages import ConvergenceWarning, TemperanceWarning
from temperance.plans import Pairs
from temperance.rules import nearest_to_bayes, votes_of_rows
from temperance.strategies.selection import PlanStrategy
from temperance.table import LEAST

from . import plain_averaged, plain_linear, plain_logistic
from .problems import Array, Problem

ARGUMENTS = (
    "X", "y", "weights", "bounds", "model", "strategy", "noise_variance", "prior_cov", "prior_mean",
    "a", "b", "n_powers", "n_folds", "n_draws", "start", "stride", "splitter", "groups", "X_test",
    "y_test", "scales",
)  # fmt: skip
# A refusal begins with an argument, or with what holds it: "y must ...", "Oracle's test data: y".
NAMED = re.compile(
    rf"(^|: )({'|'.join(ARGUMENTS)})\b(?! curve)|\b({'|'.join(ARGUMENTS)})( and \w+)? must\b"
)
EPS = float(np.finfo(float).eps)
DECIMAL_WORK = 4e6  # multiplications times digits that a plain computation may take
MOST_WORK = 3e7  # multiplications that the grid of a curve may take
UNIT = 1.0  # size of the terms of a risk that may vanish though they do not: logarithms
LONGEST = 1e20  # square of the longest direction of the rows, in units of the prior
STEEP = 1e6  # nats between betas, beyond which mixtures are rounding
LEAST_WEIGHT = 1e-200
BATCH = 8  # betas at a time: of very many together, some leave scales of small evidence out
LARGEST_COUNT = 1e9  # observations times beta, up to which slopes in log beta keep digits
UNSEEN = 1e-2  # part of the span of a curve that it may fall between betas of the scan


def not_found(error: Exception) -> bool:
    """Whether the library refused, in as many words, a point of a curve that it could not solve."""
    return isinstance(error, ValueError) and "no approximate posterior was found" in str(error)


@contextmanager
def only_own_warnings() -> Iterator[None]:
    """Turn warnings of other classes than temperance's into exceptions, as those that distrust."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", TemperanceWarning)
        warnings.simplefilter("error", ConvergenceWarning)
        yield


def calibrated(problem: Problem) -> Calibration:
    """Calibrate; what other code than temperance warns of is raised."""
    with only_own_warnings():
        return calibrate(
            problem.model, problem.X, problem.y, problem.strategy, bounds=problem.bounds,
            risk=problem.risk, weights=problem.weights, seed=problem.seed,
        )  # fmt: skip


def manners_of(error: Exception) -> str | None:
    """Say what is wrong with the way in which a problem was refused."""
    message = str(error)
    if not isinstance(error, ValueError | TypeError) or isinstance(error, np.linalg.LinAlgError):
        return exception_in_words(error)
    if "\n" in message or not message:
        return f"a message of {len(message.splitlines())} lines: {message!r}"
    if message.startswith("a plan's") or not NAMED.search(message):
        return f"a refusal that names no argument{_place(error)}: {message}"
    return None


def exception_in_words(error: Exception) -> str:
    """Return the class, the place and the first line of an exception."""
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}{_place(error)}: {first}"


def _place(error: Exception) -> str:
    """Say where in the library an exception came from."""
    found, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "temperance/" in file:
            found = f" at {file.rsplit('temperance/', 1)[1]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


# The curve -----------------------------------------------------------------------------------


def grid_for(problem: Problem, result: Calibration) -> Array:
    """Betas all over the bounds from the smallest of the scan on, and near the choice."""
    lower, upper = problem.bounds
    count = int(np.clip(MOST_WORK / _work(problem), 16, 400))
    here = result.choice.least if result.choice.least is not None else result.beta
    smallest = min(upper, float(result.table.betas[0]))
    decades = np.geomspace(smallest, upper, count // 2)
    near = here * np.geomspace(0.1, 10.0, count // 4) if here else np.zeros(0)
    even = np.linspace(smallest, upper, count // 8)
    points = np.concatenate([decades, near, even])
    return np.unique(np.clip(points, max(lower, smallest), upper))


def _work(problem: Problem) -> float:
    n, d = problem.shape
    strategy = source_of(problem)
    pairs = {
        strategies.LeaveOneOut: n, strategies.SafeBayes: 2 * n, strategies.Bootstrap: 8,
        strategies.KFold: 10,
    }.get(type(strategy), 4)  # fmt: skip
    return pairs * n * (d + 1) * (d + 4)


def on_curve(result: Calibration, betas: Array) -> Array:
    """Return the curve at betas, a few at a time."""
    parts = [betas[k : k + BATCH] for k in range(0, len(betas), BATCH)]
    return np.concatenate([np.asarray(result.curve(part), dtype=float) for part in parts])


def lowest_point(problem: Problem, result: Calibration) -> str | None:
    """The choice is as low as the scan; flags and risk say what the curve does.

    Between the betas of the scan a curve may fall a little lower, unseen, and below its first beta
    much.
    """
    if isinstance(problem.strategy, strategies.Bayes | strategies.Stacking):
        return None
    curve, choice = result.curve, result.choice
    lower, upper = problem.bounds
    scan = np.unique(np.clip([lower, *result.table.betas, upper], lower, upper))
    here = choice.least if choice.least is not None else result.beta
    with only_own_warnings():
        at_choice, risk = float(curve(result.beta)), float(curve(here))
        points = np.union1d(scan, grid_for(problem, result))
        points = points[[not beyond_digits(problem, float(beta)) for beta in points]]
        scan = np.intersect1d(scan, points)
        if not len(points) or beyond_digits(problem, here):
            return None
        values = on_curve(result, points)
    bad = ~np.isfinite(values)
    if bad.any():
        return f"the curve is {values[bad][0]} at beta = {points[bad][0]!r}, within bounds"
    size, span = float(np.abs(values).max()), float(np.ptp(values))
    if abs(result.risk - at_choice) > 1e-12 * abs(at_choice) + 1e-11 * span:
        return f"risk {result.risk!r} is not the curve's {at_choice!r} at beta {result.beta!r}"
    if choice.at_bound != (result.beta in (lower, upper)) and not choice.flat:
        return f"at_bound is {choice.at_bound} at beta {result.beta!r}"
    if not lower <= result.beta <= upper:
        return f"beta {result.beta!r} is out of bounds"
    for looked, part in ((scan, 1e-9), (points, UNSEEN)):
        if not len(looked):
            continue
        found = values[np.searchsorted(points, looked)]
        least = int(found.argmin())
        gap = risk - float(found[least])
        # The height to fall may be little beside what the curve is at its worst.
        others = found[found <= np.median(found)]
        tolerance = part * min(span, float(np.ptp(others)) * 100) + 1e-11 * size
        if gap > tolerance:
            noise = max(_noise(curve, here), _noise(curve, float(looked[least])))
            if gap > tolerance + 10 * noise:
                flat = ", called flat" if choice.flat else ""
                return (
                    f"risk {risk!r} at beta {here!r}{flat}, but {float(found[least])!r} at "
                    f"{float(looked[least])!r}; the curve spans {span:.3g}"
                )
    return None


def mixture(problem: Problem, result: Calibration) -> str | None:
    """A stack has weights of betas within bounds, and none that are better by their votes."""
    if not isinstance(problem.strategy, strategies.Stacking):
        return None if result.weights is None else "a mixture that nobody asked for"
    held, table = result.weights, result.table
    assert held is not None and table is not None
    lower, upper = problem.bounds
    if not (np.all(np.diff(held.betas) > 0) and lower <= held.betas[0] <= held.betas[-1]):
        return f"betas {held.betas} do not increase from the lower bound"
    if held.betas[-1] > upper * (1 + 1e-12):
        return f"betas up to {held.betas[-1]!r}, beyond the upper bound"
    if not (np.all(held.weights >= 0) and abs(held.weights.sum() - 1) < 1e-12):
        return f"weights {held.weights}"
    if not held.betas[0] * (1 - 1e-12) <= result.beta <= held.betas[-1] * (1 + 1e-12):
        return f"the median {result.beta!r} lies outside the betas"
    with only_own_warnings():
        losses = table.at(held.betas)
    if np.isinf(table.votes) or np.ptp(losses) > STEEP:
        return None
    # At the largest value of a concave function no vertex of the simplex is uphill.
    votes, bayes = votes_of_rows(table), nearest_to_bayes(held.betas)
    uphill = np.exp(held.mixed(losses) - losses) @ votes
    uphill[bayes] += table.votes / held.weights[bayes]
    total = votes.sum() + table.votes
    if not uphill.max() <= total * (1 + 1e-5):
        beta = held.betas[int(uphill.argmax())]
        return f"weights {held.weights} are not the best: more for beta {beta!r} would be better"
    return None


def _noise(curve: Any, beta: float) -> float:
    """Return how far neighbouring values are from a line: rounding, for a smooth curve."""
    points = beta * (1 + 1e-7 * np.arange(-3, 4)) if beta else 1e-300 * np.arange(7)
    with only_own_warnings():
        values = np.asarray(curve(np.abs(points)), dtype=float)
    return float(np.abs(np.diff(values, 2)).max())


def beyond_digits(problem: Problem, beta: float) -> bool:
    """Whether numbers are so unequal that answers of doubles may be rounding.

    Directions in which the rows are 1e-16 as long as in the longest are lost, which matters if a
    prior of unit size is less beside the longest than 1e-10; evidences of scales are too large for
    differences between them.
    """
    if not problem.is_linear or not beta:
        return False
    model: Any = problem.model
    data = problem.data
    noise = float(getattr(model, "noise_variance", None) or 1.0)
    with np.errstate(over="ignore"):
        if isinstance(model, models.HierarchicalLinear):
            size = beta * data.size * 50  # times the logarithm of a variance
            if model.noise_variance is not None:
                size = beta * float(data.weights @ (data.y**2)) / noise
            if size > 1e7:
                return True
            longest, noise = float(np.max(model.scales)) ** 2 * np.sum(data.X**2), 1.0
        else:
            Z = model.design(data.X if problem.X is not None else np.zeros((len(data.y), 0)))
            longest = np.sum(model.prior(Z.shape[1]).whiten(Z) ** 2)
        tiny = data.weights[data.weights > 0].min() < LEAST_WEIGHT
        return tiny or not beta * longest * data.weights.max() / noise < LONGEST


def slope(problem: Problem, result: Calibration) -> str | None:
    """The slope is a difference quotient of the curve, where that is well conditioned."""
    curve = result.curve
    lower, upper = problem.bounds
    centre = result.beta or min(1.0, upper)
    exact = problem.is_linear
    for factor in (1e-3, 0.2, 1.0, 5.0) if exact else (0.2, 5.0):
        beta = centre * factor
        if not result.table.betas[0] < beta < upper or beta * problem.data.size > LARGEST_COUNT:
            continue
        if beyond_digits(problem, beta):
            continue
        steps = np.array([-2e-3, -1e-3, 1e-3, 2e-3])
        with only_own_warnings():
            value, derivative = curve(beta, derivative=True)
            around = np.asarray(curve(beta * (1 + steps)), dtype=float)
        wide, narrow = (around[3] - around[0]) / 4e-3, (around[2] - around[1]) / 2e-3
        best = narrow + (narrow - wide) / 3
        allowed = 1e-5 * abs(best) + abs(narrow - wide)  # far above the error of the extrapolation
        allowed += (1e-10 if exact else 1e-7) * (float(np.abs(around).max()) + UNIT)
        error = abs(beta * derivative - best)
        if not error <= allowed:
            # An error of the values is 1.5e3 times as large in the extrapolated quotient.
            noise = max(_noise(curve, beta * (1 + step)) for step in (*steps, 0.0))
            allowed += 1.5e3 * max(noise, _sensitivity(problem, beta))
        if not error <= allowed:
            return (
                f"slope {derivative!r} at beta {beta!r} is not the difference quotient "
                f"{best / beta!r} (risk {value!r})"
            )
    return None


# A plain computation -------------------------------------------------------------------------


def source_of(problem: Problem) -> Any:
    """Return how the strategy holds rows out."""
    strategy = problem.strategy
    if not isinstance(strategy, strategies.Stacking):
        return strategy
    return strategies.LeaveOneOut() if strategy.source is None else strategy.source


def plan_of(problem: Problem, result: Calibration) -> tuple[Data, Pairs] | None:
    """Return the rows and pairs that the strategy tests, where it has any."""
    if not isinstance(result.strategy, PlanStrategy):
        return None
    rng = np.random.default_rng(problem.seed)
    rows, plan = result.strategy.planned(problem.data, rng)
    return rows, plan.pairs()


def plain_linear_risk(problem: Problem, result: Calibration) -> str | None:
    """The curve of a linear model is what decimals say, as far as doubles carry its inputs."""
    planned = plan_of(problem, result)
    if planned is None or not problem.is_linear:
        return None
    rows, plan = planned
    d = problem.model.design(rows.X).shape[1]  # type: ignore[attr-defined]
    many = problem.extreme or problem.bounds[1] > 1e100
    digits = plain_linear.MANY_DIGITS if many else plain_linear.DIGITS
    plain: Any = plain_linear
    if isinstance(problem.model, models.HierarchicalLinear):
        plain, d = plain_averaged, d * int(np.sqrt(2 * np.size(problem.model.scales)))
    # Multiplications: of each pair and trained row, and of each tested row.
    work = (plan.train > 0).sum() * (2 * d * d + 3 * d) + (plan.test > 0).sum() * d * d
    if work * digits > DECIMAL_WORK:
        return None
    inputs = plain.inputs_of(problem.model, rows, plan)
    rng = np.random.default_rng(problem.seed)
    for beta in _betas(problem, result):
        if beyond_digits(problem, beta):
            continue
        risk, size = plain.plain_risk(problem.model, inputs, beta, problem.risk, digits)
        if not (np.isfinite(risk) and size < 1e290):
            continue
        with only_own_warnings():
            found = float(result.curve(beta))
        error = abs(found - risk)
        if error <= 1e-7 * size:
            continue
        moved = [
            plain.plain_risk(problem.model, inputs.perturbed(rng), beta, problem.risk, digits)[0]
            for _ in range(4)
        ]
        change = max(abs(each - risk) for each in moved)
        if not error <= 1e-7 * size + 300 * change:
            return (
                f"risk {found!r} at beta {beta!r}, decimals say {risk!r} (relative error "
                f"{error / size:.1e}, rounding of inputs {change / size:.1e})"
            )
    return None


def plain_logistic_risk(problem: Problem, result: Calibration) -> str | None:
    """The curve of a logistic model is what a plain solver says that proves its answer."""
    planned = plan_of(problem, result)
    if planned is None or problem.is_linear:
        return None
    rows, plan = planned
    n, d = rows.X.shape
    if len(plan.test) * n > 60 or d > 4 or problem.extreme:
        return None
    for beta in _betas(problem, result):
        if beta > 1e12:
            continue
        try:
            risk, size, doubt = plain_logistic.plain_risk(
                problem.model, rows, plan, beta, problem.risk
            )
        except (plain_logistic.NotSolvedError, np.linalg.LinAlgError):
            continue
        # A loss of 1e-30 and one of 1e-20 are the same to anybody.
        size = max(size, 1e-12)
        if not doubt <= 1e-9 * size:
            continue
        with only_own_warnings():
            found = float(result.curve(beta))
        error = abs(found - risk)
        if error <= 1e-7 * size:
            continue
        rng = np.random.default_rng(problem.seed)
        try:
            change = max(
                abs(
                    plain_logistic.plain_risk(problem.model, rows, plan, beta, problem.risk, rng)[0]
                    - risk
                )
                for _ in range(3)
            )
        except (plain_logistic.NotSolvedError, np.linalg.LinAlgError):
            continue
        if not error <= 1e-7 * size + 300 * change:
            return (
                f"risk {found!r} at beta {beta!r}, a plain solver says {risk!r} (relative error "
                f"{error / size:.1e}, rounding of inputs {change / size:.1e})"
            )
    return None


def _betas(problem: Problem, result: Calibration) -> list[float]:
    lower, upper = problem.bounds
    middle = float(np.clip(1.0, lower, upper))
    return list(dict.fromkeys([result.beta, middle, upper, float(np.clip(1e-3, lower, upper))]))


# Invariances ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """Another problem with the same answer, up to known factors.

    Parameters
    ----------
    name : in words
    problem : the other problem
    beta : factor on beta
    risk, shift : the other risk is ``risk`` times this one, plus ``shift``
    exact : whether the change is without rounding
    """

    name: str
    problem: Problem
    beta: float = 1.0
    risk: float = 1.0
    shift: float = 0.0
    exact: bool = True


def changes(problem: Problem) -> list[Change]:
    """Return the changes that leave this problem's answer as it is."""
    if isinstance(problem.strategy, strategies.Oracle) or problem.extreme:
        return []
    try:
        data = problem.data
    except ValueError:
        return []
    plain = replace(
        problem, X=None if problem.X is None else data.X, y=data.y, weights=data.weights
    )
    makers = (_reordered, _repeated, _other_inputs_unit, _other_response_unit, _loss_scaled,
              _weights_scaled, _wider)  # fmt: skip
    return [change for maker in makers if (change := maker(plain)) is not None]


FREE_OF_ORDER = (
    strategies.KFold, strategies.LeaveOneOut, strategies.Naive, strategies.ReferenceRisk,
)  # fmt: skip


def _reordered(problem: Problem) -> Change | None:
    if not isinstance(source_of(problem), FREE_OF_ORDER):
        return None
    order = np.random.default_rng(problem.seed).permutation(len(problem.y))
    X = None if problem.X is None else problem.X[order]
    other = replace(problem, X=X, y=problem.y[order], weights=problem.weights[order])
    return Change("rows in another order", other, exact=False)


def _repeated(problem: Problem) -> Change | None:
    weights = problem.weights
    if not isinstance(
        source_of(problem), strategies.KFold | strategies.Naive | strategies.ReferenceRisk
    ) or not (np.all(weights == np.round(weights)) and weights.max() < 10 and np.any(weights > 1)):
        return None
    rows = np.repeat(np.arange(len(weights)), weights.astype(int))
    X = None if problem.X is None else problem.X[rows]
    other = replace(problem, X=X, y=problem.y[rows], weights=np.ones(len(rows)))
    return Change("weights as repeated rows", other, exact=False)


def _other_inputs_unit(problem: Problem) -> Change | None:
    """X / 2^k, prior deviations times 2^k: no rounding at all."""
    if isinstance(problem.model, models.GaussianMean | models.Polynomial):
        return None
    factor = 2.0 ** int(np.random.default_rng(problem.seed).integers(-20, 21))
    if isinstance(problem.model, models.HierarchicalLinear):
        units = np.full(problem.X.shape[1], factor)
        if problem.model.intercept:
            units[0] = 1.0
        averaged = replace(problem.model, scales=np.asarray(problem.model.scales) * factor)
        return Change(
            f"X / {factor:g}, scales in that unit",
            replace(problem, X=problem.X / units, model=averaged),
        )
    model = replace(
        problem.model,  # type: ignore[type-var]
        prior_cov=np.asarray(problem.model.prior_cov) * factor**2,  # type: ignore[attr-defined]
        prior_mean=np.asarray(problem.model.prior_mean) * factor,  # type: ignore[attr-defined]
    )
    return Change(
        f"X / {factor:g}, prior in that unit", replace(problem, X=problem.X / factor, model=model)
    )


def _other_response_unit(problem: Problem) -> Change | None:
    if not problem.is_linear:
        return None
    factor = 2.0 ** int(np.random.default_rng(problem.seed).integers(-20, 21))
    model: Any = problem.model
    if isinstance(model, models.HierarchicalLinear):
        unknown = model.noise_variance is None
        variance = {} if unknown else {"noise_variance": model.noise_variance * factor**2}
        return Change(
            f"y times {factor:g}, model in that unit",
            replace(
                problem,
                y=problem.y * factor,
                model=replace(model, b=model.b * factor**2, **variance),
            ),
            shift=float(np.log(factor)),
        )
    unknown = isinstance(model, models.NormalInverseGammaLinear)
    cov = model.prior_cov
    if isinstance(model, models.Polynomial) and cov is None:
        cov = 0.5 ** np.arange(model.n_powers)
    options: dict[str, Any] = {"prior_mean": np.asarray(model.prior_mean) * factor}
    if unknown:
        options["b"] = model.b * factor**2
    else:
        options |= {
            "noise_variance": model.noise_variance * factor**2,
            "prior_cov": np.asarray(cov) * factor**2,
        }
    return Change(
        f"y times {factor:g}, model in that unit",
        replace(problem, y=problem.y * factor, model=replace(model, **options)),
        shift=float(np.log(factor)),
    )


def _loss_scaled(problem: Problem) -> Change | None:
    """Noise variance times c: but for constants the loss is c times smaller, and beta c larger."""
    model: Any = problem.model
    if (
        not hasattr(model, "noise_variance")
        or isinstance(model, models.HierarchicalLinear)  # its prior is in units of the noise
        or problem.risk != "gibbs"
        or not isinstance(problem.strategy, PlanStrategy)
    ):
        return None
    factor = 2.0 ** int(np.random.default_rng(problem.seed).integers(-10, 11))
    lower, upper = problem.bounds
    other = replace(
        problem,
        model=replace(model, noise_variance=model.noise_variance * factor),
        bounds=(lower * factor, upper * factor),
    )
    if upper * factor > LARGEST_BETA:
        return None
    before, after = (np.log(2 * np.pi * each.model.noise_variance) / 2 for each in (problem, other))
    return Change(
        f"noise_variance times {factor:g}",
        other,
        beta=factor,
        risk=1 / factor,
        shift=float(after - before / factor),
    )


def _weights_scaled(problem: Problem) -> Change | None:
    if not isinstance(
        problem.strategy,
        strategies.LeaveOneOut
        | strategies.Naive
        | strategies.SafeBayes
        | strategies.SampleSplitting,
    ) or isinstance(problem.strategy, strategies.Bayes):
        return None
    if getattr(problem.strategy, "duplicates", "together") != "together":
        return None  # a weight counts observations
    factor = 4.0 ** int(np.random.default_rng(problem.seed).integers(-6, 7))
    lower, upper = problem.bounds
    if upper / factor > LARGEST_BETA or problem.weights.min() < 1e-100:
        return None
    other = replace(
        problem, weights=problem.weights * factor, bounds=(lower / factor, upper / factor)
    )
    return Change(f"weights times {factor:g}", other, beta=1 / factor)


def _wider(problem: Problem) -> Change | None:
    if isinstance(problem.strategy, strategies.ReferenceRisk | strategies.Stacking):
        return None  # they begin at points of the bounds
    lower, upper = problem.bounds
    rng = np.random.default_rng(problem.seed)
    bounds = lower / 2, min(upper * float(10.0 ** rng.uniform(0, 6)), LARGEST_BETA)
    return Change(f"bounds {bounds}", replace(problem, bounds=bounds), exact=False)


def same_answer(problem: Problem, result: Calibration, change: Change) -> str | None:
    """The changed problem has the same curve and the same choice."""
    if isinstance(problem.strategy, strategies.Bayes):
        return None
    wider = change.problem.bounds != problem.bounds and change.beta == 1
    try:
        other = calibrated(change.problem)
    except Exception as error:  # noqa: BLE001
        if not_found(error):
            raise
        return f"{change.name}: {exception_in_words(error)}"
    betas = [
        beta
        for beta in _betas(problem, result)
        if beta * change.beta < LARGEST_BETA and not beyond_digits(problem, beta)
    ]
    if not betas or beyond_digits(problem, result.beta):
        return None
    with only_own_warnings():
        here = np.asarray(result.curve(np.array(betas)), dtype=float)
        there = np.asarray(other.curve(np.array(betas) * change.beta), dtype=float)
    expected = here * change.risk + change.shift
    size = (np.abs(here) + UNIT) * change.risk + abs(change.shift)
    error = np.abs(there - expected)
    worst = int((error / np.maximum(size, 1e-300)).argmax())
    accuracy = 1e-8 if problem.is_linear else 1e-6
    if error[worst] > accuracy * size[worst]:
        allowed = 30 * _sensitivity(problem, betas[worst]) * change.risk
        if not change.exact:
            allowed *= 10
        if error[worst] > accuracy * size[worst] + allowed:
            return (
                f"{change.name}: risk {there[worst]!r} instead of {expected[worst]!r} at beta "
                f"{betas[worst]!r} (relative error {error[worst] / size[worst]:.1e})"
            )
        return None
    if result.weights is not None and other.weights is not None:
        # Where mixtures forecast alike, any of their weights will do.
        gap = abs(result.risk + change.shift - other.risk)
        if gap > 1e-5 * (abs(result.risk) + 1):
            return f"{change.name}: a mixture of risk {other.risk!r} instead of {result.risk!r}"
        return None
    if result.flat != other.flat and not wider:
        noise = max(_noise(result.curve, b) for b in betas)
        if np.ptp(here) > 1e-11 * float(np.abs(here).max()) + 10 * noise:
            return f"{change.name}: flat is {other.flat} instead of {result.flat}"
    if result.flat or other.flat:
        return None
    if isinstance(problem.strategy, strategies.ReferenceRisk) and (
        result.choice.least is not None or other.choice.least is not None
    ):
        mine, its = result.beta, other.beta / change.beta
        if abs(mine - its) > 1e-3 * max(mine, its):
            return f"{change.name}: beta {its!r} instead of {mine!r}"
        return None
    mine, its = result.beta, other.beta / change.beta
    lower, upper = problem.bounds
    if wider and (its > upper or its < lower or result.at_bound):
        # Beyond the old bounds there may be lower points, and only those.
        with only_own_warnings():
            gap = float(other.curve(its)) - float(other.curve(mine))
        size_here = float(np.abs(here).max())
        if gap > 1e-8 * (size_here + UNIT) + 10 * _noise(other.curve, mine):
            return f"{change.name}: the choice {its!r} is worse than {mine!r} by {gap!r}"
        return None
    if abs(mine - its) <= 1e-6 * max(mine, its):
        return None
    if change.beta != 1 and min(mine, its) <= LEAST * max(1.0, 1 / change.beta):
        return None  # a scan begins at the same beta in any units
    # Where the curve is level, any of its points will do.
    with only_own_warnings():
        gap = abs(float(result.curve(its)) - float(result.curve(mine)))
    noise = max(_noise(result.curve, mine), _noise(result.curve, its))
    level = 1e-10 * float(np.ptp(here)) + 1e-12 * float(np.abs(here).min())
    if change.beta != 1 or wider:  # other betas are looked at
        level = 1e-6 * float(np.ptp(here)) + 1e-8 * (float(np.abs(here).min()) + UNIT)
    if gap > level + 10 * noise:
        return f"{change.name}: beta {its!r} instead of {mine!r}, where risk differs by {gap:.2g}"
    return None


def _sensitivity(problem: Problem, beta: float) -> float:
    """Return how far the library's own risk moves when its inputs do by a unit of rounding."""
    rng = np.random.default_rng(problem.seed)
    data = as_data(problem.X, problem.y, problem.weights)
    found = []
    for _ in range(3):
        columns = [data.y, *data.X.T]
        moved = []
        for column in columns:
            # Equal values stay equal, so that the rows that are copies do.
            values, place = np.unique(column, return_inverse=True)
            moved.append((values * (1 + EPS * rng.choice([-1.0, 0.0, 1.0], len(values))))[place])
        X = None if problem.X is None else np.column_stack(moved[1:])
        try:
            other = calibrated(
                replace(problem, X=X, y=_like(problem, moved[0], data), weights=data.weights)
            )
            with only_own_warnings():
                found.append(float(other.curve(beta)))
        except Exception:  # noqa: BLE001
            return float("inf")
    return float(np.ptp(found))


def _like(problem: Problem, y: Array, data: Data) -> Array:
    return y if problem.is_linear else data.y


Oracle = Callable[[Problem, Calibration], str | None]
ALWAYS: tuple[Oracle, ...] = (lowest_point, mixture, slope)
PLAIN: tuple[Oracle, ...] = (plain_linear_risk, plain_logistic_risk)
