r"""Expectations of the logistic loss and its derivatives under a Gaussian.

.. math:: E[\zeta^{(j)}(f)], \quad f \sim N(m, v), \quad \zeta(x) = \log(1 + e^x).

The nearest poles of :math:`\zeta^{(j)}` are :math:`\pm i\pi`, so that quadrature converges
exponentially (Trefethen and Weideman, SIAM Review 56, 2014).  A trapezoidal sum with a step h in f
has an error of order :math:`e^{-2\pi^2/h}`.

* For :math:`v \le 1/4` Gauss-Hermite quadrature; smaller v needs fewer nodes.
* For :math:`v > 1/4` a trapezoidal sum over a fixed grid of f, after subtracting the ramp

  .. math:: r_c(x) = x\,\Phi(x/c) + c\,\varphi(x/c), \quad E[r_c(f)] = r_{\sqrt{c^2 + v}}(m),

  which leaves the remainder :math:`\zeta - r_c`, even and of order :math:`e^{-|x|}`.
* For :math:`v > 10^3` the first terms of a series in :math:`1/v`, with small relative error.  The
  fourth derivative, of order :math:`v^{-3/2}`, is then below the rounding error of such a sum.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Literal, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, ndtr, zeta

from temperance.data import batches

__all__ = ["log_expected_sigmoid", "softplus_expectations"]

Array: TypeAlias = NDArray[np.float64]
Where: TypeAlias = NDArray[np.intp] | None  # None means all elements

_STEP = 0.45  # of the trapezoidal sum for large variances
_DEPTH, _LONG_DEPTH = 33.0, 64.0  # half-widths of the grids of _wide and _tilted
_LARGE_VARIANCE = 1e3  # beyond it a series is used
_USUAL_NODES = 48  # nodes of the trapezoidal sum for most elements


class _Accuracy(NamedTuple):
    """Numbers of nodes that give an accuracy.

    The error of c Gauss-Hermite nodes is c!/(2c)! v^c times a derivative of order higher by 2c; the
    j-th derivative is about 2 (j - 1)!/pi^j.  The error of the trapezoidal sum is exp(-2 pi^2 / h).
    It is (2 pi / h)^3 times as large for the fourth derivative, and exp(pi^2 / 2v) times as large
    if the density is narrower than the distance of the poles.
    """

    narrow: tuple[tuple[float, int], ...]  # (largest variance, number of nodes)
    wide: tuple[tuple[float, float], ...]  # (largest variance, step h)


_EXACT = _Accuracy(  # errors up to 1.5e-13
    (
        (1e-6, 2),
        (1e-4, 3),
        (1e-3, 4),
        (0.01, 6),
        (0.03, 8),
        (0.1, 12),
        (0.25, 18),
        (0.5, 28),
        (1.0, 47),
    ),
    ((1.0, 0.33), (_LARGE_VARIANCE, _STEP)),
)
_ROUGH = _Accuracy(  # errors up to 1e-6
    ((3e-3, 2), (0.02, 3), (0.06, 4), (0.15, 6), (0.25, 7)),
    # The fourth derivative is about v^-3/2: its relative error must be small as well.
    ((1.0, 0.48), (_LARGE_VARIANCE, 0.75)),
)
_NARROWEST = 0.25  # variance above which the trapezoidal sum is used, unless tails matter
# The logistic density has variance pi^2/3: with this c^2 the remainder integrates to zero.
_RAMP_VARIANCE = np.pi**2 / 3
# Coefficients of t^4, t^6, ... in exp sum_{p > 1} zeta(2p) t^2p / p, see _series.
_A4, _A6, _A8, _A10 = (float(zeta(2 * p)) / p for p in (2, 3, 4, 5))
_COEFFICIENTS = (_A4, _A6, _A8 + _A4**2 / 2, _A10 + _A4 * _A6)
_PEAK: float = (2 * np.pi) ** -0.5  # phi(0)
# Number of nodes times elements in a block.  Temporaries should fit into the cache and the heap:
# from 2^17 bytes on the system allocates memory page by page.
_BLOCK, _SMALL_BLOCK = 2**16, 12 * 2**10


class _Rule(NamedTuple):
    """A formula for means and variances of some elements, and the block size."""

    formula: Callable[[Array, Array], Array]
    block: int


def softplus_expectations(
    mean: ArrayLike,
    variance: ArrayLike,
    derivatives: int = 0,
    first: int = 0,
    rough: bool = False,
) -> Array:
    r"""Return the Gaussian expectations of softplus and its derivatives.

    .. math:: E[\zeta^{(j)}(f)], \quad f \sim N(m, v), \quad \zeta(x) = \log(1 + e^x).

    The rows are derivatives of each other: row j differentiates to row j + 1 in the mean, and to
    half of row j + 2 in the variance.

    Parameters
    ----------
    mean, variance : array_like
        Mean :math:`m` and variance :math:`v \ge 0`, broadcast against each other.
    derivatives : int
        Highest derivative, from 0 (softplus) over 1 (sigmoid) to 4.
    first : int
        Lowest derivative; without softplus itself the computation is faster.
    rough : bool
        Whether errors up to 1e-6 are acceptable, which is faster.

    Returns
    -------
    ndarray, shape (derivatives + 1 - first, *broadcast shape)
        The expectations of the derivatives from `first` on, with absolute errors below 1e-12.

    Examples
    --------
    >>> softplus_expectations(0.0, [0.0, 1.0, 100.0], derivatives=1).round(6)
    array([[0.693147, 0.806059, 4.054313],
           [0.5     , 0.5     , 0.5     ]])
    """
    if derivatives not in range(5):
        raise ValueError(f"derivatives must be an integer from 0 to 4, got {derivatives!r}")
    if first not in range(derivatives + 1):
        raise ValueError(f"first must be an integer from 0 to {derivatives}, got {first!r}")
    mean, variance = _broadcast(mean, variance)
    orders, accuracy = range(first, derivatives + 1), _ROUGH if rough else _EXACT
    return _expectations(mean, variance, orders, _NARROWEST, accuracy)


@overload
def log_expected_sigmoid(
    mean: ArrayLike, variance: ArrayLike, derivatives: Literal[False] = False
) -> Array: ...
@overload
def log_expected_sigmoid(
    mean: ArrayLike, variance: ArrayLike, derivatives: Literal[True]
) -> tuple[Array, Array, Array]: ...
def log_expected_sigmoid(
    mean: ArrayLike, variance: ArrayLike, derivatives: bool = False
) -> Array | tuple[Array, Array, Array]:
    r"""Return the logarithm of the Gaussian expectation of the sigmoid.

    .. math:: \ell(m, v) = \log E[\sigma(f)] = m + v/2 + \ell(-m - v, v), \quad f \sim N(m, v).

    The second equation, from :math:`\sigma(x) = e^x \sigma(-x)`, maps the tail to
    :math:`m \ge -v/2`, so that :math:`e^\ell` has a small relative error even where it is tiny.

    Parameters
    ----------
    mean, variance : array_like
        Mean :math:`m` and variance :math:`v \ge 0`, broadcast against each other.
    derivatives : bool
        Whether to return the derivatives as well.

    Returns
    -------
    ndarray or tuple of three ndarrays
        The value, with `derivatives` also its derivatives in the mean and in the variance.

    Examples
    --------
    >>> log_expected_sigmoid([-50.0, 0.0, 3.0], 4.0).round(6)
    array([-48.      ,  -0.693147,  -0.138796])
    """
    mean, variance = _broadcast(mean, variance)
    mapped = mean < -variance / 2
    centre = np.where(mapped, -mean - variance, mean)
    tilted = (variance > 1) & (centre < 0)
    rules: list[tuple[Where, _Rule]] = [
        (np.flatnonzero(tilted), _Rule(_log_tilted, _BLOCK // (4 * _USUAL_NODES))),
        (np.flatnonzero(~tilted), _Rule(_log_upper, _BLOCK)),
    ]
    mirror, slope, rate = _apply(rules, centre, variance, 3)
    value: Array = np.where(mapped, mean + variance / 2 + mirror, mirror)
    if derivatives:
        # d/dm = 1 - l_m,  d/dv = 1/2 - l_m + l_v, with l_m and l_v at (-m - v, v)
        return value, np.where(mapped, 1 - slope, slope), np.where(mapped, 0.5 - slope + rate, rate)
    return value


def _broadcast(mean: ArrayLike, variance: ArrayLike) -> tuple[Array, Array]:
    """Return mean and variance as float arrays of a common shape."""
    mean, variance = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    if np.any(variance < 0):
        raise ValueError("variance must not be negative")
    shape = np.broadcast_shapes(mean.shape, variance.shape)
    return np.broadcast_to(mean, shape), np.broadcast_to(variance, shape)


def _expectations(
    mean: Array, variance: Array, orders: range, narrow: float, accuracy: _Accuracy = _EXACT
) -> Array:
    """Return the expectations; Gauss-Hermite nodes are used for variances up to `narrow`.

    These have small relative errors far below zero, the others small absolute errors.
    """
    edges, rules = _rules(orders, narrow, accuracy)
    chosen = [(where, rules[number]) for where, number in _between(edges, variance)]
    rows = _apply(chosen, -np.abs(mean), variance, len(orders))
    return _reflect(rows, mean, orders)


@cache
def _rules(orders: range, narrow: float, accuracy: _Accuracy) -> tuple[list[float], list[_Rule]]:
    """Return the largest variance of each rule, and the rules."""
    rules = {
        most: _Rule(partial(_narrow, count=count, orders=orders), _SMALL_BLOCK // count)
        for most, count in accuracy.narrow
        if most <= narrow
    }
    for most, step in accuracy.wide:
        rules.setdefault(
            most, _Rule(partial(_wide, orders=orders, step=step), _BLOCK // _USUAL_NODES)
        )
    rules[np.inf] = _Rule(partial(_series, orders=orders), _SMALL_BLOCK)
    return list(rules), list(rules.values())


def _between(edges: list[float], variance: Array) -> list[tuple[Where, int]]:
    """Return which elements lie below which edge, by its index; often one edge serves all."""
    if not variance.size:
        return []
    lowest, highest = np.searchsorted(edges, [variance.min(), variance.max()])
    if lowest == highest:
        return [(None, int(lowest))]
    flat, from_below = variance.ravel(), [-1.0, *edges]
    return [
        (np.flatnonzero((from_below[number] < flat) & (flat <= edges[number])), number)
        for number in range(lowest, highest + 1)
    ]


def _apply(rules: list[tuple[Where, _Rule]], mean: Array, variance: Array, count: int) -> Array:
    """Apply to each element its rule, in blocks that limit the memory."""
    rows = np.empty((count, mean.size))
    flat_mean, flat_variance = mean.ravel(), variance.ravel()
    for where, (formula, block) in rules:
        for part in batches(mean.size if where is None else len(where), 1, block):
            which = part if where is None else where[part]
            found = formula(flat_mean[which], flat_variance[which])
            for row, each in zip(rows, found, strict=True):
                row[which] = each
    return rows.reshape(count, *mean.shape)


def _reflect(rows: Array, x: Array, orders: range) -> Array:
    """Convert rows at -|x| to rows at x, in place, by softplus(x) = x + softplus(-x)."""
    start = orders.start
    if start == 0:
        rows[0] += np.maximum(x, 0)
    rows[1 - start % 2 :: 2] *= np.where(x > 0, -1.0, 1.0)
    if 1 in orders:
        rows[1 - start] += x > 0
    return rows


def _softplus(x: Array, orders: range) -> Iterator[Array]:
    """Yield softplus and its derivatives at x, with small relative error where exp(x) has."""
    odds = np.exp(x)
    complement = 1 / (1 + odds)
    sigmoid = odds * complement
    # In terms of s: s(1 - s) =: p, then p (1 - 2 s), then p (1 - 6 p)
    slope = sigmoid * complement
    rows = (
        lambda: np.log1p(odds),
        lambda: sigmoid,
        lambda: slope,
        lambda: slope * (complement - sigmoid),
        lambda: slope * (1 - 6 * slope),
    )
    return (rows[order]() for order in orders)


def _ramp(u: Array, width: Array | float, tail: Array, gaussian: Array, orders: range) -> Array:
    """Return the ramp and its derivatives at u times its width, from Phi(u) and exp(-u^2/2).

    A common factor of both multiplies the result.
    """
    density = _PEAK / width * gaussian
    rows = (
        lambda: width * (u * tail + _PEAK * gaussian),
        lambda: tail,
        lambda: density,
        lambda: -u * density / width,
        lambda: (u * u - 1) * density / width**2,
    )
    return np.stack([rows[order]() for order in orders])


def _narrow(mean: Array, variance: Array, count: int, orders: range) -> Array:
    r"""Return :math:`\sum_k p_k \zeta^{(j)}(m + z_k \sqrt{v})`, for mean <= 0 and v <= 1."""
    nodes, shares = _gauss_hermite(count)
    x = mean + nodes[:, None] * np.sqrt(variance)
    return np.stack([shares @ row for row in _softplus(x, orders)])


@cache
def _gauss_hermite(count: int) -> tuple[Array, Array]:
    """Return nodes and weights for the standard normal distribution."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(count)
    return nodes, shares * _PEAK


