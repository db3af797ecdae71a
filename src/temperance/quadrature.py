r"""Expectations of the logistic loss and its derivatives under a Gaussian.

.. math:: E[\zeta^{(j)}(f)], \quad f \sim N(m, v), \quad \zeta(x) = \log(1 + e^x).

The nearest poles of :math:`\zeta^{(j)}` are :math:`\pm i\pi`, so that quadrature converges
exponentially (Trefethen and Weideman, SIAM Review 56, 2014); a trapezoidal sum with a step h in f
leaves an error of the order :math:`e^{-2\pi^2/h}`.

* For :math:`v \le 1` nodes of Gauss and Hermite, the fewer the smaller v.
* For :math:`v > 1` a trapezoidal sum over a fixed grid of f, after splitting off the ramp

  .. math:: r_c(x) = x\,\Phi(x/c) + c\,\varphi(x/c), \quad E[r_c(f)] = r_{\sqrt{c^2 + v}}(m),

  which leaves the remainder :math:`\zeta - r_c`, even and of the order :math:`e^{-|x|}`.
"""

from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from typing import Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx

__all__ = ["log_expected_sigmoid", "softplus_expectations"]

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Rule: TypeAlias = Callable[[Array, Array], Array]

# exp(-2 pi^2 / h) is 1e-19: room for the fourth derivative's error, (2 pi / h)^3 times the first's.
_STEP = 0.45
# Largest variance for which so many nodes of Gauss and Hermite are exact to rounding.
_NARROW = ((0.01, 7), (0.1, 13), (0.25, 20), (0.5, 32), (1.0, 56))
# The logistic density has variance pi^2/3: with this c^2 the remainder integrates to zero.
_RAMP_VARIANCE = np.pi**2 / 3
_PEAK: float = (2 * np.pi) ** -0.5  # phi(0)
# Elements per block: temporaries of at most 512 x 285 doubles stay in the cache.
_BLOCK = 512


def softplus_expectations(mean: ArrayLike, variance: ArrayLike, derivatives: int = 0) -> Array:
    r"""Return the Gaussian expectations of softplus and its derivatives.

    .. math:: E[\zeta^{(j)}(f)], \quad f \sim N(m, v), \quad \zeta(x) = \log(1 + e^x).

    The rows are each other's derivatives: row j differentiates to row j + 1 in the mean, and to
    half of row j + 2 in the variance.

    Parameters
    ----------
    mean, variance : array_like
        Mean :math:`m` and variance :math:`v \ge 0`, broadcast against each other.
    derivatives : int
        Highest derivative, from 0 (softplus) over 1 (sigmoid) to 4.

    Returns
    -------
    ndarray, shape (derivatives + 1, *broadcast shape)
        Row j is the expectation of the j-th derivative, with an absolute error below 1e-12.

    Examples
    --------
    >>> softplus_expectations(0.0, [0.0, 1.0, 100.0], derivatives=1).round(6)
    array([[0.693147, 0.806059, 4.054313],
           [0.5     , 0.5     , 0.5     ]])
    """
    if derivatives not in range(5):
        raise ValueError(f"derivatives must be an integer from 0 to 4, got {derivatives!r}")
    mean, variance = _broadcast(mean, variance)
    narrow = [partial(_narrow, count=count, derivatives=derivatives) for _, count in _NARROW]
    wide = partial(_wide, derivatives=derivatives)
    edges = [-1.0, *(most for most, _ in _NARROW), np.inf]
    masks = [(low < variance) & (variance <= high) for low, high in pairwise(edges)]
    rules: list[tuple[Mask, Rule]] = list(zip(masks, [*narrow, wide], strict=True))
    rows = _apply(rules, -np.abs(mean), variance, derivatives + 1)
    return _reflect(rows, mean)


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
    :math:`m \ge -v/2`, so that :math:`e^\ell` is relatively accurate however small.

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
    rules: list[tuple[Mask, Rule]] = [(tilted, _log_tilted), (~tilted, _log_upper)]
    mirror, slope, rate = _apply(rules, centre, variance, 3)
    value: Array = np.where(mapped, mean + variance / 2 + mirror, mirror)
    if derivatives:
        # d/dm = 1 - l_m,  d/dv = 1/2 - l_m + l_v, with l_m and l_v taken at (-m - v, v)
        return value, np.where(mapped, 1 - slope, slope), np.where(mapped, 0.5 - slope + rate, rate)
    return value


def _broadcast(mean: ArrayLike, variance: ArrayLike) -> tuple[Array, Array]:
    """Return mean and variance as float arrays of a common shape."""
    mean, variance = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    if np.any(variance < 0):
        raise ValueError("variance must not be negative")
    shape = np.broadcast_shapes(mean.shape, variance.shape)
    return np.broadcast_to(mean, shape), np.broadcast_to(variance, shape)


def _apply(rules: list[tuple[Mask, Rule]], mean: Array, variance: Array, count: int) -> Array:
    """Apply to each element the rule that is for it, in blocks that bound the memory."""
    rows = np.empty((count, mean.size))
    for chosen, rule in rules:
        indices = np.flatnonzero(chosen)
        for start in range(0, indices.size, _BLOCK):
            block = indices[start : start + _BLOCK]
            rows[:, block] = rule(mean.flat[block], variance.flat[block])
    return rows.reshape(count, *mean.shape)


