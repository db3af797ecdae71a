"""Hostile recorded draws: what calibration from them must answer, or refuse in one line."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from temperance import calibrate_from_draws
from temperance.messages import TemperanceWarning
from temperance.models.sampled.from_draws import DrawsCalibration

SAME = 1e-6  # relative difference of supports and choices that should be the same


class Problem(NamedTuple):
    """Arguments of one call."""

    log_likelihood: Any
    beta_of_draws: Any
    bounds: tuple[float, float]
    risk: str


class Failure(Exception):
    """An oracle that does not hold."""


def run(seed: int) -> str | None:
    """Try one problem; return None if all is well, else one line about the failure."""
    rng = np.random.default_rng(seed)
    problem, kind = _problem(rng)
    try:
        _check(problem, rng)
    except Failure as failure:
        return f"draws, seed {seed} ({kind}): {failure}"
    return None


def _problem(rng: np.random.Generator) -> tuple[Problem, str]:
    n, size = int(rng.integers(2, 7)), int(rng.integers(26, 60))
    kind = str(rng.choice(list(KINDS)))
    beta = float(rng.choice([1.0, 1.0, 0.3, 2.0, 10 ** rng.uniform(-3, 3)]))
    losses = KINDS[kind](rng, n, size, beta)
    if rng.random() < 0.2:
        losses = losses + 10 ** rng.uniform(0, 9) * rng.standard_normal(n)
    # Losses in other units, and betas in their inverse.
    unit = 10 ** float(rng.choice([0, 0, 0, rng.uniform(-12, 12), rng.uniform(-290, 290)]))
    upper = float(rng.choice([3.0, 3.0, 10 ** rng.uniform(-2, 4)])) * beta
    lower = float(rng.choice([0.0, 0.0, rng.uniform(0, 1)])) * upper
    beta = 0.0 if rng.random() < 0.05 else beta
    with np.errstate(over="ignore", under="ignore"):
        problem = Problem(
            -losses * unit,
            beta / unit,
            (lower / unit, upper / unit),
            str(rng.choice(["gibbs", "predictive"])),
        )
    if rng.random() < 0.1:
        problem, kind = _spoilt(problem, rng)
    return problem, kind


def _normal(rng: np.random.Generator, n: int, size: int, beta: float) -> Any:
    """Mean of normal data, under a wide prior."""
    y = rng.standard_normal(n) * 10 ** rng.uniform(-1, 1)
    theta = rng.normal(y.mean(), (1e-2 + beta * n) ** -0.5, (4, size, 1))
    return 0.5 * (y - theta) ** 2


def _outlier(rng: np.random.Generator, n: int, size: int, beta: float) -> Any:
    """One row that the posterior cannot do without."""
    losses = _normal(rng, n, size, beta)
    losses[..., 0] *= 10 ** rng.uniform(0, 4)
    return losses


def _strange_draw(rng: np.random.Generator, n: int, size: int, beta: float) -> Any:
    """One draw far from all others."""
    losses = _normal(rng, n, size, beta)
    losses[0, 0] *= 10 ** rng.uniform(1, 12)
    return losses


def _sticky(rng: np.random.Generator, n: int, size: int, beta: float) -> Any:
    """Chains that hardly move."""
    losses = _normal(rng, n, size, beta)
    stays = rng.random((4, size)) < rng.uniform(0, 0.7)
    last = np.maximum.accumulate(np.where(stays, 0, np.arange(size)), axis=1)
    return np.take_along_axis(losses, last[..., None], axis=1)


def _discrete(rng: np.random.Generator, n: int, size: int, beta: float) -> Any:
    """Losses of a few values, one of which is common."""
    values = rng.exponential(1.0, (int(rng.integers(2, 6)), n))
    return values[rng.integers(0, len(values), (4, size))]


def _identical(rng: np.random.Generator, n: int, size: int, beta: float) -> Any:
    """Draws that are all the same, or the same up to rounding."""
    losses = np.broadcast_to(rng.standard_normal(n), (4, size, n))
    return losses * (1 + rng.choice([0.0, 1e-16]) * rng.standard_normal((4, size, n)))


def _opposed(rng: np.random.Generator, n: int, size: int, beta: float) -> Any:
    """Rows that make up for each other: all of them together say nothing."""
    losses = rng.standard_normal((4, size, n)) * rng.uniform(0.1, 2)
    losses[..., 0] = -losses[..., 1:].sum(axis=2)
    return losses


def _heavy(rng: np.random.Generator, n: int, size: int, beta: float) -> Any:
    """Losses with no moments."""
    return np.abs(rng.standard_t(rng.uniform(0.5, 3), (4, size, n)))


KINDS = {
    "normal": _normal,
    "outlier": _outlier,
    "strange draw": _strange_draw,
    "sticky": _sticky,
    "discrete": _discrete,
    "identical": _identical,
    "opposed": _opposed,
    "heavy": _heavy,
}


def _spoilt(problem: Problem, rng: np.random.Generator) -> tuple[Problem, str]:
    """Break one argument."""
    values = np.array(problem.log_likelihood)
    place = tuple(rng.integers(0, axis) for axis in values.shape)
    how = str(rng.choice(["nan", "inf", "largest", "one draw", "one row", "few", "flat", "beta"]))
    if how in ("nan", "inf", "largest"):
        values[place] = {"nan": np.nan, "inf": np.inf, "largest": 1.7e308}[how]
    changes: dict[str, dict[str, Any]] = {
        "one draw": {"log_likelihood": values[:, :1]},
        "one row": {"log_likelihood": values[..., :1]},
        "few": {"log_likelihood": values[:1, :3]},
        "flat": {"log_likelihood": values.reshape(-1, values.shape[2])},
        "beta": {"beta_of_draws": rng.choice([-1.0, np.nan, np.inf, 1e300, 1e-300])},
    }
    return problem._replace(**changes.get(how, {"log_likelihood": values})), how


def _check(problem: Problem, rng: np.random.Generator) -> None:
    found = _answer(problem)
    if found is None:
        return
    lower, upper = found.supported
    low, high = problem.bounds
    if not low <= lower <= found.beta <= upper <= high:
        raise Failure(f"beta {found.beta!r} in {found.supported}, bounds {problem.bounds}")
    _check_minimum(found)
    losses, bounds = np.asarray(problem.log_likelihood), problem.bounds
    rows = rng.permutation(losses.shape[-1])
    _check_same(found, problem._replace(log_likelihood=losses[..., rows]), "other order of rows")
    chains = losses[None] if losses.ndim == 2 else losses
    turned = chains[rng.permutation(len(chains)), ::-1]
    _check_same(found, problem._replace(log_likelihood=turned), "other order of draws")
    if low < lower and upper < high:
        wider = low * 10 ** -rng.uniform(0, 3), min(high, 1e300) * 10 ** rng.uniform(0, 6)
        if low < wider[1]:
            _check_same(found, problem._replace(bounds=wider), f"bounds {wider}")
    if problem.risk == "gibbs":
        factor = 10 ** rng.uniform(-12, 12)
        with np.errstate(over="ignore", under="ignore"):
            largest = np.abs(losses).max() * factor
            other = Problem(
                losses * factor,
                problem.beta_of_draws / factor,
                (bounds[0] / factor, bounds[1] / factor),
                problem.risk,
            )
        numbers = np.array([largest, *other.bounds, other.beta_of_draws])
        numbers = numbers[numbers > 0]
        if numbers.min(initial=1.0) > 1e-280 and numbers.max(initial=1.0) < 1e280:
            _check_same(found, other, f"losses times {factor:.3g}", factor)


def _answer(problem: Problem) -> DrawsCalibration | None:
    """Return the calibration, None where it is refused in one line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = calibrate_from_draws(
                problem.log_likelihood,
                problem.beta_of_draws,
                bounds=problem.bounds,
                risk=problem.risk,  # type: ignore[arg-type]
            )
            repr(found)
        except ValueError as refusal:
            if "\n" in str(refusal) or not str(refusal):
                raise Failure(f"a message of several lines: {refusal!r}") from None
            found = None
        except Exception as error:
            raise Failure(f"{type(error).__name__}: {error}") from None
    for warning in caught:
        if not issubclass(warning.category, TemperanceWarning):
            raise Failure(f"{warning.category.__name__}: {warning.message}")
    return found


