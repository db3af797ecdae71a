r"""SafeBayes of many rows: prefixes of the rows in order.

Short prefixes are followed along beta several at a time, as other pairs are.  Long ones are views
of the same rows, so that memory is that of the rows and not of explicit pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from temperance.curves import RiskCurve, curve_of_tested
from temperance.data import Array, Risk
from temperance.models.glm.fast.pairs import Part, Path, parts_of_pairs
from temperance.models.glm.fast.shared_rows import shared_rows
from temperance.models.glm.newton import Approximation
from temperance.models.glm.plain import method_of
from temperance.models.glm.rows import Rows, coordinates
from temperance.plans import PrefixPlan

SHORT = 500  # rows of prefixes that are followed together


@dataclass(frozen=True, eq=False)
class PrefixLosses:
    """Losses of all that the parts test, one after the other."""

    parts: list[Part]
    risk: Risk

    def __call__(self, beta: float) -> tuple[Array, Array]:
        """Return the losses and their slopes, flat."""
        values, slopes = zip(*(part.losses(beta, self.risk) for part in self.parts), strict=True)
        return _flat(values), _flat(slopes)


def prefix_risk_curve(
    rows: Rows, plan: PrefixPlan, risk: Risk, approximation: Approximation
) -> RiskCurve:
    """Curve of whitened rows under a plan with prefixes that are long."""
    parts: list[Part] = []
    tested: list[NDArray[np.intp]] = []
    weight: list[Array] = []
    first = int(plan.ends[plan.ends > SHORT][0])
    for order in plan.orders:
        ordered = replace(
            rows,
            Z=rows.Z[order],
            offset=rows.offset[order],
            y=rows.y[order],
            weights=plan.weights[None, order],
        )
        if first > plan.start:
            begin, index, weights = _short_prefixes(ordered, plan, first, approximation)
            parts += begin
            tested.append(order[index.ravel()])
            weight.append(weights.ravel())
        parts += _long_prefixes(ordered, plan, approximation)
        tested.append(order[first:])
        weight.append(plan.weights[order[first:]])
    index, weights, n = np.concatenate(tested), np.concatenate(weight), len(rows.y)
    losses, method = PrefixLosses(parts, risk), method_of(plan, approximation)
    return curve_of_tested(losses, index, weights, n, method)


def _flat(parts: Sequence[Array]) -> Array:
    return np.concatenate([part.ravel() for part in parts])


def _short_prefixes(
    rows: Rows, plan: PrefixPlan, stop: int, approximation: Approximation
) -> tuple[list[Part], NDArray[np.intp], Array]:
    """Return the parts of prefixes that test the rows before ``stop``, with rows and weights."""
    begin = PrefixPlan(
        rows.weights[0, :stop], np.arange(stop)[None], plan.start, plan.transfer, plan.growth
    )
    pairs = replace(begin.pairs(), size=plan.size)
    index, weights = pairs.tested_rows()
    shorter = rows.subset(np.arange(len(rows.y)) < stop, pairs.likelihood_weights)
    return parts_of_pairs(shorter, index, approximation), index, weights


def _long_prefixes(rows: Rows, plan: PrefixPlan, approximation: Approximation) -> list[Part]:
    """Return a part for each long prefix, which tests the rows up to the next."""
    ends = plan.ends[plan.ends > SHORT]
    parts: list[Part] = []
    for end, stop in zip(ends, np.append(ends[1:], len(rows.y)), strict=True):
        whole = rows
        if stop < rows.Z.shape[1]:
            reduced, _ = coordinates(rows.Z[:stop], rows.weights[0, :stop], approximation.diagonal)
            whole = replace(rows, Z=reduced)
        weights = rows.weights[:, :end]
        if plan.transfer == "alpha":
            weights = plan.size / weights.sum() * weights
        system = approximation.system(shared_rows(whole, slice(end), weights))
        tested = slice(int(end), int(stop))
        parts.append(Part(Path(system, len(ends)), whole, tested, approximation.loss))
    return parts
