r"""The reference risk of linear models: expected by a model with free scales, and tested by rows.

In whitened coordinates (:mod:`temperance.linear.engine`) the reference of a model with noise
variance s2 is

    r = t'u + e,  e ~ N(0, s),  u ~ N(0, kappa s I),  log s / s2 and log kappa s ~ N(0, 1.5^2);

if the variance is unknown, s has the density 1 / s and log kappa ~ N(0, 2 1.5^2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, softmax, wrightomega

from temperance import plans
from temperance.calibration import Calibration
from temperance.checks import one_of, positive
from temperance.data import Array, Data, Risk, batches
from temperance.linear.engine import BUDGET, Fits, LinearRows, PairLosses, decompose
from temperance.linear.models import LinearModel
from temperance.posteriors.covariance_root import squares_across
from temperance.protocols import Model
from temperance.rules import Choice, edge, minimum, not_worse
from temperance.strategies.selection import warn_of_choice
from temperance.table import HeldOut, half_decades

STORED_AS = "temperance.strategies.reference_risk"  # module path that studies store
METHOD = "closed form, reference model with free scales"
HALVINGS, SCANNED = 30, 200  # to the end of what leave-one-out accepts; betas of a scan for it
SPREAD = 1.5  # prior standard deviation of the logarithm of each free scale
COARSE, FINE = np.linspace(-30.0, 30.0, 121), 41  # grids of log kappa s2
LIKELY = 30.0  # difference in log weight from the most likely scale, up to which one is kept
NODES = np.linspace(-7.0, 13.0, 41)  # of the integral over log s, in deviations from its mode
NO_NOISE = -200.0  # logarithm of a noise variance that is treated as zero
MOST_DEVIATIONS, LEAST_WIDENING = 2.5, 1.1  # of a scale above its prior mean, of the prior's width
LEAST_RATIO = 1e-8  # of noise at high leverage to the mean noise
COMPARED = np.array([0.1, 1.0, 10.0])  # kappa s2 at which new rows are held against left-out ones
ROUNDING, TINY = 1e-12, float(np.finfo(float).tiny)  # of squares of correlations; of misfits


@dataclass(frozen=True)
class ReferenceRisk:
    r"""Minimise the risk expected by a reference model, within what leave-one-out accepts.

    .. math::

        \hat\beta = \arg\min_\beta E\bigl[ E_{\theta \sim \pi_\beta} l(\theta, X) \bigr],

    where the outer expectation is over a new X under the posterior of the reference model.  That is
    the same model with unknown noise variance and prior scale, both learnt from the data.  Among
    the betas whose leave-one-out risk is within ``veto`` paired standard errors of its minimum, the
    choice is the one closest to the reference's, in log beta.

    The reported risk is the reference's.  The standard errors are those of leave-one-out; without
    the veto there are none.  For linear models whose prior has a given scale.

    Parameters
    ----------
    veto : float or None
        Number of standard errors that leave-one-out allows; ``None`` for no check.
    duplicates : {"auto", "together", "apart"}
        Whether identical rows are copies of one observation, which the reference and the veto then
        count once, or different observations; as in :class:`KFold`.

    Examples
    --------
    >>> import numpy as np
    >>> from temperance import calibrate, models
    >>> rng = np.random.default_rng(1)
    >>> X = rng.standard_normal((40, 30))
    >>> y = X[:, 0] + 8 * rng.standard_normal(40)
    >>> model = models.GaussianLinear(noise_variance=8.0)
    >>> calibration = calibrate(model, X, y, ReferenceRisk(), risk="gibbs")
    >>> 0.01 < calibration.beta < 0.5
    True
    """

    veto: float | None = 2.0
    duplicates: plans.Duplicates = "auto"

    def __post_init__(self) -> None:
        """Refuse a veto that is not positive."""
        if self.veto is not None:
            positive("veto", self.veto)
        one_of("duplicates", self.duplicates, ("auto", "together", "apart"))

    def select(
        self,
        model: Model,
        data: Data,
        bounds: tuple[float, float],
        rng: np.random.Generator,
        risk: Risk = "gibbs",
    ) -> Calibration:
        """Return the calibration with beta within ``bounds``; no randomness is needed."""
        if not isinstance(model, LinearModel) or not model.preferences.reference:
            raise ValueError(
                "model must have a reference for ReferenceRisk, as models of the squared loss have "
                "if the scale of their prior is given (prior_scale in the estimators), got "
                f"{type(model).__name__}; use KFold()"
            )
        rows, pieces = plans.observations(data, self.duplicates)
        if self.veto is not None and (len(rows) if pieces is None else pieces.sum()) < 2:
            raise ValueError(
                "X and y must have at least 2 distinct rows for leave-one-out's veto, got "
                f"{len(rows)}; use ReferenceRisk(veto=None) or Bayes()"
            )
        apart = pieces is not None or self.duplicates == "apart"
        new = new_rows(model, rows, rows.weights if apart else np.ones(len(rows)), risk)
        betas, one = half_decades(bounds), np.ones(1)
        table = HeldOut(betas, Expected(new), one, one, risk, method=METHOD, analytic=True)
        choice = minimum(table, bounds)
        if self.veto is not None:
            plan = plans.LeaveOneOut(rows.weights, pieces=pieces)
            left_out = model.held_out(rows, plan, risk, bounds)
            choice = closest_tolerated(choice, left_out, bounds, self.veto)
            table = replace(left_out, at=Expected(new, left_out), method=METHOD)
        calibration = Calibration(model, data, self, risk, bounds, choice, table)
        warn_of_choice(calibration)
        return calibration


@dataclass(frozen=True, eq=False)
class Expected:
    """The risk on new rows, as that of a single row, or with the scatter of left-out rows."""

    new: PairLosses
    left_out: HeldOut | None = None

    def __call__(self, betas: Array) -> Array:
        """Return the losses at betas (g,), shape (g, rows)."""
        share = self.new.test[0]
        parts = batches(len(betas), len(share), BUDGET)
        risk = np.concatenate([self.new(betas[part]) @ share for part in parts])[:, None]
        if self.left_out is None:
            return risk
        losses = self.left_out.at(betas)
        return losses + (risk - (losses @ self.left_out.share)[:, None])


def closest_tolerated(
    choice: Choice, table: HeldOut, bounds: tuple[float, float], errors: float
) -> Choice:
    """Return the beta closest to the choice that a table does not tell apart from its minimum."""
    least = minimum(table, bounds).beta
    accepted = not_worse(table, least, errors)
    if choice.beta == least or accepted(np.array([choice.beta]))[0]:
        return choice
    # What is accepted need not be connected: the closest of a scan, and the end next to it.
    low = max(float(table.betas[0]), TINY)
    scan = np.concatenate([np.geomspace(low, bounds[1], SCANNED), bounds, [least]])
    side = scan[(scan >= bounds[0]) & (scan != choice.beta)]
    side = side[np.argsort(np.abs(np.log(np.maximum(side, low) / max(choice.beta, low))))]
    inside = float(side[accepted(side).index(True)])
    between = side[(side > min(inside, choice.beta)) & (side < max(inside, choice.beta))]
    outside = float(between[-1]) if len(between) else choice.beta
    beta = edge(accepted, inside, outside, HALVINGS)
    return Choice(beta, at_bound=beta in bounds, least=choice.beta)


def new_rows(model: LinearModel, data: Data, counts: Array, risk: Risk) -> PairLosses:
    r"""Return the losses of new rows, with the second moments that the reference expects.

    With mean m and covariance V of the coefficients, the noise s, and the second moment A of t,

        E tt' = A,    E tr = A m,    E r^2 = m'A m + tr(A V) + s.

    A is that of the rows, its off-diagonal elements before whitening shrunk by 1 - rho: a new row
    is one of the observed rows or, with probability rho, along an axis.  Its response takes one of
    two values.  The noise of an observed row is its own residual's, scaled to the expected mean.
    """
    Z, rows, unit = model.features(data.X), model.rows(data), model.noise.variance or 1.0
    size, n = float(counts.sum()), len(counts)
    share = counts / size
    axes = along_axes(model, Z, share, rows.basis)
    if rows.basis is not None:  # one more coordinate, zero in all rows: the rest of the axes
        rows = replace(rows, inputs=np.column_stack([rows.inputs, np.zeros(n)]))
    fits, left = decompose(rows, counts)
    likely, weight, noise = likely_scales(fits, model.noise.variance)
    kappa, k = np.concatenate([likely, COMPARED / unit])[:, None], len(likely)
    weighted_squares, inverse_slacks, own = deletions(rows, counts, fits, left, kappa, weight)

    # Noise that grows with the leverage makes coefficients less certain, by the factor phi.
    square, mean_noise = fits.singular[0] ** 2, float(weight @ noise)
    variances = kappa / (1 + kappa * square)
    leverage = variances @ square
    ratio = weighted_squares[:k] / np.maximum(leverage[:k] * noise, TINY)
    phi = np.exp(weight @ np.log(np.maximum(ratio, LEAST_RATIO)))
    precision = phi / kappa[:k] + square
    means = fits.singular[0] * fits.response[0] / precision
    mean = weight @ means

    fresh = np.concatenate([rows.inputs, axes])
    along = fresh @ fits.directions[0]
    own = own if own.any() else np.ones(n)
    spread = np.append(own * (mean_noise / (share @ own)), np.full(len(axes), mean_noise))
    spread += along**2 @ ((weight * noise) @ (phi / precision))
    for part in batches(len(along), k, BUDGET):
        spread[part] += (along[part] @ (means - mean).T) ** 2 @ weight
    location, deviation = along @ mean, np.sqrt(spread)

    # Rows along the axes must not make new rows more uncertain than left-out ones.
    rho, seen = shrinkage_intensity(Z, share, size), leverage[k:] / size
    gap = (variances[k:] @ (along[n:] ** 2).T).mean(axis=1) - seen
    if gap @ gap > ROUNDING * (seen @ seen):
        wanted = gap @ (inverse_slacks[k:] / size - seen) / (gap @ gap)
        rho = min(rho, float(np.clip(wanted, 0.0, 1.0)))
    test = np.concatenate([(1 - rho) * share, np.full(len(axes), rho / len(axes))]) / 2
    both = np.concatenate([location - deviation, location + deviation])
    fits = fits if np.all(counts == data.weights) else decompose(rows, data.weights)[0]
    rows = replace(rows, inputs=np.concatenate([fresh, fresh]), response=both)
    return PairLosses(rows, fits, np.arange(len(both))[None], np.tile(test, 2)[None], risk)


def along_axes(model: LinearModel, Z: Array, share: Array, basis: Array | None) -> Array:
    """Return rows sqrt(d a_j) e_j, a the mean squares, whitened; last their length off a basis."""
    prior, length = model.prior(Z.shape[1]), np.sqrt(Z.shape[1] * (share @ Z**2))[:, None]
    if basis is None:
        return length * prior.rows(slice(None))
    inside = prior.unwhiten(basis)
    if prior.root.ndim == 1:
        outside = prior.root * np.sqrt(squares_across(basis))
    else:
        outside = np.linalg.norm(prior.root - inside @ basis.T, axis=1)
    return length * np.column_stack([inside, outside])


def likely_scales(fits: Fits, variance: float | None) -> tuple[Array, Array, Array]:
    r"""Return a grid of kappas, their weights, and E[s | kappa].

    A weight is prod (1 + kappa lam)^(-1/2) times the integral of s^(-n/2) exp(-Q / 2s) over the
    priors, with the misfit Q and the squared singular values lam.  The prior around a known
    variance is widened until no scale is far above it, as with data in other units.
    """
    known, unit, size = variance is not None, variance or 1.0, float(fits.size[0])
    lam, squares = fits.singular[0] ** 2 / unit, fits.response[0] ** 2 / unit
    if not known and size <= 2:
        raise ValueError(
            "X and y must hold more than 2 observations for a reference of unknown variance, "
            f"copies counted once, got {size:g}"
        )

    def weighed(log_kappa: Array) -> tuple[Array, Array]:
        growth = np.exp(log_kappa)[:, None] * lam
        misfit = fits.rest[0] / unit + (1 / (1 + growth)) @ squares
        if known:
            log_weight, noise = over_noise(size / 2, misfit, log_kappa, spread)
        else:
            misfit = np.maximum(misfit, TINY)
            log_weight = -size / 2 * np.log(misfit) - log_kappa**2 / (2 * spread**2)
            noise = misfit / (size - 2)
        return log_weight - np.log1p(growth).sum(axis=1) / 2, noise

    spread = SPREAD if known else SPREAD * 2**0.5
    while True:
        log_weight, _ = weighed(COARSE)
        if not np.isfinite(log_weight.max()):
            raise ValueError("y must be of a size whose squares are finite in the model's units")
        likely = np.flatnonzero(log_weight > log_weight.max() - LIKELY)
        low, high = COARSE[np.clip([likely[0] - 1, likely[-1] + 1], 0, len(COARSE) - 1)]
        grid = np.linspace(low, high, FINE)
        log_weight, noise = weighed(grid)
        weight = softmax(log_weight)
        log_s = float(weight @ np.log(noise))
        needed = max(log_s, log_s + float(weight @ grid)) / MOST_DEVIATIONS
        if not known or needed <= spread:
            return np.exp(grid) / unit, weight, noise * unit
        spread = max(needed, LEAST_WIDENING * spread)


def over_noise(half: float, misfit: Array, log_kappa: Array, spread: float) -> tuple[Array, Array]:
    """Return the log integral over l = log s and E[s | kappa], by nodes around the mode of l."""
    b = 2 / spread**2  # the mode solves (Q/2) e^-l = half + b (l + log kappa / 2)
    shift = half / b + log_kappa / 2
    with np.errstate(divide="ignore"):  # zero misfit: -inf is correct
        log_s = np.maximum(wrightomega(np.log(misfit / (2 * b)) + shift) - shift, NO_NOISE)
    width = (misfit / 2 * np.exp(-log_s) + b) ** -0.5
    grid = log_s[:, None] + NODES * width[:, None]
    prior = (grid**2 + (grid + log_kappa[:, None]) ** 2) / (2 * spread**2)
    height = -half * grid - misfit[:, None] / 2 * np.exp(-grid) - prior
    noise = (softmax(height, axis=1) * np.exp(grid)).sum(axis=1)
    return logsumexp(height, axis=1) + np.log(width), noise


def deletions(
    rows: LinearRows, counts: Array, fits: Fits, left: Array | None, kappa: Array, weight: Array
) -> tuple[Array, Array, Array]:
    """Return sums over rows of h e^2 / k and h / k at kappas (g, 1), and each row's mean e^2 / k.

    A row of weight w is w rows of leverage h / w each: h is the leverage of all, e the residual of
    one, and k one minus the leverage of one.  Means are over the first kappas, by their weights.
    """
    root = np.sqrt(counts)
    if left is None:
        left = root[:, None] * (rows.inputs @ (fits.directions[0] / fits.singular[0]))
    square, c = fits.singular[0] ** 2, fits.response[0]
    free = float(np.count_nonzero(square) < len(left))  # 0 where no response has a residual
    outside = free * (root * rows.response - left @ c)
    g = 1 / (1 + kappa * square)
    sums, noise = np.zeros((2, len(kappa))), np.empty(len(left))
    for part in batches(len(left), 4 * len(kappa), BUDGET):
        lengths, single = left[part].T ** 2, np.minimum(counts[part], 1.0) / counts[part]
        leverage = (kappa * square * g) @ lengths
        slack = g @ lengths + free * np.maximum(1 - lengths.sum(axis=0), 0.0)
        slack = 1 - single + single * slack
        # A row that alone determines a direction has no other rows to compare with.
        inverse = np.divide(1.0, slack, out=np.zeros_like(slack), where=slack > 0)
        residual = ((g * c) @ left[part].T + outside[part]) ** 2 * inverse / counts[part]
        sums[0] += (leverage * residual).sum(axis=1)
        sums[1] += (leverage * np.where(slack > 0, inverse, 1.0)).sum(axis=1)
        noise[part] = weight @ residual[: len(weight)]
    return sums[0], sums[1], noise


def shrinkage_intensity(Z: Array, share: Array, size: float) -> float:
    """Return sum Var(c_ij) / sum c_ij^2 over i != j, at most 1, to shrink second moments by.

    The c are mean products of columns of mean square 1 (Ledoit and Wolf, J. Multivariate Analysis
    88, 2004; Schäfer and Strimmer, Stat. Appl. Genet. Mol. Biol. 4, 2005).
    """
    (n, d), squares = Z.shape, share @ Z**2
    X = Z / np.sqrt(np.where(squares > 0, squares, 1.0))
    root = np.sqrt(share)[:, None] * X
    products = root.T @ root if d <= n else root @ root.T  # their squares have the same sum
    total = float((products**2).sum()) - np.count_nonzero(squares)  # without the terms i = j
    if total <= ROUNDING * d**2:
        return 0.0
    X *= X
    fourths = share @ (X.sum(axis=1) ** 2 - (X**2).sum(axis=1))
    return float(np.clip((fourths - total) / (size * total), 0.0, 1.0))