@cache
def _remainder(step: float, depth: float) -> tuple[Array, Array]:
    """Return h (softplus - ramp) and its derivatives at the nodes x, multiples of h up to depth.

    The first array is (x, -x^2/2, 1): Gaussian exponents are linear combinations of its columns.
    """
    x = step * np.arange(-np.ceil(depth / step), 1)
    width = float(np.sqrt(_RAMP_VARIANCE))
    u = x / width
    ramp = _ramp(u, width, ndtr(u), np.exp(-u * u / 2), range(5))
    left = step * (np.stack(list(_softplus(x, range(5)))) - ramp)
    right = left[:, -2::-1] * [[1], [-1], [1], [-1], [1]]
    x = np.append(x, -x[-2::-1])
    return np.stack([x, -x * x / 2, np.ones_like(x)], axis=1), np.append(left, right, axis=1)


def _wide(mean: Array, variance: Array, orders: range, step: float) -> Array:
    """Return the expectations for mean <= 0 and v > 1/4, as sums over ramp and remainder."""
    powers, remainder = _remainder(step, _DEPTH)
    nodes = _active_nodes(mean, variance, step)
    tilt = mean / variance
    constant = np.log(_PEAK / np.sqrt(variance)) - tilt * mean / 2
    density = powers[nodes] @ np.stack([tilt, 1 / variance, constant])
    np.exp(density, out=density)
    rows: Array = remainder[orders.start : orders.stop, nodes] @ density
    width = np.sqrt(variance + _RAMP_VARIANCE)
    u = mean / width
    rows += _ramp(u, width, ndtr(u), np.exp(-u * u / 2), orders)
    return rows


