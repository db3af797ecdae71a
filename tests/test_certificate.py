"""Certificates: every formula against a plain computation, and the promise against simulations."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, special
from sklearn.datasets import load_breast_cancer, load_iris

from temperance import GibbsClassifier, GibbsRegressor, calibrate, losses, models, strategies
from temperance.estimators.stored import StoredChoice
from temperance.rules import BetaWeights, Choice
from temperance.streaming import calibrate_blocks
from temperance.uncertainty.certificate import (
    brier,
    coin_kl,
    gaussian_kl,
    largest_risk,
    mixture_parts,
    standardised_columns,
    zero_one,
)

pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")

MODELS = {
    "laplace": models.LaplaceLogistic(0.1, [1.0, 4.0, 0.5]),
    "mean-field": models.MeanFieldLogistic(0.1, [1.0, 4.0, 0.5]),
    "full": models.FullCovarianceLogistic(0.1, np.eye(3) + 0.3),
    "jaakkola": models.JaakkolaLogistic(0.1, np.eye(3) + 0.3),
    "probit": models.GibbsLinear(losses.Probit(), prior_mean=0.1, prior_cov=np.eye(3) + 0.3),
    "hinge": models.GibbsLinear(losses.Hinge(), prior_mean=0.1, prior_cov=[1.0, 4.0, 0.5]),
}
PROBABILITY = {"probit": special.ndtr}


def classes(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    theta = np.zeros(d)
    theta[:2] = 3.0, -2.0
    return X, (rng.random(n) < special.expit(X @ theta)).astype(float)


def plain_kl(mean, cov, prior_mean, prior_cov):
    inverse, gap = np.linalg.inv(prior_cov), mean - prior_mean
    logs = np.linalg.slogdet(prior_cov)[1] - np.linalg.slogdet(cov)[1]
    return 0.5 * (np.trace(inverse @ cov) - len(mean) + gap @ inverse @ gap + logs)


@pytest.fixture(params=MODELS)
def certified(request):
    """Return the name of a model, and a calibration of it."""
    rule = "sandwich" if request.param == "hinge" else "bayes"
    return request.param, calibrate(MODELS[request.param], *classes(), rule)


class TestFormulas:
    @pytest.mark.parametrize("risk", [0.0, 1e-4, 0.03, 0.5, 0.97, 1.0])
    @pytest.mark.parametrize("budget", [0.0, 1e-6, 0.01, 0.4, 6.0])
    def test_inversion_is_the_largest_of_a_grid(self, risk, budget):
        grid = np.linspace(risk, 1.0, 100_001)
        kl = special.rel_entr(risk, grid) + special.rel_entr(1 - risk, 1 - grid)
        best = grid[kl <= budget].max()
        found = largest_risk(risk, budget)
        assert best - 1e-12 <= found <= best + 1.1e-5
        assert found == 1.0 or coin_kl(risk, found) >= budget

    def test_no_losses_at_all(self):
        assert largest_risk(0.0, 0.1) == pytest.approx(1 - np.exp(-0.1), rel=1e-14)

    def test_the_constant_holds_for_every_number_of_rows(self):
        """Maurer's sum, at most 2 sqrt(n): stated for n >= 8, and true below."""
        for n in range(1, 150):
            k = np.arange(n + 1)
            logs = special.xlogy(k, k / n) + special.xlogy(n - k, 1 - k / n)
            chosen = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
            assert np.exp(chosen + logs).sum() <= 2 * np.sqrt(n) * (1 + 1e-12)

    def test_divergence_from_the_prior(self, certified):
        _, calibration = certified
        posterior = calibration.posterior
        prior = calibration.model.prior(3)
        root = np.diag(prior.root) if prior.root.ndim == 1 else prior.root
        wanted = plain_kl(posterior.mean, posterior.cov, prior.mean, root @ root.T)
        assert gaussian_kl(posterior, prior) == pytest.approx(wanted, rel=1e-10)
        theta = posterior.sample(20_000, 1)
        at_prior = np.sum(np.linalg.solve(root, (theta - prior.mean).T) ** 2, axis=0)
        log_prior = -0.5 * (at_prior + 3 * np.log(2 * np.pi)) - np.linalg.slogdet(root)[1]
        ratio = posterior.log_prob(theta) - log_prior
        error = ratio.std() / np.sqrt(len(ratio))
        assert abs(ratio.mean() - wanted) < 4 * error
        swapped = plain_kl(prior.mean, root @ root.T, posterior.mean, posterior.cov)
        assert abs(ratio.mean() - swapped) > 4 * error

    def test_divergence_with_more_columns_than_rows(self):
        X, y = classes(n=6, d=9)
        model = models.LaplaceLogistic(0.0, np.eye(9) + 0.2)
        posterior = model.posterior(X, y, 6.0)
        wanted = plain_kl(posterior.mean, posterior.cov, np.zeros(9), np.eye(9) + 0.2)
        assert gaussian_kl(posterior, model.prior(9)) == pytest.approx(wanted, rel=1e-10)
        prior = model.posterior(X, y, 0.0)
        assert gaussian_kl(prior, model.prior(9)) == pytest.approx(0.0, abs=1e-12)

    @pytest.mark.parametrize("loss", ["zero-one", "brier"])
    def test_losses_are_those_of_draws(self, certified, loss):
        name, calibration = certified
        X, y = classes()
        u = calibration.posterior.sample(4000, 2) @ X.T
        if loss == "brier" and name == "hinge":
            return
        each = PROBABILITY.get(name, special.expit)(u) if loss == "brier" else u > 0
        risks = ((each - y) ** 2).mean(axis=1)
        error = risks.std() / np.sqrt(len(risks))
        found = calibration.certificate(loss).empirical_risk
        assert abs(found - risks.mean()) < 4 * error
        flipped = ((each - (1 - y)) ** 2).mean()
        assert abs(found - flipped) > 4 * error

    def test_an_offset_is_part_of_the_predictor(self):
        X, y = classes()
        calibration = calibrate(models.GibbsLinear(losses.Probit(), offset=0), X, y, "bayes")
        u = X[:, 0] + calibration.posterior.sample(4000, 2) @ X[:, 1:].T
        risks = ((u > 0) != y).mean(axis=1)
        error = risks.std() / np.sqrt(len(risks))
        assert abs(calibration.certificate().empirical_risk - risks.mean()) < 4 * error

    def test_predictors_without_variance(self):
        mean, y = np.array([2.0, -2.0, 0.0]), np.array([1.0, 1.0, 1.0])
        np.testing.assert_array_equal(zero_one(mean, np.zeros(3), y), [0.0, 1.0, 0.5])
        found = brier(losses.Logistic(), mean, np.zeros(3), y)
        np.testing.assert_allclose(found, special.expit(-mean) ** 2, rtol=1e-14)

    @pytest.mark.parametrize("variance", [1e-8, 0.01, 1.0, 30.0, 1e3, 1e6])
    @pytest.mark.parametrize("row_loss", [losses.Logistic(), losses.Probit()])
    def test_brier_by_another_quadrature(self, variance, row_loss):
        mean, s = np.array([-3.0, 0.0, 0.7, 40.0]), np.sqrt(variance)
        for y in (0.0, 1.0):
            found = brier(row_loss, mean, np.full(4, variance), np.full(4, y))
            for m, each in zip(mean, found, strict=True):
                wanted = integrate.quad(
                    lambda z, m=m, y=y: (
                        (y - row_loss.response_mean(m + s * z)) ** 2 * np.exp(-0.5 * z * z)
                    ),
                    -12,
                    12,
                    points=np.clip((np.array([-30.0, -6, -2, 0, 2, 6, 30]) - m) / s, -12, 12),
                    limit=400,
                    epsabs=1e-12,
                )[0] / np.sqrt(2 * np.pi)
                assert each == pytest.approx(wanted, abs=1e-10)

    def test_brier_in_closed_form(self):
        """With t = (1 - 2y) u: E Phi(t)^2 by Owen's T, and sigma(t)^2 = sigma(t) - sigma'(t)."""
        mean, v, y = np.array([-2.0, 0.3, 5.0]), np.array([0.5, 4.0, 50.0]), np.array([1.0, 0, 1])
        h = -(2 * y - 1) * mean / np.sqrt(1 + v)
        wanted = special.ndtr(h) - 2 * special.owens_t(h, 1 / np.sqrt(1 + 2 * v))
        np.testing.assert_allclose(brier(losses.Probit(), mean, v, y), wanted, atol=1e-11)
        from temperance.quadrature import softplus_expectations

        first, second = softplus_expectations(-(2 * y - 1) * mean, v, derivatives=2, first=1)
        np.testing.assert_allclose(brier(losses.Logistic(), mean, v, y), first - second, atol=1e-11)

    @pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
    def test_the_bound_as_it_is_written(self, confidence):
        X, y = classes()
        calibration = calibrate(models.LaplaceLogistic(), X, y, "bayes")
        found, Q = calibration.certificate(confidence=confidence), calibration.posterior
        margin = (2 * y - 1) * (X @ Q.mean)
        wrong = special.ndtr(-margin / np.sqrt(np.einsum("ij,jk,ik->i", X, Q.cov, X))).mean()
        kl = plain_kl(Q.mean, Q.cov, np.zeros(3), np.eye(3))
        assert found.empirical_risk == pytest.approx(wrong, rel=1e-12)
        assert found.kl == pytest.approx(kl, rel=1e-10)
        assert (found.n, found.confidence, found.loss) == (60, confidence, "zero-one")
        p, q = found.bound, wrong
        divergence = q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))
        right = (kl + np.log(2 * np.sqrt(60) / (1 - confidence))) / 60
        assert divergence == pytest.approx(right, rel=1e-8)


