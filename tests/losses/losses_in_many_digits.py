"""Losses as they are defined, and their Gaussian expectations, in fifty digits.

    L = E l,    d^j L / dmu^j = E[l He_j(z)] / s^j,    u = mu + s z,

so that nothing but the loss itself is integrated, by Gauss-Legendre quadrature on panels that halve
towards each point where the loss bends.  ``python tests/losses/losses_in_many_digits.py`` writes
the table of exact numbers that the tests read, in two minutes; slow tests compute it again.
"""

import json
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import mpmath
from mpmath import mp, mpf

from temperance.losses import (
    Expectile,
    Hinge,
    Huber,
    Logistic,
    NegativeBinomial,
    Pinball,
    Poisson,
    Probit,
    Squared,
    StudentT,
    Tukey,
)

DIGITS = 50
NODES = 30
FAR = 24  # deviations; the density there, times any power of 1e6, is nothing


def softplus(x):
    return mpmath.log1p(mpmath.exp(x)) if x < 0 else x + mpmath.log1p(mpmath.exp(-x))


def squared(loss, u, y):
    s2 = mpf(loss.noise_variance)
    return (y - u) ** 2 / (2 * s2) + mpmath.log(2 * mp.pi * s2) / 2


def poisson(loss, u, y):
    return mpmath.exp(u) - y * u + mpmath.loggamma(y + 1)


def negative_binomial(loss, u, y):
    k = mpf(loss.dispersion)
    # p = k / (k + exp(u)), the probability of a failure, and 1 - p
    log_p, log_q = -softplus(u - mpmath.log(k)), -softplus(mpmath.log(k) - u)
    counted = mpmath.loggamma(y + k) - mpmath.loggamma(k) - mpmath.loggamma(y + 1)
    return -(counted + k * log_p + y * log_q)


def student(loss, u, y):
    df, scale = mpf(loss.df), mpf(loss.scale)
    peak = mpmath.gamma((df + 1) / 2) / mpmath.gamma(df / 2) / mpmath.sqrt(df * mp.pi) / scale
    return (df + 1) / 2 * mpmath.log1p(((y - u) / scale) ** 2 / df) - mpmath.log(peak)


def pinball(loss, u, y):
    q = mpf(loss.quantile)
    return max(q * (y - u), (q - 1) * (y - u))


def expectile(loss, u, y):
    q = mpf(loss.quantile)
    return (q if y > u else 1 - q) * (y - u) ** 2


def huber(loss, u, y):
    d, r = mpf(loss.delta), abs(y - u)
    return r * r / 2 if r < d else d * (r - d / 2)


def tukey(loss, u, y):
    c = mpf(loss.c)
    return c * c / 6 * (1 - (1 - min(((y - u) / c) ** 2, 1)) ** 3)


# The value, points where it bends given y, and how wide: 0 at kinks.
DEFINITIONS = {
    Squared: (squared, lambda loss, y: ()),
    Logistic: (lambda loss, u, y: softplus((1 - 2 * y) * u), lambda loss, y: ((0, 3),)),
    Probit: (
        lambda loss, u, y: -mpmath.log(mpmath.ncdf((2 * y - 1) * u)),
        lambda loss, y: ((2 * (2 * y - 1), 2),),
    ),
    Poisson: (poisson, lambda loss, y: ((mpmath.log(y + 0.5), 0.25),)),
    NegativeBinomial: (
        negative_binomial,
        lambda loss, y: ((mpmath.log(loss.dispersion), 3), (mpmath.log(y + 0.5), 0.25)),
    ),
    StudentT: (student, lambda loss, y: ((y, loss.scale / 2),)),
    Pinball: (pinball, lambda loss, y: ((y, 0),)),
    Expectile: (expectile, lambda loss, y: ((y, 0),)),
    Huber: (huber, lambda loss, y: ((y - mpf(loss.delta), 0), (y + mpf(loss.delta), 0))),
    Hinge: (lambda loss, u, y: max(mpf(0), 1 - (2 * y - 1) * u), lambda loss, y: ((2 * y - 1, 0),)),
    Tukey: (tukey, lambda loss, y: ((y - mpf(loss.c), 0), (y + mpf(loss.c), 0))),
}


