r"""The equations of a Gaussian approximation, and Newton's method for them.

A system solves F(x, beta) = 0 for the parameters x of N(mean, S) in whitened coordinates, where
the prior is N(0, I), for m weightings of the same rows at once.  By the implicit function theorem
its solution moves by

    dx/dbeta = -J^-1 dF/dbeta,      J the Jacobian of F in x.

The objectives are convex in (mean, root of the covariance), so their minimiser is a smooth
function of beta that starts at the prior: where Newton's method fails, a solution at a smaller
beta is a better start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from temperance.data import Array
from temperance.losses.base import Forces, PredictorLoss, Resembling, TestedLoss
from temperance.models.glm.gaussians import Law
from temperance.models.glm.rows import Rows

# Newton's error after a step is of the order of its square, that of the tangent of the step.
TOLERANCE = 3e-8
SHORT = 0.1  # steps that need no damping
MOST_NEWTON_STEPS, MOST_DAMPED_STEPS = 12, 25
FEW_NEWTON_STEPS, LONG = 4, 0.3  # steps as long as that after a few are those of a start too far
MOST_HALVINGS = 12
ROUNDING = 1e-12  # part of an objective
MOST_BETAS, SHORTEST = 60, 1.01  # on the way to a beta, and the smallest ratio between two
SMALL = 1e-4

Tangent: TypeAlias = Callable[[], Array]  # the derivative dx/dbeta, computed when asked for


class System(Protocol):
    """Stationarity equations of m approximations; x has shape (m, parameters)."""

    @property
    def rows(self) -> Rows:
        """The rows that are trained on."""
        ...

    @property
    def loss(self) -> Resembling:
        """The loss whose expectation is minimised."""
        ...

    @property
    def convex(self) -> bool:
        """Whether the objective is convex, so that its minimum follows beta from the prior on."""
        ...

    def start(self) -> Array:
        """Return the solution at beta = 0: the prior."""
        ...

    def guess(self, beta: float) -> Array:
        """Return the parameters of the loss's typical quadratic, not far off at large beta."""
        ...

    def objective(self, x: Array, beta: float) -> Array:
        """Return what the solution minimises, (m,), up to a constant."""
        ...

    def newton(self, x: Array, beta: float) -> tuple[Array, Tangent]:
        r"""Return the Newton step -J^-1 F and the tangent dx/dbeta = -J^-1 dF/dbeta."""
        ...

    def scale(self, x: Array, beta: float) -> Array:
        """Return the size against which a step in each parameter is small."""
        ...

    def ahead(self, x: Array, change: Array, beta: float, target: float) -> Array:
        """Return parameters at ``target`` from those at ``beta`` and a first-order change."""
        ...

    def admissible(self, x: Array) -> bool:
        """Tell whether the parameters are those of a Gaussian."""
        ...

    def law(self, x: Array, tangent: Array, beta: float) -> Law:
        """Return the approximations and how they move."""
        ...

    def gaussian(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return means (m, k) and covariance roots (m, k, k), or diagonal ones (m, k)."""
        ...


@runtime_checkable
class CoefficientSystem(System, Protocol):
    """A system whose x is about coefficients: it means the same with other rows."""

    def parameters(self, mean: Array, curvature: Array, beta: float) -> Array:
        """Return x of Gaussians with these means (m, k) and precisions I + beta curvature."""
        ...


class Fit(Protocol):
    """What a risk curve asks of an approximation."""

    @property
    def loss(self) -> TestedLoss:
        """The loss of a row."""
        ...

    def system(self, rows: Rows) -> System:
        """Return the equations of the approximation."""
        ...

    @property
    def diagonal(self) -> bool:
        """Whether the covariance is diagonal in the coordinates of the rows."""
        ...


class Approximation(Fit, Protocol):
    """A kind of Gaussian approximation of the posterior under a loss of one predictor."""

    @property
    def loss(self) -> PredictorLoss:
        """The loss of a row."""
        ...

    def forces(self, mean: Array, variance: Array, y: Array) -> Forces:
        """Return what rows with these predictors add to the equations."""
        ...

    def roughly(self) -> Self:
        """Return the approximation under the rough loss."""
        ...


@dataclass(frozen=True)
class UnderLoss:
    """An approximation under a loss."""

    loss: PredictorLoss

    def roughly(self) -> Self:
        """Return the approximation under the rough loss."""
        return replace(self, loss=self.loss.roughly())


class StraightAhead:
    """Parameters that move along straight lines in log(beta), more or less."""

    def ahead(self, x: Array, change: Array, beta: float, target: float) -> Array:
        """Return parameters at ``target`` from those at ``beta`` and a first-order change."""
        return x + change


class Solution(NamedTuple):
    """The parameters that solve a system at beta, and their derivatives."""

    beta: float
    x: Array
    tangent: Array


def solve(system: System, beta: float) -> Solution:
    """Solve a system by Newton's method, from its guess or from the prior in steps of beta."""
    found = from_guess(system, beta) if beta > 0 else None
    return found if found is not None else climb(system, at_prior(system), beta)[-1]


def from_guess(system: System, beta: float, tolerance: float = TOLERANCE) -> Solution | None:
    """Solve a system from its guess; nothing where that fails.

    If the loss is not convex, solutions at smaller betas may be far away, so that descent from the
    guess is tried as well.
    """
    guess = system.guess(beta)
    found = newton(system, guess, beta, tolerance)
    if found is None and not system.convex:
        found = newton(system, guess, beta, tolerance, damped=True)
    return found


def at_prior(system: System) -> Solution:
    """Return the solution at beta = 0."""
    x = system.start()
    return Solution(0.0, x, system.newton(x, 0.0)[1]())


def climb(system: System, start: Solution, beta: float) -> list[Solution]:
    """Solve at growing betas, as far apart as Newton's method allows, up to ``beta``, or refuse."""
    first, found, ratio = first_step(system), [start], 8.0
    if start.beta == beta:
        return found
    for _ in range(MOST_BETAS):
        here = found[-1]
        target = min(beta, (here.beta + first) * ratio - first)
        # Euler's step in log(beta + first), where solutions move evenly.
        low, high = here.beta + first, target + first
        change = low * np.log(high / low) * here.tangent
        try:
            ahead = system.ahead(here.x, change, here.beta, target)
        except np.linalg.LinAlgError:
            ahead = here.x
        there = newton(system, ahead, target, damped=True)
        if there is None:
            ratio = np.sqrt(ratio)
            if ratio < SHORTEST:
                break
            continue
        found.append(there)
        ratio *= 1.5
        if target == beta:
            return found
    raise ValueError(
        f"X must be nearer to the scale of its prior, or bounds narrower: no approximate "
        f"posterior was found at beta = {beta:.3g}, only up to {found[-1].beta:.3g}; standardise "
        "X or use a smaller prior_cov"
    )


def newton(
    system: System, x: Array, beta: float, tolerance: float = TOLERANCE, damped: bool = False
) -> Solution | None:
    """Solve from a start nearby by Newton's method, damped or not; nothing where that fails."""
    if not system.admissible(x):
        return None
    before = np.inf
    # Steps below this that shrink no more are rounding, which information magnifies.
    rounding = min(1e-6 + 0.1 * np.finfo(float).eps * beta / first_step(system), 1e-4)
    for count in range(MOST_DAMPED_STEPS if damped else MOST_NEWTON_STEPS):
        try:
            # A step too long for a number is one that failed.
            with np.errstate(over="ignore", invalid="ignore"):
                step, tangent = system.newton(x, beta)
                size = float(np.max(np.abs(step) / system.scale(x, beta), initial=0.0))
        except np.linalg.LinAlgError:
            return None
        if damped and size > SHORT:
            lower = _descended(system, x, step, beta)
            if lower is None:
                return None
            x, before = lower, np.inf
            continue
        if not np.isfinite(size) or (size > 2 * before and size > rounding):
            return None
        if count >= FEW_NEWTON_STEPS and size > max(LONG, before / 2):
            return None
        x = x + step
        if not system.admissible(x):
            return None
        if size < tolerance or (size < rounding and size > before / 4):
            return Solution(beta, x, tangent())
        before = size
    return None


def _descended(system: System, x: Array, step: Array, beta: float) -> Array | None:
    """Go as far along a step as lets each objective fall: all the way, or a half, a quarter..."""
    share = np.ones((len(x), 1))
    with np.errstate(over="ignore", invalid="ignore"):
        before = system.objective(x, beta)
        enough = before + ROUNDING * np.abs(before)
        for _ in range(MOST_HALVINGS):
            moved = x + share * step
            worse = np.ones(len(x), dtype=bool)
            if system.admissible(moved):
                try:
                    worse = ~(system.objective(moved, beta) <= enough)
                except np.linalg.LinAlgError:
                    pass  # no Gaussian at all
                if not worse.any():
                    return moved
            share[worse] /= 2
    return None


def first_step(system: System) -> float:
    """Return a beta at which the data weigh about as much as the prior: information inverted."""
    information = system.rows.information(system.loss)
    return 1.0 / information if information > 0 else 1.0


def small_step(system: System, beta: float) -> float:
    """Return a difference of betas that is small on the scale on which solutions move."""
    return SMALL * (beta + first_step(system))