class TestAverages:
    def test_risk_is_the_mixture_and_divergence_is_bounded_by_convexity(self):
        X, y = classes()
        weights = BetaWeights(np.array([0.1, 0.5, 1.0, 3.0]), np.array([0.2, 0.3, 0.4, 0.1]))
        choice = Choice(weights.median, searched=False, weights=weights)
        calibration = replace(calibrate(models.LaplaceLogistic(), X, y, "stacking"), choice=choice)
        found, mixture = calibration.certificate(), calibration.posterior
        weights = np.array([weight for weight, _ in mixture_parts(mixture)])
        assert len(weights) == 4
        assert weights.sum() == pytest.approx(1.0)
        alone = [
            zero_one(*part.linear_predictor(X), y).mean() for _, part in mixture_parts(mixture)
        ]
        assert found.empirical_risk == pytest.approx(weights @ alone, rel=1e-12)
        theta = mixture.sample(20_000, 0)
        log_prior = -0.5 * (theta**2).sum(axis=1) - 1.5 * np.log(2 * np.pi)
        ratio = mixture.log_prob(theta) - log_prior
        error = ratio.std() / np.sqrt(len(ratio))
        assert ratio.mean() - 4 * error < found.kl
        assert found.kl < ratio.mean() + 1.0
        risks = ((theta @ X.T > 0) != y).mean(axis=1)
        assert abs(risks.mean() - found.empirical_risk) < 4 * risks.std() / np.sqrt(len(risks))

    def test_forecasts_that_vote(self):
        """If most draws are wrong on a row, at least half are: at most twice the risk."""
        X, y = classes(n=300, seed=3)
        calibration = calibrate(models.LaplaceLogistic(), X, y, "bayes")
        vote = (calibration.posterior.predict(X) > 0.5) != y
        assert vote.mean() <= 2 * calibration.certificate().empirical_risk
        mean_forecast = ((y - calibration.posterior.predict(X)) ** 2).mean()
        assert mean_forecast <= calibration.certificate("brier").empirical_risk