# A loss and a response by a name.
CASES = {
    "squared": (Squared(0.3), 0.7),
    "logistic": (Logistic(), 1.0),
    "probit 0": (Probit(), 0.0),
    "probit 1": (Probit(), 1.0),
    "Poisson 0": (Poisson(), 0.0),
    "Poisson 3": (Poisson(), 3.0),
    "Poisson 1e6": (Poisson(), 1e6),
    "negative binomial 0": (NegativeBinomial(1.7), 0.0),
    "negative binomial 7": (NegativeBinomial(0.3), 7.0),
    "negative binomial 1e6": (NegativeBinomial(20.0), 1e6),
    "Cauchy": (StudentT(1.0, 0.8), 0.5),
    "t4": (StudentT(4.0, 0.8), 0.5),
    "t200": (StudentT(200.0, 0.8), 0.5),
    "pinball": (Pinball(0.2), 0.5),
    "expectile": (Expectile(0.8), 0.5),
    "Huber": (Huber(1.3), 0.5),
    "hinge 0": (Hinge(), 0.0),
    "hinge 1": (Hinge(), 1.0),
    "Tukey": (Tukey(2.5), 0.5),
}
MEANS, DEVIATIONS = (-50.0, -3.0, 0.4, 50.0), (1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0)
PREDICTIVE_MEANS, PREDICTIVE_DEVIATIONS = (-50.0, 0.4, 14.0), (1e-6, 0.1, 1.0, 10.0, 100.0)
TABLE = Path(__file__).with_name("exact.json")


class Exact(NamedTuple):
    """L and its partial derivatives, in the order of Partials."""

    value: mpf
    mean: mpf
    variance: mpf
    mean_mean: mpf
    mean_variance: mpf
    variance_variance: mpf


def exact_expectations(loss, mean, variance, y, definition=None) -> Exact:
    """Return what ``expected`` and ``partials`` should."""
    value, bends = definition or DEFINITIONS[type(loss)]
    with mpmath.workdps(DIGITS):
        mean, s, y = mpf(mean), mpmath.sqrt(mpf(variance)), mpf(y)
        edges = {mpf(z) for z in range(-FAR, FAR + 1, 3)}
        edges |= graded([((c - mean) / s, w / s) for c, w in bends(loss, y)])
        sums = [mpf(0)] * 5
        for z, weight in panels(edges, -FAR, FAR):
            hermite = (1, z, z * z - 1, z**3 - 3 * z, z**4 - 6 * z * z + 3)
            part = weight * mpmath.npdf(z) * value(loss, mean + s * z, y)
            sums = [total + part * each for total, each in zip(sums, hermite, strict=True)]
        zero, first, second, third, fourth = (total / s**j for j, total in enumerate(sums))
        return Exact(zero, first, second / 2, second, third / 2, fourth / 4)


def exact_log_predictive(loss, mean, variance, y, definition=None):
    """Return log E exp(-l) and its derivatives in mean and variance."""
    value, bends = definition or DEFINITIONS[type(loss)]
    with mpmath.workdps(DIGITS):
        mean, s, y = mpf(mean), mpmath.sqrt(mpf(variance)), mpf(y)

        def height(z):
            return value(loss, mean + s * z, y) + z * z / 2

        at = [((c - mean) / s, w / s) for c, w in bends(loss, y)]
        peak = lowest(height, [mpf(0), *(c for c, _ in at)])
        step = mpf(10) ** -20 * (1 + abs(peak))
        curvature = (height(peak + step) - 2 * height(peak) + height(peak - step)) / step**2
        width = 1 / mpmath.sqrt(max(curvature, mpf(1) / 4))
        edges = {peak + z for z in range(-FAR, FAR + 1, 3)} | {mpf(z) for z in range(-9, 10, 3)}
        edges |= graded([*at, (peak, width)])
        low, high = min(peak, 0) - FAR, max(peak, 0) + FAR
        sums, least = [mpf(0)] * 3, height(peak)
        for z, weight in panels(edges, low, high):
            part = weight * mpmath.exp(least - height(z))
            sums = [t + part * each for t, each in zip(sums, (1, z, z * z - 1), strict=True)]
        total, first, second = sums
        log = mpmath.log(total) - least - mpmath.log(2 * mp.pi) / 2
        return log, first / total / s, second / total / (2 * s * s)