def _check_minimum(found: DrawsCalibration) -> None:
    """No point of the curve within the support may be lower than the choice."""
    lower, upper = found.supported
    # Crowded at both ends.
    steps = np.geomspace(1e-9, 1.0, 200) * (upper - lower)
    grid = np.clip(np.concatenate([lower + steps, upper - steps]), lower, upper)
    values = found.curve(grid)
    if not np.isfinite([*values, found.risk]).all():
        raise Failure(f"the curve is not finite: {values[~np.isfinite(values)][:1]}")
    rounding = 1e-12 * np.abs(values).max()
    if not found.flat and values.min() < found.risk - rounding:
        best = grid[values.argmin()]
        raise Failure(f"beta = {best!r} is lower than {found.beta!r}")
    if found.monte_carlo_error < 0 or np.isnan(found.monte_carlo_error):
        raise Failure(f"Monte Carlo error {found.monte_carlo_error!r}")


def _check_same(
    found: DrawsCalibration, problem: Problem, change: str, factor: float = 1.0
) -> None:
    """The same support and choice, with betas divided by ``factor``."""
    other = _answer(problem)
    if other is None:
        raise Failure(f"refused with {change}")
    support, its = np.array(found.supported), np.array(other.supported) * factor
    if np.abs(its - support).max() > SAME * support.max():
        raise Failure(f"support {support}, with {change} {its}")
    if found.flat or other.flat:
        return
    # Between two minima of the same depth rounding decides.
    apart = abs(other.beta * factor - found.beta) > SAME * support.max()
    values = found.curve(np.clip([found.beta, other.beta * factor], *support))
    if apart and abs(values[1] - values[0]) > 1e-9 * np.abs(values).max():
        raise Failure(f"beta {found.beta!r}, with {change} {other.beta * factor!r}")
