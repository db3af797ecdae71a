r"""Gaussian expectations of any loss, from its values, derivatives and bends.

With u = mu + s z, z ~ N(0, 1) and s^2 = v the expectations of the derivatives of l are

    E l^(j) = E[smooth part] + what the kinks add,   j = 0, ..., 4.

A kink at c, where l' jumps by J1 and l'' by J2, adds J1 phi to E l'', phi = N(c; mu, v), and to the
next two what follows by differentiation in mu.  The fourth derivative of the smooth part
is never asked for: E l'''' = E[l''' z] / s (Stein's identity).

* Where every bend is many deviations away, or wide: Gauss-Hermite quadrature.
* Elsewhere Gauss-Legendre quadrature on panels, some deviations long, whose lengths halve towards
  each bend until they are as short as it is wide.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, batches

if TYPE_CHECKING:
    from temperance.losses.base import Loss

FAR = 9.6  # deviations from the mean beyond which nothing is left
PANEL = 2.4  # length of a panel, in deviations
# Gauss-Hermite is exact for bends so many deviations away from the mean, or so wide.
REACH, WIDE = 9.0, 5.0
HERMITE, FEW, LEGENDRE = 24, 8, 12  # nodes of a row, of a very narrow row, and of a panel
SMALL = 1e-3  # deviation of a very narrow row, relative to the distance to bends
BLOCK = 2**16  # nodes times rows of a block
PEAK: float = (2 * np.pi) ** -0.5


class Elements(NamedTuple):
    """Rows with their means, deviations and responses (e,), and bends (k, e)."""

    mean: Array
    deviation: Array
    y: Array
    centre: Array
    width: Array

    def part(self, which: NDArray[np.intp]) -> Elements:
        """Return some of the rows."""
        return Elements(*(each[..., which] for each in self))

    @property
    def distance(self) -> Array:
        """Distance of each mean to the nearest bend in the complex plane."""
        return np.hypot(self.centre - self.mean, self.width).min(axis=0)


def expectations(loss: Loss, mean: Array, variance: Array, y: Array, orders: range) -> Array:
    """Return E l^(j) for each j of ``orders``, from 0 to 4, in the shape of the rows."""
    shape = np.broadcast_shapes(np.shape(mean), np.shape(variance), np.shape(y))
    rows = elements(loss, mean, variance, y, shape)
    found = np.empty((len(orders), rows.mean.size))
    # Numbers too large, or none, stay what they are.
    with np.errstate(over="ignore", invalid="ignore"):
        near = is_near(rows)
        for which in _blocks(np.flatnonzero(~near), HERMITE):
            found[:, which] = _narrow(loss, rows.part(which), orders)
        for which, levels in _by_levels(rows, np.flatnonzero(near)):
            found[:, which] = _wide(loss, rows.part(which), orders, levels)
    return found.reshape(len(orders), *shape)


def elements(
    loss: Loss, mean: Array, variance: Array, y: Array, shape: tuple[int, ...]
) -> Elements:
    """Return rows one by one, with their bends."""
    means, variances, responses = (
        np.broadcast_to(np.asarray(each, dtype=float), shape).ravel()
        for each in (mean, variance, y)
    )
    centre, width = (
        np.broadcast_to(np.atleast_2d(each), (len(np.atleast_2d(each)), means.size))
        for each in np.broadcast_arrays(*loss.bends(responses))
    )
    return Elements(means, np.sqrt(variances), responses, centre, width)


def is_near(rows: Elements) -> NDArray[np.bool_]:
    """Tell which rows have a bend within reach of their Gaussian."""
    reached = np.abs(rows.centre - rows.mean) < REACH * rows.deviation
    near = (reached & (rows.width < WIDE * rows.deviation)).any(axis=0)
    return near & np.isfinite(rows.deviation) & np.isfinite(rows.mean)


def _blocks(which: NDArray[np.intp], nodes: int) -> Iterator[NDArray[np.intp]]:
    for part in batches(len(which), nodes, BLOCK):
        yield which[part]


def _by_levels(rows: Elements, which: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], int]]:
    """Yield rows that need the same number of ever shorter panels, in blocks."""
    levels = levels_of(rows.part(which), 2 * FAR)
    for level in np.unique(levels):
        nodes = LEGENDRE * (9 + (2 * int(level) + 3) * len(rows.centre))
        for block in _blocks(which[levels == level], nodes):
            yield block, int(level)


def levels_of(rows: Elements, reach: float | Array) -> NDArray[np.intp]:
    """Return how often the width of the narrowest bend is doubled until it is ``reach`` long."""
    width = np.where(rows.width > 0, rows.width, np.inf).min(axis=0, initial=np.inf)
    with np.errstate(divide="ignore"):
        levels = np.ceil(np.log2(reach * rows.deviation / width))
    return np.clip(levels, 0, 60).astype(np.intp)


def _narrow(loss: Loss, rows: Elements, orders: range) -> Array:
    """Return the expectations by Gauss-Hermite quadrature."""
    nodes, shares = gauss_hermite(HERMITE)
    u = rows.mean + nodes[:, None] * rows.deviation
    found = np.empty((len(orders), rows.mean.size))
    smooth: tuple[Array, ...] = loss.derivatives(u, rows.y) if orders.stop > 1 else ()
    for row, order in zip(found, orders, strict=True):
        if order == 0:
            row[:] = shares @ loss.value(u, rows.y)
        elif order < 4:
            row[:] = shares @ smooth[order - 1]
        else:
            row[:] = _fourth(loss, rows)
    return found


def _fourth(loss: Loss, rows: Elements) -> Array:
    """Return E l'''' from differences of l'''.

    Under a very small deviation differences are rounding.  There three larger ones, whose squares
    are as 1 to 4 to 9, tell what a polynomial in the variance is at the smaller one.
    """
    found = _divided(loss, rows, rows.deviation, HERMITE)
    unit = SMALL * rows.distance
    small = np.flatnonzero(rows.deviation < unit)
    if len(small):
        few, unit = rows.part(small), unit[small]
        t = (few.deviation / unit) ** 2
        shares = (t - 4) * (t - 9) / 24, -(t - 1) * (t - 9) / 15, (t - 1) * (t - 4) / 40
        found[small] = sum(
            share * _divided(loss, few, k * unit, FEW) for k, share in enumerate(shares, start=1)
        )
    return found


def _divided(loss: Loss, rows: Elements, deviation: Array, count: int) -> Array:
    """Return E[l''' z] / s = E[z^2 (l'''(mu + s z) - l'''(mu - s z)) / (2 s z)].

    Differences are divided by those of the numbers that were rounded.
    """
    nodes, shares = gauss_hermite(count)
    z, share = nodes[count // 2 :, None], shares[count // 2 :]
    above, below = rows.mean + z * deviation, rows.mean - z * deviation
    difference = loss.derivatives(above, rows.y)[2] - loss.derivatives(below, rows.y)[2]
    gap = above - below
    slope = np.divide(difference, gap, out=np.zeros_like(gap), where=gap != 0)
    return 2 * share @ (z**2 * slope)


def _wide(loss: Loss, rows: Elements, orders: range, levels: int) -> Array:
    """Return the expectations by Gauss-Legendre quadrature on panels, with the jumps at kinks."""
    steps = np.arange(-FAR, FAR + PANEL / 2, PANEL)[:, None]
    fixed = np.broadcast_to(steps, (len(steps), rows.mean.size))
    edges = np.concatenate([fixed, graded(rows, rows.mean, rows.deviation, levels)])
    z, weights = panel_nodes(np.clip(edges, -FAR, FAR))
    weights *= PEAK * np.exp(-0.5 * z**2)
    u = rows.mean + rows.deviation * z
    found = np.empty((len(orders), rows.mean.size))
    smooth: tuple[Array, ...] = loss.derivatives(u, rows.y) if orders.stop > 1 else ()
    for row, order in zip(found, orders, strict=True):
        if order == 0:
            row[:] = (weights * loss.value(u, rows.y)).sum(axis=0)
        elif order < 4:
            row[:] = (weights * smooth[order - 1]).sum(axis=0)
        else:
            row[:] = (weights * z * smooth[2]).sum(axis=0) / rows.deviation
    if orders.stop > 2:
        added = _at_kinks(loss, rows)
        for row, order in zip(found, orders, strict=True):
            if order > 1:
                row += added[order - 2]
    return found


def _at_kinks(loss: Loss, rows: Elements) -> tuple[Array, Array, Array]:
    """Return what the jumps of l' and l'' add to the second, third and fourth derivative."""
    second, third, fourth = np.zeros((3, rows.mean.size))
    s = rows.deviation
    for centre, width in zip(rows.centre, rows.width, strict=True):
        if not (width == 0).any():
            continue
        first_jump, second_jump = jumps(loss, centre, rows.y)
        t = (centre - rows.mean) / s
        phi = np.where(width == 0, PEAK / s * np.exp(-0.5 * np.clip(t, -40, 40) ** 2), 0.0)
        second += first_jump * phi
        third += (second_jump + first_jump * t / s) * phi
        fourth += (second_jump * t / s + first_jump * (t - 1) * (t + 1) / s**2) * phi
    return second, third, fourth


def jumps(loss: Loss, centre: Array, y: Array) -> tuple[Array, Array]:
    """Return by how much l' and l'' jump at a kink."""
    little = 8 * np.spacing(np.maximum(np.abs(centre), np.abs(y)))
    above, below = (loss.derivatives(centre + side * little, y) for side in (1, -1))
    return above[0] - below[0], above[1] - below[1]


def graded(rows: Elements, origin: Array, scale: Array, levels: int) -> Array:
    """Return edges that halve their distances towards each bend, as (edge - origin) / scale."""
    edges = []
    for centre, width in zip(rows.centre, rows.width, strict=True):
        middle = (centre - origin) / scale
        edges.append(middle[None])
        if (width > 0).any():
            lengths = width / scale * 2.0 ** np.arange(levels + 1)[:, None]
            edges += [middle - lengths, middle + lengths]
    return np.concatenate(edges)


def panel_nodes(edges: Array) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights between edges in any order, (nodes, e)."""
    edges = np.sort(edges, axis=0)
    points, shares = np.polynomial.legendre.leggauss(LEGENDRE)
    half = 0.5 * np.diff(edges, axis=0)
    # Panels without length have no weight: they are dropped where no row has them.
    kept = (half > 0).any(axis=1)
    half, low = half[kept, None], edges[:-1][kept, None]
    nodes = low + half * (1 + points[:, None])
    weights = half * shares[:, None]
    return nodes.reshape(-1, edges.shape[1]), weights.reshape(-1, edges.shape[1])


@cache
def gauss_hermite(count: int) -> tuple[Array, Array]:
    """Return nodes and weights for the standard normal distribution."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(count)
    return nodes, shares * PEAK