def _series(mean: Array, variance: Array, orders: range) -> Array:
    r"""Return the expectations for mean <= 0 and v > 10^3, by cumulants of the logistic density.

    Softplus is the ramp smoothed by the logistic density, whose moment generating function is that
    of N(0, c^2) times :math:`\exp \sum_{p \ge 2} \zeta(2p) t^{2p} / p`, with Riemann's zeta.  So
    with w^2 = v + c^2 and the coefficients e of this factor's series

    .. math:: E[\zeta^{(j)}(f)] = r_w^{(j)}(m) + \sum_{p \ge 2} e_{2p} \, r_w^{(j + 2p)}(m),

    where derivatives beyond the first are a density times (-1)^i He_i(u) / w^i.
    """
    width = np.sqrt(variance + _RAMP_VARIANCE)
    u = mean / width
    gaussian = np.exp(-u * u / 2)
    near = np.maximum(u, -40.0)  # below, the density is zero
    hermite = [np.ones_like(u), near]
    for i in range(1, 2 * len(_COEFFICIENTS) + orders[-1]):
        hermite.append(near * hermite[i] - i * hermite[i - 1])
    rows = _ramp(u, width, ndtr(u), gaussian, orders)
    for row, j in zip(rows, orders, strict=True):
        for p, factor in enumerate(_COEFFICIENTS, start=2):
            i = 2 * p + j - 2
            row += (-1) ** j * factor * hermite[i] * (_PEAK * gaussian / width) * (1 / width) ** i
    return rows