def share_that_holds(repetitions):
    """Return how often both bounds and the naive one hold, and the mean bounds."""
    rng = np.random.default_rng(5)
    new = rng.standard_normal((500, 3))
    one = special.expit(new @ [3.0, -2.0, 0.0])
    holds, bounds = [], []
    for seed in range(repetitions):
        calibration = calibrate(
            models.LaplaceLogistic(), *classes(n=300, seed=seed), strategies.KFold(3), seed=seed
        )
        predictor = calibration.posterior.linear_predictor(new)
        certificates = [calibration.certificate(loss) for loss in ("zero-one", "brier")]
        wrong = (
            [zero_one(*predictor, np.full(500, y)) for y in (0.0, 1.0)],
            [brier(losses.Logistic(), *predictor, np.full(500, y)) for y in (0.0, 1.0)],
        )
        true = [float(np.mean((1 - one) * zero + one * first)) for zero, first in wrong]
        holds.append(
            [c.bound >= risk for c, risk in zip(certificates, true, strict=True)]
            + [certificates[0].empirical_risk >= true[0]]
        )
        bounds.append([c.bound for c in certificates])
    return np.mean(holds, axis=0), np.mean(bounds, axis=0)


def check_promise(repetitions):
    (zero, squared, naive), bounds = share_that_holds(repetitions)
    assert min(zero, squared) >= 0.95
    assert naive < 0.8  # the risk on the rows themselves is no bound
    assert bounds[0] < 0.35  # a coin has 0.5
    assert bounds[1] < 0.25  # the probability 1/2 has 0.25


