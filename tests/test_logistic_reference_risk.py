"""Reference risk of logistic models: evidence, labels, curve and caution."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from temperance import calibrate, expected_risk, models
from temperance.datasets import NoisyLabelSetting
from temperance.models.logistic.system import Rows
from temperance.models.reference import logistic
from temperance.strategies import LogisticReferenceRisk, strategy_named
from temperance.types import Data


def one_column(n=12, seed=0, offset=0.3):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 1))
    y = (rng.random(n) < special.expit(1.5 * Z[:, 0])).astype(float)
    return Rows(Z, np.full(n, offset), y, rng.uniform(0.5, 2.0, (1, n)))


class TestLogisticReference:
    LOG_T = np.array([-4.0, -1.0, 0.0, 2.0])

    def log_evidence(self, rows, log_t):
        def density(u):
            f = rows.offset + rows.Z[:, 0] * u
            loss = rows.weights[0] @ (np.logaddexp(0, f) - rows.y * f)
            return np.exp(-loss) * stats.norm.pdf(u, scale=np.exp(log_t / 2))

        return np.log(integrate.quad(density, -60, 60, limit=400, points=[0.0, 1.0, 3.0])[0])

    def test_jaakkola_is_a_lower_bound_that_is_tight_for_a_narrow_prior(self):
        rows = one_column()
        for log_t, fit in zip(self.LOG_T, logistic._jaakkola(rows, self.LOG_T), strict=True):
            gap = self.log_evidence(rows, log_t) - fit.evidence
            assert 0 <= gap < (0.02 if log_t < -2 else 0.5)

    def test_laplace_is_close_to_the_evidence_and_at_the_mode(self):
        rows = one_column()
        for log_t, fit in zip(self.LOG_T, logistic._laplace(rows, self.LOG_T), strict=True):
            # |S_t|^1/2 / t^1/2 is that of the whitened coordinates, where the prior is N(0, 1).
            assert fit.evidence == pytest.approx(self.log_evidence(rows, log_t), abs=0.1)
            t, u = np.exp(log_t), fit.mean[0]
            s = special.expit(rows.offset + rows.Z[:, 0] * u)
            w = rows.weights[0]
            assert u / t + (w * (s - rows.y)) @ rows.Z[:, 0] == pytest.approx(0, abs=1e-6)
            precision = 1 / t + (w * s * (1 - s)) @ rows.Z[:, 0] ** 2
            assert fit.root[0, 0] ** 2 == pytest.approx(1 / precision, rel=1e-6)

    @pytest.mark.parametrize("d", [3, 20])
    def test_jaakkola_solutions_are_those_of_the_model(self, d):
        rng = np.random.default_rng(1)
        X = rng.standard_normal((12, d))
        y = (rng.random(12) < 0.5).astype(float)
        y[:2] = 0, 1
        rows = Rows(X, np.zeros(12), y, np.ones((1, 12)))
        for log_t, fit in zip(self.LOG_T, logistic._jaakkola(rows, self.LOG_T), strict=True):
            law = models.JaakkolaLogistic(prior_cov=np.exp(log_t)).posterior(X, y, 12.0)
            np.testing.assert_allclose(fit.mean, law.mean, rtol=1e-5, atol=1e-8)
            np.testing.assert_allclose(fit.root @ fit.root.T, law.cov, rtol=1e-5, atol=1e-8)

    @pytest.mark.parametrize("evidence", ["jaakkola", "laplace"])
    def test_probabilities_are_means_over_draws(self, evidence):
        rows, rng = one_column(), np.random.default_rng(0)
        z, offset = np.array([[0.5], [-2.0]]), np.array([0.3, 0.1])
        found = logistic.label_probability(rows, z, offset, evidence, 1.5)
        log_t = 1.5 * logistic.NODES
        fits = getattr(logistic, f"_{evidence}")(rows, log_t)
        weight = np.exp([fit.evidence for fit in fits]) * stats.norm.pdf(logistic.NODES)
        drawn = rng.choice(len(fits), size=100_000, p=weight / weight.sum())
        mean, sd = (np.array([part[0] for part in parts]).ravel() for parts in (
            [fit.mean for fit in fits], [fit.root[0] for fit in fits]))  # fmt: skip
        u = mean[drawn] + sd[drawn] * rng.standard_normal(100_000)
        p = special.expit(offset + u[:, None] * z[:, 0])
        assert np.all(np.abs(p.mean(axis=0) - found) < 4 * p.std(axis=0) / np.sqrt(len(p)))

    def test_fresh_inputs_have_the_moments_of_the_rows(self):
        rng = np.random.default_rng(0)
        Z = np.column_stack([np.ones(500), 2 + rng.standard_normal((500, 2)) @ [[1, 1], [0, 1]]])
        fresh = logistic.fresh_inputs(Z, np.ones(500))
        np.testing.assert_allclose(fresh.mean(axis=0), Z.mean(axis=0), atol=1e-10)
        np.testing.assert_allclose(np.cov(fresh.T), np.cov(Z.T), atol=0.15)
        np.testing.assert_allclose(fresh[:, 0], 1)

    @pytest.mark.parametrize("risk", ["gibbs", "predictive"])
    def test_the_curve_is_the_loss_of_labels_that_the_reference_expects(self, risk):
        rng = np.random.default_rng(0)
        X = np.column_stack([np.ones(20), rng.standard_normal((20, 2))])
        y = (rng.random(20) < special.expit(X @ [0.5, 1.0, -1.0])).astype(float)
        data, model = Data(X, y, np.ones(20)), models.LaplaceLogistic(0.1, 2.0)
        rule = LogisticReferenceRisk(spread=2.0)
        curve = rule.reference(model, data, data.weights, risk)
        fresh = logistic.fresh_inputs(X, data.weights)
        root = np.sqrt(2.0)
        seen = Rows(root * X, X @ np.full(3, 0.1), y, np.ones((1, 20)))
        p = logistic.label_probability(seen, root * fresh, fresh @ np.full(3, 0.1), "laplace", 2.0)
        both = np.concatenate([fresh, fresh]), np.repeat([1.0, 0.0], len(p)), np.r_[p, 1 - p]
        beta = np.array([0.3, 1.7])
        expected = expected_risk(model, (X, y), both, 20 * beta, risk=risk)
        np.testing.assert_allclose(curve(beta), expected, rtol=1e-8)

    def test_caution_stays_between_bayes_and_the_minimum(self):
        setting = NoisyLabelSetting(50, 30, "laplace")
        X, y = setting.draw(np.random.default_rng(0))
        data, rng = Data(X, y, np.ones(50)), np.random.default_rng(0)
        bold, careful = (
            LogisticReferenceRisk(spread=2.0, caution=share).select(
                setting.model, data, (0.0, 3.0), rng
            )
            for share in (0.0, 0.3)
        )
        assert min(1, bold.beta) < careful.beta < max(1, bold.beta)
        gain = bold.bayes_risk - bold.risk
        assert careful.gain == pytest.approx(0.7 * gain, rel=0.02)
        assert "inside the bounds" in bold.where
        assert careful.where == f"at beta = {bold.beta:.4g}; the strategy keeps away from it"

    def test_other_models_are_refused(self):
        data = Data(np.ones((3, 1)), np.arange(3.0), np.ones(3))
        with pytest.raises(
            ValueError, match="model must be logistic for LogisticReferenceRisk, got GaussianLinear"
        ):
            LogisticReferenceRisk().reference(models.GaussianLinear(), data, np.ones(3), "gibbs")

    def test_with_a_veto_leave_one_out_keeps_its_own_minimum(self):
        setting = NoisyLabelSetting(15, 5, "laplace")
        X, y = setting.draw(np.random.default_rng(7))
        left_out = calibrate(setting.model, X, y, "leave-one-out").beta
        assert 0.1 < left_out < 2.9
        for share in (0.3, 0.0):
            rule = LogisticReferenceRisk(veto=1e-6, caution=share)
            assert calibrate(setting.model, X, y, rule).beta == pytest.approx(left_out, rel=1e-3)

    @pytest.mark.parametrize(
        "options, message",
        [
            ({"evidence": "exact"}, "evidence must be one of"),
            ({"spread": 0.0}, "spread must be"),
            ({"caution": 1.0}, "caution must be at least 0 and below 1, got 1.0"),
            ({"caution": -0.1}, "caution must be at least 0 and below 1, got -0.1"),
        ],
    )
    def test_options(self, options, message):
        with pytest.raises(ValueError, match=message):
            LogisticReferenceRisk(**options)

    def test_its_name_stands_for_it(self):
        assert strategy_named("logistic-reference-risk") == LogisticReferenceRisk()
