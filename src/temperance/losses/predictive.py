r"""The predictive density log E exp(-l(u, y)), u ~ N(mu, v), of any likelihood.

With u = mu + s x and s^2 = v it is log of the integral of exp(-G), up to a constant, for

    G(x) = l(mu + s x, y) + x^2 / 2,

whose minimum may be far from the mean: a count of a million under a mean of one.  Under the density
q proportional to exp(-G), with x its variable,

    d/dmu = -E_q l' = E_q x / s,        d/dv = E_q[l'^2 - l''] / 2 = E_q[x^2 - 1] / (2 v),

the first forms where the Gaussian decides, the second where the likelihood does.

* Gauss-Hermite quadrature at the minimum of G with its curvature there, by two numbers of nodes.
* Where these disagree, or a kink is near, or a loss that is not convex may have two minima:
  Gauss-Legendre quadrature on panels that shorten towards the minimum and towards each bend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, batches
from temperance.losses.quadrature import (
    FAR,
    LEGENDRE,
    PANEL,
    PEAK,
    Elements,
    elements,
    gauss_hermite,
    graded,
    is_near,
    jumps,
    levels_of,
    panel_nodes,
)

if TYPE_CHECKING:
    from temperance.losses.base import Loss

FEWER, MORE = 20, 32  # Gauss-Hermite nodes
AGREE = 1e-9  # of fewer and more nodes: more are then right to 1e-12
BLOCK = 2**16
MOST_STEPS, CLOSE = 100, 1e-7
AROUND = np.arange(-5.0, 5.1, 0.25)  # widths of a bend
DOUBLINGS = 30  # of the candidates' distances from mean and bend


class Minimum(NamedTuple):
    """Where G is least, and its deviation there, 1 / sqrt(G'')."""

    x: Array
    deviation: Array


def log_predictive(
    loss: Loss, mean: Array, variance: Array, y: Array
) -> tuple[Array, Array, Array]:
    """Return log E exp(-l) and its derivatives in mean and variance."""
    shape = np.broadcast_shapes(np.shape(mean), np.shape(variance), np.shape(y))
    every = elements(loss, mean, variance, y, shape)
    found = np.empty((3, every.mean.size))
    # Numbers too large, or none, stay what they are.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for part in batches(every.mean.size, MORE, BLOCK):
            found[:, part] = _block(loss, every.part(np.arange(part.start, part.stop)))
    log, by_mean, by_variance = found.reshape(3, *shape)
    return log, by_mean, by_variance


def _block(loss: Loss, rows: Elements) -> Array:
    at = _minimum(loss, rows)
    fewer, more = (_hermite(loss, rows, at, count) for count in (FEWER, MORE))
    unsure = ~(np.abs(more - fewer) <= AGREE * np.maximum(1, np.abs(more))).all(axis=0)
    unsure |= (is_near(rows) & (rows.width == 0).any(axis=0)) | ~_one_minimum(loss, rows)
    unsure &= np.isfinite(rows.deviation) & np.isfinite(rows.mean)
    if unsure.any():
        which = np.flatnonzero(unsure)
        few, low = rows.part(which), Minimum(*(each[which] for each in at))
        levels = _levels(loss, few, low)
        nodes = LEGENDRE * (40 + 2 * int(levels.max()) * (1 + len(rows.centre)))
        for part in batches(len(which), nodes, 2 * BLOCK):
            chosen = np.arange(part.start, part.stop)
            lowest = Minimum(*(each[chosen] for each in low))
            more[:, which[part]] = _panels(
                loss, few.part(chosen), lowest, int(levels[chosen].max())
            )
    return more


def _one_minimum(loss: Loss, rows: Elements) -> NDArray[np.bool_]:
    """Tell where G'' > 0 around all bends, so that G is convex even if the loss is not."""
    least = np.zeros(rows.mean.size)
    if not loss.convex:
        for centre, width in zip(rows.centre, rows.width, strict=True):
            second = loss.derivatives(centre + AROUND[:, None] * width, rows.y)[1]
            least = np.minimum(least, second.min(axis=0))
    return 1 + rows.deviation**2 * least > 0.1


def _minimum(loss: Loss, rows: Elements) -> Minimum:
    """Minimise G by Newton's method, with steps halved until G falls."""
    s, y = rows.deviation, rows.y

    def height(x: Array) -> Array:
        return loss.value(rows.mean + s * x, y) + 0.5 * x**2

    x = _start(loss, rows)
    least, share = height(x), np.ones_like(x)
    settled = np.zeros(x.shape, dtype=bool)
    curvature = np.ones_like(x)
    for _ in range(MOST_STEPS):
        first, second, _ = loss.derivatives(rows.mean + s * x, y)
        curvature = 1 + s**2 * second
        steep = np.where(curvature > 0, curvature, 1.0)
        step = -share * (x + s * first) / steep
        settled |= ~(np.abs(step) * np.sqrt(steep) > CLOSE)
        if settled.all():
            break
        tried = height(x + step)
        lower = (tried <= least) & ~settled
        x, least = np.where(lower, x + step, x), np.where(lower, tried, least)
        share = np.where(lower, 1.0, share / 2)
    return Minimum(x, 1 / np.sqrt(np.maximum(curvature, 1e-2)))