def possible(name, mean, deviation, predictive):
    """Leave out expectations of exp(u) that are no numbers."""
    loss, y = CASES[name]
    if predictive:
        return loss.likelihood and not (isinstance(loss, Logistic))
    return not (isinstance(loss, Poisson) and deviation > 20)


def points(name):
    """Yield whether the point is one of the predictive density, and mean and deviation."""
    grids = ((False, MEANS, DEVIATIONS), (True, PREDICTIVE_MEANS, PREDICTIVE_DEVIATIONS))
    for predictive, means, deviations in grids:
        for mean in means:
            for deviation in deviations:
                if possible(name, mean, deviation, predictive):
                    yield predictive, mean, deviation


def exact_at(name, predictive, mean, deviation):
    """Return the exact numbers of a point, as floats."""
    loss, y = CASES[name]
    function = exact_log_predictive if predictive else exact_expectations
    return [float(each) for each in function(loss, mean, deviation**2, y)]


def write_table():
    rows = [
        json.dumps([name, *point, exact_at(name, *point)])
        for name in CASES
        for point in points(name)
    ]
    draft = TABLE.with_suffix(".draft")
    draft.write_text("[\n" + ",\n".join(rows) + "\n]\n")
    os.replace(draft, TABLE)


def read_table():
    """Return rows (name, predictive, mean, deviation, exact numbers)."""
    return [tuple(row) for row in json.loads(TABLE.read_text())]


def lowest(height, points):
    """Return about where a function of one or two valleys is least: golden sections."""
    low, high = min(points) - 50, max(points) + 50
    grid = [low + (high - low) * mpf(i) / 200 for i in range(201)]
    grid += [p + sign * mpf(2) ** j for p in points for j in range(-40, 8, 2) for sign in (-1, 1)]
    grid = sorted([*grid, *points])
    best = min(range(len(grid)), key=lambda i: height(grid[i]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    share = (mpmath.sqrt(5) - 1) / 2
    for _ in range(60):
        one, two = high - share * (high - low), low + share * (high - low)
        low, high = (low, two) if height(one) < height(two) else (one, high)
    return (low + high) / 2


def graded(bends):
    """Return points whose distances from each bend double, from its width on."""
    return {
        mpf(c) + sign * mpf(w) * mpf(2) ** j
        for c, w in bends
        for j in range(40)
        for sign in (-1, 0, 1)
    }


def panels(edges, low, high):
    """Yield nodes and weights."""
    points = sorted({min(max(edge, low), high) for edge in edges})
    for left, right in zip(points, points[1:], strict=False):
        half = (right - left) / 2
        for x, weight in legendre():
            yield left + half * (1 + x), half * weight


@cache
def legendre():
    """Return Gauss-Legendre nodes and weights by Newton's method on the polynomial."""
    found = []
    for i in range(NODES):
        x = mpmath.cos(mp.pi * (i + mpf(3) / 4) / (NODES + mpf(1) / 2))
        for _ in range(8):
            before, here = mpf(1), x
            for j in range(2, NODES + 1):
                before, here = here, ((2 * j - 1) * x * here - (j - 1) * before) / j
            slope = NODES * (x * here - before) / (x * x - 1)
            x -= here / slope
        found.append((x, 2 / ((1 - x * x) * slope**2)))
    return found


if __name__ == "__main__":
    write_table()
