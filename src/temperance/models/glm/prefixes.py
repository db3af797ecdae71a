r"""SafeBayes of many rows: prefixes of the rows in order, each fitted from the one before.

Short prefixes are followed along beta several at a time, as other pairs are.  Long ones are
views of the same rows, one after the other: at each beta the fit of one guides that of the next,
which has a fiftieth more rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from temperance.curves import RiskCurve, curve_of_tested
from temperance.models.glm.continuation import Path
from temperance.models.glm.curve import (
    QUADRATURE,
    Approximation,
    Part,
    alike,
    parts_of_pairs,
)
from temperance.models.glm.shared_rows import shared_rows
from temperance.models.glm.system import Rows
from temperance.types import Array, PrefixPlan, Risk

SHORT = 500  # rows of prefixes that are followed together
CHAIN = 20  # prefixes that guide each other in turn


@dataclass(frozen=True, eq=False)
class PrefixLosses:
    """Losses of all that the parts test, one after the other."""

    parts: list[Part]
    risk: Risk

    def __call__(self, beta: float, rough: bool = False) -> tuple[Array, Array]:
        """Return the losses and their slopes, flat."""
        found = [part.losses(beta, self.risk, rough) for part in self.parts]
        values, slopes = zip(*found, strict=True)
        return _flat(values), _flat(slopes)


def prefix_risk_curve(
    rows: Rows, plan: PrefixPlan, risk: Risk, approximation: Approximation
) -> RiskCurve:
    """Curve of whitened rows of one weighting, the plan's, with prefixes that are long."""
    parts: list[Part] = []
    tested: list[NDArray[np.intp]] = []
    weight: list[Array] = []
    first = int(plan.ends[plan.ends > SHORT][0])
    for order in plan.orders:
        ordered = _ordered(rows, order)
        if first > plan.start:
            begin, index, weights = _short_prefixes(ordered, plan, first, approximation)
            parts += begin
            tested.append(order[index.ravel()])
            weight.append(weights.ravel())
        parts += _long_prefixes(ordered, plan, approximation)
        tested.append(order[first:])
        weight.append(plan.weights[order[first:]])
    losses = PrefixLosses(parts, risk)
    return curve_of_tested(
        losses,
        np.concatenate(tested),
        np.concatenate(weight),
        len(rows.y),
        method_of(plan),
        sketch=partial(losses, rough=True),
    )


def method_of(plan: PrefixPlan) -> str:
    """Say how the numbers were obtained."""
    return (
        f"{QUADRATURE}, prefixes fitted as they grow by {plan.growth:.0%}"
        if plan.thinned
        else QUADRATURE
    )


def _flat(parts: Sequence[Array]) -> Array:
    return np.concatenate([part.ravel() for part in parts])


def _ordered(rows: Rows, order: NDArray[np.intp]) -> Rows:
    if np.all(order == np.arange(len(order))):
        return rows
    return Rows(rows.Z[order], rows.offset[order], rows.y[order], rows.weights[:, order])


def _short_prefixes(
    rows: Rows, plan: PrefixPlan, stop: int, approximation: Approximation
) -> tuple[list[Part], NDArray[np.intp], Array]:
    """Return the parts of prefixes that test the rows before ``stop``, with rows and weights."""
    begin = PrefixPlan(
        rows.weights[0, :stop], np.arange(stop)[None], plan.start, plan.transfer, plan.growth
    )
    pairs = replace(begin.pairs(), size=plan.size)
    index, weights = pairs.tested_rows()
    weighted = Rows(rows.Z[:stop], rows.offset[:stop], rows.y[:stop], pairs.likelihood_weights)
    return parts_of_pairs(weighted, index, approximation), index, weights


def _long_prefixes(rows: Rows, plan: PrefixPlan, approximation: Approximation) -> list[Part]:
    """Return a part for each long prefix, which tests the rows up to the next."""
    ends = plan.ends[plan.ends > SHORT]
    parts: list[Part] = []
    for end, stop in zip(ends, np.append(ends[1:], len(rows.y)), strict=True):
        whole = rows
        if stop < rows.Z.shape[1]:
            reduced, _ = approximation.coordinates(rows.Z[:stop], rows.weights[0, :stop])
            whole = replace(rows, Z=reduced)
        weights = rows.weights[:, :end]
        if plan.transfer == "alpha":
            weights = plan.size / weights.sum() * weights
        system = approximation.system(shared_rows(whole, slice(end), weights))
        guide = parts[_earlier(len(parts))].path if parts else None
        if guide is not None and not alike(system, guide.system):
            guide = None
        path = Path(system, guide, len(ends))
        parts.append(Part(slice(0, 1), path, whole, slice(int(end), int(stop))))
    return parts


def _earlier(place: int) -> int:
    """Return the place of the guide: the one before, or the first of the chain, or of chains.

    So that no guide has many guides before it.
    """
    step = 1
    while place % (step * CHAIN) == 0:
        step *= CHAIN
    return place - step