def _start(loss: Loss, rows: Elements) -> Array:
    """Return x under the typical quadratic, or if the loss is not convex the best of many."""
    s = rows.deviation
    centre, curvature = loss.typical(rows.y, rows.mean)
    pull = s * curvature
    x = np.where(np.isfinite(centre), pull / (1 + s * pull) * (centre - rows.mean), 0.0)
    if loss.convex:
        return x
    # Candidates between the mean and each bend, whose distances from either end double.
    near = 2.0 ** -np.arange(1.0, DOUBLINGS)
    shares = np.concatenate([[0.0], near[::-1], 1 - near[1:], [1.0]])
    gap = rows.centre - rows.mean  # (k, e)
    u = rows.mean + shares[:, None, None] * gap
    moved = shares[:, None, None] * gap
    away = np.where(moved == 0, 0.0, moved / s)
    heights = (loss.value(u, rows.y) + 0.5 * away**2).reshape(-1, len(s))
    best = np.nan_to_num(heights, nan=np.inf).argmin(axis=0)
    return away.reshape(-1, len(s))[best, np.arange(len(s))]


def _hermite(loss: Loss, rows: Elements, at: Minimum, count: int) -> Array:
    nodes, shares = gauss_hermite(count)
    x = at.x + nodes[:, None] * at.deviation
    logs = np.log(shares)[:, None] + 0.5 * nodes[:, None] ** 2 + np.log(at.deviation)
    return _moments(loss, rows, at, x, logs)


def _levels(loss: Loss, rows: Elements, at: Minimum) -> NDArray[np.intp]:
    """Return how often panels double from the shortest to the longest."""
    around = np.ceil(np.log2(FAR / (PANEL / 2 * at.deviation)))
    # Between two peaks, of mean and response, there may be many deviations.
    apart = 0.0 if loss.convex else np.abs((rows.centre - rows.mean) / rows.deviation).max(axis=0)
    reach = levels_of(_narrowed(loss, rows), 2 * FAR + apart)
    return np.maximum(reach, around.astype(np.intp))


def _narrowed(loss: Loss, rows: Elements) -> Elements:
    """Return the rows with bends as narrow as exp(-l) is there."""
    width = rows.width.copy()
    for each, centre in zip(width, rows.centre, strict=True):
        second = loss.derivatives(centre, rows.y)[1]
        each[second > 0] = np.minimum(each, second.clip(1e-300) ** -0.5)[second > 0]
    return rows._replace(width=width)


def _panels(loss: Loss, rows: Elements, at: Minimum, levels: int) -> Array:
    steps = np.arange(-FAR, FAR + PANEL / 2, PANEL)[:, None]
    lengths = PANEL / 2 * 2.0 ** np.arange(levels + 1)[:, None] * at.deviation
    bends = graded(_narrowed(loss, rows), rows.mean, rows.deviation, levels)
    edges = [at.x[None], at.x - lengths, at.x + lengths, bends]
    # Log-concave densities fall off at least as the Gaussian does; others may have two peaks.
    ends = (at.x - FAR, at.x + FAR)
    if not loss.convex:
        edges += [steps + np.zeros_like(at.x), at.x + steps]
        peaks = np.stack([at.x, 0 * at.x, *((rows.centre - rows.mean) / rows.deviation)])
        ends = (peaks.min(axis=0) - FAR, peaks.max(axis=0) + FAR)
    x, weights = panel_nodes(np.clip(np.concatenate(edges), *ends))
    return _moments(loss, rows, at, x, np.log(weights) + np.log(PEAK))


def _moments(loss: Loss, rows: Elements, at: Minimum, x: Array, logs: Array) -> Array:
    """Return the logarithm and its derivatives from nodes and the logarithms of their weights."""
    s = rows.deviation
    u = rows.mean + s * x
    first, second, _ = loss.derivatives(u, rows.y)
    logs = logs - loss.value(u, rows.y) - 0.5 * x**2
    most = logs.max(axis=0)
    most = np.where(np.isfinite(most), most, 0.0)
    q = np.exp(logs - most)
    total = q.sum(axis=0)
    log = most + np.log(total)
    q /= total
    q_first = np.where(q > 0, q * first, 0.0)
    by_mean = -q_first.sum(axis=0)
    by_variance = 0.5 * np.where(q > 0, q_first * first - q * second, 0.0).sum(axis=0)
    for centre, width in zip(rows.centre, rows.width, strict=True):
        if (width == 0).any():
            t = (centre - rows.mean) / s
            density = np.exp(-loss.value(centre, rows.y) - 0.5 * t**2 - log) * PEAK / s
            jump = jumps(loss, centre, rows.y)[0] * density
            by_variance -= 0.5 * np.where((width == 0) & (s > 0), jump, 0.0)
    # A deviation below 1 / sqrt(2) is that of a likelihood narrower than the Gaussian.
    narrow = (at.deviation**2 < 0.5) & (s > 0)
    moved = (q * x).sum(axis=0) / s
    spread = (q * (x**2 - 1)).sum(axis=0) / (2 * s**2)
    return np.stack([log, np.where(narrow, moved, by_mean), np.where(narrow, spread, by_variance)])