def test_bounds_hold_and_say_something():
    check_promise(100)


@pytest.mark.slow
def test_bounds_hold_in_a_thousand_samples():
    check_promise(1000)


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


def standardised(X, by):
    return np.column_stack([np.ones(len(X)), (X - by.mean(axis=0)) / by.std(axis=0)])


class TestBreastCancer:
    @pytest.mark.parametrize(("strategy", "bound"), [("bayes", 0.096), ("k-fold", 0.103)])
    def test_standardised_by_all_rows(self, cancer, strategy, bound):
        X, y = cancer
        calibration = calibrate(
            models.LaplaceLogistic(), standardised(X, X), y, strategy, risk="gibbs", seed=0
        )
        with pytest.raises(ValueError, match="decided the units of column 1 of X"):
            calibration.certificate()
        found = calibration.certificate(even_if_seen=True)
        assert found.bound == pytest.approx(bound, abs=5e-4)
        assert repr(found).startswith("No certificate, but a number: risk 0.")

    def test_standardised_by_57_other_rows(self, cancer):
        X, y = cancer
        order = np.random.default_rng(0).permutation(len(y))
        other, rows = order[:57], order[57:]
        calibration = calibrate(
            models.LaplaceLogistic(), standardised(X[rows], X[other]), y[rows], "bayes"
        )
        assert calibration.certificate().bound == pytest.approx(0.0976, abs=5e-4)