def _reflect(rows: Array, x: Array) -> Array:
    """Turn the rows at -|x|, in place, into those at x, by softplus(x) = x + softplus(-x)."""
    rows[0] += np.maximum(x, 0)
    rows[1::2] *= np.where(x > 0, -1.0, 1.0)
    rows[1:2] += x > 0
    return rows


def _softplus(x: Array, derivatives: int) -> Array:
    """Return softplus and its derivatives at x <= 0, all relatively accurate."""
    odds = np.exp(x)
    sigmoid = odds / (1 + odds)
    # s' = s (1 - s),  s'' = s' (1 - 2 s),  s''' = s' (1 - 6 s')
    slope = sigmoid / (1 + odds)
    rows = np.log1p(odds), sigmoid, slope, slope * (1 - 2 * sigmoid), slope * (1 - 6 * slope)
    return np.stack(rows[: derivatives + 1])


def _ramp(x: Array, width: ArrayLike, gaussian: Array, derivatives: int) -> Array:
    """Return the ramp and its derivatives at x <= 0, where `gaussian` is exp(-(x/width)^2/2).

    A factor that `gaussian` carries beyond this multiplies the result.
    """
    u, width = np.broadcast_arrays(x / np.asarray(width), width)
    tail = erfcx(-u / np.sqrt(2)) / 2  # Phi(u) exp(u^2 / 2)
    density = _PEAK / width
    bend = density / width
    rows = width * (u * tail + _PEAK), tail, density, -u * bend, (u * u - 1) * bend / width
    scaled: Array = np.stack(rows[: derivatives + 1]) * gaussian
    return scaled


def _narrow(mean: Array, variance: Array, count: int, derivatives: int) -> Array:
    r"""Return :math:`\sum_k p_k \zeta^{(j)}(m + z_k \sqrt{v})`, for v <= 1."""
    nodes, shares = _gauss_hermite(count)
    x = mean[:, None] + np.sqrt(variance)[:, None] * nodes
    rows: Array = _reflect(_softplus(-np.abs(x), derivatives), x) @ shares
    return rows


@cache
def _gauss_hermite(count: int) -> tuple[Array, Array]:
    """Return nodes and shares of the standard normal."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(count)
    return nodes, shares * _PEAK


@cache
def _remainder(reach: int) -> tuple[Array, Array]:
    """Return h (softplus - ramp) and its derivatives at the nodes x = -reach..reach times h.

    Before them comes (x, -x^2/2, 1), from which Gaussian exponents are linear combinations.
    """
    x = _STEP * np.arange(-reach, 1, dtype=np.float64)
    ramp = _ramp(x, np.sqrt(_RAMP_VARIANCE), np.exp(-x * x / (2 * _RAMP_VARIANCE)), 4)
    left = _STEP * (_softplus(x, 4) - ramp)
    right = left[:, -2::-1] * [[1], [-1], [1], [-1], [1]]
    x = np.append(x, -x[-2::-1])
    return np.stack([x, -x * x / 2, np.ones_like(x)], axis=1), np.append(left, right, axis=1)


def _wide(mean: Array, variance: Array, derivatives: int, scaled: bool = False) -> Array:
    r"""Return the expectations for mean <= 0 and v > 1, as those of ramp and remainder.

    If scaled, they carry the factor :math:`e^{m^2/2v}`.  By
    :math:`N(x; m, v) = e^{-m^2/2v} e^{xm/v} N(x; 0, v)` all exponents are then bounded for
    :math:`m \ge -v/2`, with summands of the order :math:`e^{-|x|/2}`, hence the longer grid.
    """
    powers, remainder = _remainder(142 if scaled else 72)
    tilt = mean / variance
    exponent = tilt * mean / 2
    kept = 0.0 if scaled else -exponent
    total = variance + _RAMP_VARIANCE
    # -m^2 / 2(v + c^2) = (m^2 / 2v) c^2 / (v + c^2) - m^2 / 2v
    gaussian = np.exp(exponent * _RAMP_VARIANCE / total + kept)
    density = powers @ np.stack([tilt, 1 / variance, kept + np.log(_PEAK / np.sqrt(variance))])
    np.exp(density, out=density)
    rows: Array = remainder[: derivatives + 1] @ density
    return rows + _ramp(mean, np.sqrt(total), gaussian, derivatives)


def _log_upper(mean: Array, variance: Array) -> Array:
    """Return log E[sigmoid] and its derivatives where E[sigmoid] is not small."""
    _, complement, slope, curvature = softplus_expectations(-mean, variance, 3)
    expected = 1 - complement
    return np.stack([np.log1p(-complement), slope / expected, -curvature / (2 * expected)])


def _log_tilted(mean: Array, variance: Array) -> Array:
    """Return log E[sigmoid] and its derivatives for -v/2 <= mean < 0 and v > 1."""
    _, expected, slope, curvature = _wide(mean, variance, 3, scaled=True)
    value = np.log(expected) - mean / variance * mean / 2
    return np.stack([value, slope / expected, curvature / (2 * expected)])