def _active_nodes(mean: Array, variance: Array, step: float) -> slice:
    r"""Return the nodes where exp(-|x|) exp(-(x - m)^2/2v) exceeds exp(-depth) for some element.

    It does for x > m - y, y + y^2/2v = depth + m, and for x below the root of x + (x - m)^2/2v =
    depth.
    """
    ahead = np.maximum(mean, -_DEPTH)
    room = _DEPTH + ahead
    below = 2 * room / (1 + np.sqrt(1 + 2 * room / variance)) - ahead
    tilt = mean / variance
    linear = 1 - tilt
    above = (2 * _DEPTH - mean * tilt) / (linear + np.sqrt(linear - tilt + 2 * _DEPTH / variance))
    centre = int(np.ceil(_DEPTH / step))
    left, right = (int(np.ceil(far.max() / step)) for far in (below, above))
    return slice(max(centre - left, 0), centre + max(right, 0) + 1)


def _tilted(mean: Array, variance: Array) -> Array:
    r"""Return E[zeta^(j)] for j = 1, 2, 3, -v/2 <= mean < 0 and v > 1, times :math:`e^{m^2/2v}`.

    By :math:`N(x; m, v) = e^{-m^2/2v} e^{xm/v} N(x; 0, v)` all exponents are bounded, and summands
    are of order :math:`e^{-|x|/2}`, which needs the longer grid.  The third is of order m / v
    relative to the second and is computed from it by integration by parts,
    :math:`v E[g'(f)] = E[(f - m) g(f)]`: its own sum would lose digits by cancellation.
    """
    powers, remainder = _remainder(_STEP, _LONG_DEPTH)
    tilt = mean / variance
    exponent = tilt * mean / 2
    total = variance + _RAMP_VARIANCE
    density = powers @ np.stack([tilt, 1 / variance, np.log(_PEAK / np.sqrt(variance))])
    np.exp(density, out=density)
    value, slope, moment = np.stack([*remainder[1:3], powers[:, 0] * remainder[2]]) @ density
    rows = np.stack([value, slope, moment / variance - tilt * slope])
    # -m^2 / 2(v + c^2) = (m^2 / 2v) c^2 / (v + c^2) - m^2 / 2v
    gaussian = np.exp(exponent * _RAMP_VARIANCE / total)
    width = np.sqrt(total)
    u = mean / width
    # Phi(u) exp(u^2 / 2) = erfcx(-u / sqrt(2)) / 2
    tail = erfcx(-u / np.sqrt(2)) / 2 * gaussian
    return rows + _ramp(u, width, tail, gaussian, range(1, 4))


def _log_upper(mean: Array, variance: Array) -> Array:
    """Return log E[sigmoid] and its derivatives where E[sigmoid] is not small."""
    complement, slope, curvature = _expectations(-mean, variance, range(1, 4), narrow=1.0)
    expected = 1 - complement
    return np.stack([np.log1p(-complement), slope / expected, -curvature / (2 * expected)])


def _log_tilted(mean: Array, variance: Array) -> Array:
    """Return log E[sigmoid] and its derivatives for -v/2 <= mean < 0 and v > 1."""
    expected, slope, curvature = _tilted(mean, variance)
    value = np.log(expected) - mean / variance * mean / 2
    return np.stack([value, slope / expected, curvature / (2 * expected)])
