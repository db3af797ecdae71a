r"""Follow a solution along beta: predictor, Newton corrector, steps that adapt.

The objectives are convex in (mean, root of the covariance), so their minimiser is a smooth
function of beta that starts at the prior; a Newton iteration that fails only means that the step
along beta was too long.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import NamedTuple, Protocol

import numpy as np

from temperance.models.glm.system import System
from temperance.types import Array

SHORT = 0.1  # steps that need no damping
# Newton's error after a step is of the order of its square, that of the tangent of the step.
TOLERANCE = 3e-8
ROUGH_STEP = 3e-2
APART = 1e8  # ratio of betas between which a cubic says nothing
FAR, NEAR = 100.0, 20.0  # ratios of betas between which a cubic says less than the nearer end
MOST_NEWTON_STEPS, MOST_DAMPED_STEPS = 12, 25
MOST_HALVINGS = 12
ROUNDING = 1e-12  # part of an objective
FEW_NEWTON_STEPS, LONG = 4, 0.3  # steps as long as that after a few are those of a start too far
MOST_STEPS = 60
SHORTEST = 1.01  # ratio of betas
MOST_REMEMBERED = 2**24  # elements of solutions and tangents


class Anchor(NamedTuple):
    """A solution and its tangent; a rough one only suggests them."""

    beta: float
    x: Array
    tangent: Array
    rough: bool = False


class Guide(Protocol):
    """Solutions of similar systems along beta."""

    def at(self, beta: float, rough: bool = False) -> Anchor:
        """Return the solution at ``beta``; a rough one will do where rough answers do."""
        ...


class Path:
    """Solutions along beta; those found are remembered, and those between them start from them.

    A guide knows solutions of a similar system, or of nearly this one: what remains to be predicted
    is how far apart they are, a smaller thing than the solutions.  A path ``among`` many remembers
    its share.  The last step to a rough solution is below ``rough_step``.
    """

    def __init__(
        self,
        system: System,
        guide: Guide | None = None,
        among: int = 1,
        rough_step: float = ROUGH_STEP,
    ) -> None:
        self.system = system
        self.guide = guide
        self.rough_step = rough_step
        if guide is None:
            x = system.start()
            first = Anchor(0.0, x, system.newton(x, 0.0)[1](False))
        else:
            first = guide.at(0.0, True)._replace(rough=True)
        self._anchors = [first]
        self._most = max(3, MOST_REMEMBERED // max(1, 2 * first.x.size * among))

    def at(self, beta: float, rough: bool = False) -> Anchor:
        """Return the solution at ``beta``; a rough one will do where rough answers do."""
        place = bisect_left(self._anchors, beta, key=_beta)
        known = self._anchors[place : place + 1]
        if known and known[0].beta == beta:
            if rough or not known[0].rough:
                return known[0]
            start = self._anchors.pop(place).x
        else:
            start = self._start(self._anchors[place - 1 : place + 1], beta, rough)
        step = self.rough_step if rough else None
        found = correct(self.system, start, beta, step)
        if found is None and len(self._anchors) > 1:
            found = correct(self.system, self.system.guess(beta), beta, step)
        if found is None:
            return self._climb(self._anchors[place - 1], beta)
        return self._remember(found)

    def _start(self, around: list[Anchor], beta: float, rough: bool) -> Array:
        """Predict the solution from those around it, and from the guide's where there is one."""
        first = self.system.rows.first_step
        if len(around) > 1 and around[1].beta + first > APART * (around[0].beta + first):
            return self.system.guess(beta)
        if self.guide is not None:
            apart = [_difference(anchor, self.guide.at(anchor.beta, True)) for anchor in around]
            predict = _settling if _settled(apart, beta, first) else _between
            return self.guide.at(beta, rough).x + predict(apart, beta, first)
        return _between(around, beta, first) if len(around) > 1 else self.system.guess(beta)

    def _remember(self, anchor: Anchor) -> Anchor:
        insort(self._anchors, anchor, key=_beta)
        if len(self._anchors) > self._most:
            del self._anchors[1]  # the prior stays; a search ends at larger betas than it begins
        return anchor

    def _climb(self, anchor: Anchor, beta: float) -> Anchor:
        """Go upwards in steps as long as Newton's method allows, or refuse."""
        first = self.system.rows.first_step
        reach = 8.0
        for _ in range(MOST_STEPS):
            target = min(beta, (anchor.beta + first) * reach - first)
            # Euler's step in log(beta + first), where solutions move evenly.
            low, high = anchor.beta + first, target + first
            change = low * np.log(high / low) * anchor.tangent
            try:
                start = self.system.ahead(anchor.x, change, anchor.beta, target)
            except np.linalg.LinAlgError:
                start = anchor.x
            found = correct(self.system, start, target, damped=True)
            if found is None:
                reach = np.sqrt(reach)
                if reach < SHORTEST:
                    break
                continue
            anchor, reach = self._remember(found), 1.5 * reach
            if target == beta:
                return anchor
        raise ValueError(
            f"X must be nearer to the scale of its prior, or bounds narrower: no approximate "
            f"posterior was found at beta = {beta:.3g}, only up to {anchor.beta:.3g}; standardise "
            "X or use a smaller prior_cov"
        )


def _beta(anchor: Anchor) -> float:
    return anchor.beta


def _difference(one: Anchor, other: Anchor) -> Anchor:
    return Anchor(one.beta, one.x - other.x, one.tangent - other.tangent)


def _between(around: list[Anchor], beta: float, first: float) -> Array:
    """Cubic in log(beta + first) through two solutions and their tangents; beyond one, that one."""
    before, after = around[0], around[-1]
    low, high = before.beta + first, after.beta + first
    width = np.log1p((after.beta - before.beta) / low)
    if width == 0:
        return before.x
    t = np.log1p((beta - before.beta) / low) / width
    # dx/dt = dx/dbeta (beta + first) width
    rise = after.x - before.x
    start, stop = low * width * before.tangent - rise, rise - high * width * after.tangent
    return before.x + t * rise + t * (1 - t) * ((1 - t) * start + t * stop)


def _settled(around: list[Anchor], beta: float, first: float) -> bool:
    """Tell whether data outweigh the prior by far, and the solution above is near."""
    low, here, high = (each + first for each in (around[0].beta, beta, around[-1].beta))
    return here > FAR * low and here < high < NEAR * here


def _settling(around: list[Anchor], beta: float, first: float) -> Array:
    """Line in 1 / (beta + first) from the solution above."""
    above = around[-1]
    high = above.beta + first
    return above.x + high * (1 - high / (beta + first)) * above.tangent


def correct(
    system: System,
    x: Array,
    beta: float,
    rough_step: float | None = None,
    damped: bool = False,
) -> Anchor | None:
    """Find the solution from one nearby by Newton's method, damped or not, if that leads there."""
    if not system.admissible(x):
        return None
    rough = rough_step is not None
    before, tolerance = np.inf, TOLERANCE if rough_step is None else rough_step
    # Steps below this that shrink no more are rounding, which information magnifies.
    information = beta / system.rows.first_step
    rounding = min(1e-6 + 0.1 * np.finfo(float).eps * information, 1e-4)
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
            return Anchor(beta, x, tangent(rough), rough)
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