class TestEstimator:
    def test_rows_set_aside_give_units_and_prior_alone(self, cancer):
        X, y = cancer
        X = X[:, :5]
        options = {"strategy": "bayes", "posterior": "laplace", "certify": 0.1, "keep_data": True}
        fitted = GibbsClassifier(**options).fit(X, y)
        data = fitted.calibration_.data
        assert len(data) == 512
        # Another response or input of a certified row changes neither units nor prior.
        kept = [i for i, row in enumerate(fitted._rows(X)) if (data.X == row).all(axis=1).any()]
        assert len(kept) == 512
        others = np.setdiff1d(np.arange(569), kept)
        np.testing.assert_allclose(fitted.coordinates_.terms.centre, X[others].mean(axis=0))
        changed, flipped = X.copy(), y.copy()
        changed[kept[::2]] *= 3.0
        flipped[kept[::3]] = 1 - flipped[kept[::3]]
        again = GibbsClassifier(**options).fit(changed, flipped)
        np.testing.assert_array_equal(again.coordinates_.terms.unit, fitted.coordinates_.terms.unit)
        one, other = fitted.calibration_.model.prior_cov, again.calibration_.model.prior_cov
        np.testing.assert_array_equal(one, other)
        # The certificate is that of a calibration of these rows.
        by_hand = calibrate(fitted.calibration_.model, data.X, data.y, "bayes").certificate()
        stored = pickle.loads(pickle.dumps(fitted))
        for each in (fitted, stored):
            assert each.certificate().bound == pytest.approx(by_hand.bound, rel=1e-12)

    def test_other_seeds_set_other_rows_aside(self, cancer):
        X, y = cancer
        options = {"strategy": "bayes", "posterior": "laplace", "prior_scale": 1.0}
        bounds = {
            GibbsClassifier(certify=0.1, random_state=seed, **options).fit(X, y).certificate().bound
            for seed in (0, 0, 1, 2)
        }
        assert len(bounds) == 3
        assert max(bounds) < 0.13

    @pytest.mark.parametrize(
        ("options", "what"),
        [
            ({}, "the units of X (standardize) and the scale of the prior (prior_scale)"),
            ({"standardize": False}, "the scale of the prior (prior_scale)"),
            ({"prior_scale": 1.0}, "the units of X (standardize)"),
            (
                {"loss": "probit", "standardize": False, "prior_scale": 1.0},
                "the mean of the prior",
            ),
        ],
    )
    def test_rows_that_decided_the_prior_are_refused(self, options, what):
        X, y = classes()
        fitted = GibbsClassifier(strategy="bayes", posterior="laplace", **options).fit(X, y)
        wanted = (
            "a certificate needs rows that did not decide the prior or the units of X, got rows "
            f"that decided {what}; take these from other rows (GibbsClassifier: certify=0.1), or "
            "pass even_if_seen=True"
        )
        for source in (fitted, fitted.calibration_):
            with pytest.raises(ValueError, match=f"^{re.escape(wanted)}$"):
                source.certificate()
        assert f"not: the rows decided {what}" in repr(fitted.certificate(even_if_seen=True))

    def test_a_prior_that_is_given_needs_no_other_rows(self):
        X, y = classes()
        options = {"strategy": "bayes", "standardize": False, "prior_scale": 1.0}
        fitted = GibbsClassifier(fit_intercept=False, posterior="full", **options).fit(X, y)
        wanted = calibrate(models.FullCovarianceLogistic(), X, y, "bayes").certificate()
        assert fitted.certificate().bound == pytest.approx(wanted.bound, rel=1e-12)

    def test_hinge(self):
        X, y = classes(n=200)
        fitted = GibbsClassifier(loss="hinge", posterior="full", certify=0.2).fit(X, y)
        assert fitted.certificate().bound < 0.45
        with pytest.raises(ValueError, match="^loss must be 'zero-one' for the hinge loss, which"):
            fitted.certificate("brier")

    def test_without_data(self):
        X, y = classes()
        fitted = GibbsClassifier(strategy="bayes", certify=0.3).fit(X, y)
        with pytest.raises(ValueError, match="keep_data=True"):
            pickle.loads(pickle.dumps(fitted)).certificate()
        with pytest.raises(ValueError, match="keep_data=True"):
            StoredChoice(1.0, fitted.calibration_.posterior).certificate()

    @pytest.mark.parametrize(
        ("share", "arguments", "message"),
        [
            (1.5, {}, "certify must lie between 0 and 1, got 1.5"),
            ("some", {}, "certify must be a number, got 'some'"),
            (
                0.01,
                {},
                "certify must leave rows of both classes in either part, got 0.01 with 1 and 59 "
                "rows",
            ),
            (
                0.2,
                {"sample_weight": np.full(60, 2.0)},
                "sample_weight must be 0 or 1 with certify, which counts independent rows: copies "
                "add none, got 2.0",
            ),
            (
                0.2,
                {"groups": np.arange(60) // 2},
                "groups must be None with certify: rows of a group are not independent",
            ),
        ],
    )
    def test_bad_arguments(self, share, arguments, message):
        X, y = classes()
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            GibbsClassifier(certify=share).fit(X, y, **arguments)

    def test_three_classes(self):
        X, y = load_iris(return_X_y=True)
        message = "certify must be None for more than two classes, got 3 classes"
        with pytest.raises(ValueError, match=f"^{message}$"):
            GibbsClassifier(certify=0.1).fit(X, y)
        fitted = GibbsClassifier(strategy="bayes", prior_scale=1.0).fit(X, y)
        with pytest.raises(ValueError, match="two classes, .*, got SoftmaxLogistic$"):
            fitted.certificate()


class TestRefusals:
    def test_other_models(self):
        X, y = classes()
        other = "a certificate needs a Gaussian posterior of two classes, as the logistic models "
        linear = calibrate(models.GaussianLinear(1.0), X, y, "bayes")
        counts = calibrate(models.GibbsLinear(losses.Poisson()), X, y, "bayes")
        regressor = GibbsRegressor(strategy="bayes").fit(X, X[:, 0] + y).calibration_
        for calibration, name in (
            (linear, "GaussianLinear"),
            (counts, "GibbsLinear"),
            (regressor, "HierarchicalLinear"),
        ):
            with pytest.raises(ValueError, match=f"^{other}.*, got {name}$"):
                calibration.certificate()

    def test_weights(self):
        X, y = classes()
        weights = np.ones(60)
        weights[7] = 3.0
        message = (
            "weights must be 1 for a certificate, which counts independent rows: copies add none, "
            "got 3.0"
        )
        calibration = calibrate(models.LaplaceLogistic(), X, y, "bayes", weights=weights)
        with pytest.raises(ValueError, match=f"^{message}$"):
            calibration.certificate()
        weights[7] = 0.0
        left = calibrate(models.LaplaceLogistic(), X, y, "bayes", weights=weights).certificate()
        assert left.n == 59

    @pytest.mark.parametrize("averaged", [False, True])
    def test_groups(self, averaged):
        from sklearn.model_selection import GroupKFold

        X, y = classes()
        strategy = strategies.FromSplitter(GroupKFold(5), groups=np.arange(60) // 3)
        if averaged:
            strategy = strategies.Stacking(strategy)
        calibration = calibrate(models.LaplaceLogistic(), X, y, strategy, risk="predictive")
        with pytest.raises(ValueError, match="^rows must be independent .*, got groups"):
            calibration.certificate()

    def test_blocks(self):
        X, y = classes(n=200)
        calibration = calibrate_blocks(
            models.LaplaceLogistic(), [(X, y)], strategies.KFold(3), folds="blocks"
        )
        with pytest.raises(ValueError, match="^a certificate needs all rows at once"):
            calibration.certificate()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("hinge",), "loss must be one of 'zero-one', 'brier', got 'hinge'"),
            (("brier", 1.0), "confidence must lie between 0 and 1, got 1.0"),
        ],
    )
    def test_arguments(self, arguments, message):
        calibration = calibrate(models.LaplaceLogistic(), *classes(), "bayes")
        with pytest.raises(ValueError, match=f"^{message}$"):
            calibration.certificate(*arguments)

    def test_columns_that_were_standardised(self):
        X, _ = classes(n=40)
        assert standardised_columns(X) == ()
        assert standardised_columns(np.ones((40, 1))) == ()
        design = np.tile([[-1.0], [1.0]], (20, 1))
        assert standardised_columns(design) == ()  # balanced, by nobody's rows
        for ddof in (0, 1):
            scaled = (X - X.mean(axis=0)) / X.std(axis=0, ddof=ddof)
            assert standardised_columns(scaled) != ()


class TestWords:
    def test_all_that_one_wants_to_know(self):
        X, y = classes(n=300)
        calibration = calibrate(models.LaplaceLogistic(), X, y, "bayes")
        found = calibration.certificate()
        assert not found.vacuous
        lines = repr(found).splitlines()
        assert lines[0] == (
            f"Certificate: with 95 % confidence the risk on new rows is at most {found.bound:.4f}"
        )
        assert lines[2] == f"  on rows   {found.empirical_risk:.4f}, on the 300 rows of the fit"
        assert "at most twice as often" in lines[5]
        assert all(len(line) < 100 for line in lines)
        assert "mean forecast is no larger" in repr(calibration.certificate("brier"))

    def test_a_bound_that_says_nothing(self):
        X, y = classes(n=8, seed=2)
        found = calibrate(models.LaplaceLogistic(), X, y, "bayes").certificate(confidence=0.999)
        assert found.vacuous
        assert "  says      nothing: guessing has no larger risk than this" in repr(found)
