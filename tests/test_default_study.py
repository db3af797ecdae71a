"""The settings, the tables and the command of the study of the default strategy."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, special, stats

from temperance import expected_risk, models
from temperance.datasets import (
    BinaryRows,
    GaussianNoise,
    GaussianRows,
    HeavyRows,
    NoisyLabelSetting,
    StressSetting,
    StudentNoise,
    true_risk,
)
from temperance.models.logistic.system import Rows
from temperance.models.reference import logistic
from temperance.strategies import Bayes, ReferenceRisk
from temperance.study import default_page, default_settings, default_tables
from temperance.study.logistic_reference import LogisticReferenceRisk
from temperance.types import Data

REGRESSIONS = {
    name: setting
    for group in default_settings.REGRESSIONS.values()
    for name, setting in group().items()
}
CLASSIFICATIONS = default_settings.classifications()


class TestSettings:
    def test_there_are_as_many_as_the_page_says(self):
        sizes = {name: len(group()) for name, group in default_settings.REGRESSIONS.items()}
        assert sizes == {"thesis": 19, "other": 15, "stress": 12, "copies": 3}
        assert len(REGRESSIONS) == 49 and len(CLASSIFICATIONS) == 12

    @pytest.mark.parametrize(
        "name", [name for group in ("other", "stress", "copies")
                 for name in default_settings.REGRESSIONS[group]()]
    )  # fmt: skip
    def test_population_rows_give_the_risk_of_fresh_data(self, name):
        setting = REGRESSIONS[name]
        rng = np.random.default_rng(len(name))
        X, y = setting.draw(rng)
        alpha = np.array([0.3, 3.0]) * len(y)
        exact = expected_risk(setting.model, (X, y), setting.population, alpha)
        fresh = np.array(
            [expected_risk(setting.model, (X, y), setting.draw(rng), alpha) for _ in range(200)]
        )
        error = fresh.std(axis=0, ddof=1) / np.sqrt(len(fresh))
        assert np.all(np.abs(fresh.mean(axis=0) - exact) < 4 * error)

    @pytest.mark.parametrize("inputs", [GaussianRows(0.5, 0.7), HeavyRows(6.0), BinaryRows()])
    def test_second_moments_are_those_of_the_rows(self, inputs):
        Z = inputs.draw(np.random.default_rng(0), 100_000, 4)
        products = np.einsum("ni,nj->nij", Z, Z)
        error = products.std(axis=0) / np.sqrt(len(Z))
        assert np.all(np.abs(products.mean(axis=0) - inputs.second_moment(4)) <= 4 * error + 1e-12)

    def test_heavy_tails_have_their_variance(self):
        drawn = StudentNoise(6.0, 9.0).draw(np.random.default_rng(0), 200_000)
        assert drawn.var() == pytest.approx(6.0, rel=0.03)
        assert stats.kurtosis(drawn) > 0.6

    def test_copies_are_copies(self):
        X, y = StressSetting("c", 9, 3, GaussianNoise(1.0), copies=3).draw(np.random.default_rng(0))
        assert X.shape == (9, 3) and len(np.unique(y)) == 3

    def test_a_bend_needs_inputs_whose_moments_are_known(self):
        with pytest.raises(ValueError, match=r"inputs must be GaussianRows\(\) with a bend"):
            StressSetting("b", 9, 3, GaussianNoise(1.0), inputs=BinaryRows(), bend=1.0)

    def test_risk_of_noisy_labels(self):
        clean = NoisyLabelSetting(60, 4, "laplace", scale=1.0, size=3.0)
        setting, many = (
            NoisyLabelSetting(n, 4, "laplace", scale=1.0, size=3.0, noise=0.4) for n in (60, 20_000)
        )
        rng = np.random.default_rng(0)
        X, y = clean.draw(rng)
        posterior = setting.model.posterior(X, y, 60.0)
        Z, labels = many.draw(rng)
        losses = setting.model.loss(posterior.sample(400, 1), Z, labels)
        loss, spread = losses.mean(axis=0), losses.mean(axis=1).std()
        exact = true_risk(setting, X, y, 60.0)
        error = np.hypot(loss.std() / np.sqrt(len(loss)), spread / np.sqrt(400))
        assert abs(loss.mean() - exact) < 4 * error
        assert abs(true_risk(clean, X, y, 60.0) - exact) > 8 * error
        rows = expected_risk(setting.model, (X, y), setting.population, 60.0)
        assert rows == pytest.approx(exact, rel=0.02)


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
        rule = LogisticReferenceRisk(evidence="laplace")
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
        setting = CLASSIFICATIONS["logistic 50 x 30, laplace, scale 0.5, size 1, noise 0"]
        X, y = setting.draw(np.random.default_rng(0))
        data, rng = Data(X, y, np.ones(50)), np.random.default_rng(0)
        bold, careful = (
            LogisticReferenceRisk(evidence="laplace", caution=share).select(
                setting.model, data, (0.0, 3.0), rng
            )
            for share in (0.0, 0.3)
        )
        assert min(1, bold.beta) < careful.beta < max(1, bold.beta)
        gain = bold.bayes_risk - bold.risk
        assert careful.gain == pytest.approx(0.7 * gain, rel=0.02)

    def test_other_models_are_refused(self):
        data = Data(np.ones((3, 1)), np.arange(3.0), np.ones(3))
        with pytest.raises(ValueError, match="model must be logistic, got GaussianLinear"):
            LogisticReferenceRisk().reference(models.GaussianLinear(), data, np.ones(3), "gibbs")


def lines(ratios, worse=False, strategy="reference risk", model="GaussianLinear"):
    return pd.DataFrame(
        {
            "group": "thesis",
            "setting": [f"s{i}" for i in range(len(ratios))],
            "model": model,
            "strategy": strategy,
            "ratio": ratios,
            "better": False,
            "worse": worse,
            "seconds": 0.002,
        }
    )


class TestTables:
    @pytest.mark.parametrize(
        "ratios, worse, passed",
        [
            ([0.1, 0.2], False, True),
            ([0.1, 0.2], True, False),
            ([0.2, 0.2], False, False),
            ([0.001, 1.6], False, False),
            ([0.001, 1.4], False, True),
        ],
    )
    def test_who_may_be_the_default(self, ratios, worse, passed):
        assert default_tables.fit_for_default(lines(ratios, worse)) is passed

    def test_families_are_judged_apart(self):
        both = pd.concat([lines([0.1]), lines([0.4], model="NormalInverseGammaLinear")])
        known, unknown = default_tables.families(both).splitlines()[2:]
        assert known == "| reference risk | known variance | 1 | 0.10 | 0.10 | 0 | 0 | yes |"
        assert unknown == "| reference risk | unknown variance | 1 | 0.40 | 0.40 | 0 | 0 | no |"


def test_the_command_writes_its_files_and_goes_on(tmp_path, monkeypatch, capsys):
    few = {
        "thesis": lambda: dict(list(default_settings.thesis_regressions().items())[:2]),
        "other": lambda: dict(list(default_settings.other_regressions().items())[-1:]),
        "stress": lambda: dict(list(default_settings.stress_regressions().items())[:1]),
        "copies": lambda: dict(list(default_settings.copied_regressions().items())[:1]),
    }
    monkeypatch.setattr(default_settings, "REGRESSIONS", few)
    words = ["--jobs", "1", "--out", str(tmp_path), "--parts", "regressions", "--repeats"]
    default_page.main([*words, "2"])
    assert "| reference risk |" in capsys.readouterr().out
    assert {file.name for file in tmp_path.iterdir()} >= {
        "default-regressions.csv",
        "default-regressions.sqlite",
    }
    first = pd.read_csv(tmp_path / "default-regressions.csv")
    assert set(first["repeats"]) == {2} and set(first["strategy"]) == set(default_page.STRATEGIES)
    names = (
        "regressions",
        "strategies",
        "families",
        "thesis settings",
        "other settings",
        "stress settings",
    )
    page = "".join(f"<!-- table: {name} -->\nstale\n<!-- end -->\n" for name in (*names, "copies"))
    (tmp_path / "how-to-choose.md").write_text(page)
    default_page.main([*words, "3"])
    assert "stale" not in (tmp_path / "how-to-choose.md").read_text()
    assert set(pd.read_csv(tmp_path / "default-regressions.csv")["repeats"]) == {3}


def test_the_command_refuses_too_few_repeats(capsys):
    with pytest.raises(SystemExit):
        default_page.main(["--repeats", "1"])
    assert "must be at least 2" in capsys.readouterr().err


def test_the_classifications_have_tables():
    names = list(default_page.LOGISTIC_STRATEGIES)
    parts = [lines([0.5, 0.2], strategy=name) for name in names]
    summary = pd.concat(parts).assign(median_best_beta=1.0, mean_excess=0.1, repeats=7)
    found = default_tables.classification_tables(summary)
    assert found["classified"] == "2 settings, 7 data sets of each:"
    assert "| reference, Jaakkola | 0.32 | 0.50 | 0 | 0 | 2.0 |" in found["classifications"]
    assert found["classification settings"].splitlines()[2].startswith("| s0 | 1.00 | 0.1 | 0.50 |")


def test_real_data_has_a_table():
    from temperance.study.real_data import Case, splits
    from temperance.study.real_data_summary import by_case

    rules = {"bayes": Bayes(), "reference risk": ReferenceRisk()}
    table = splits([Case("diabetes", 60, "unknown variance")], rules, 2, n_jobs=1)
    found = default_tables.real_tables(by_case(table))["real data"].splitlines()
    assert found[0].endswith("| Gibbs risk: reference risk | log score: reference risk |")
    assert found[2].startswith("| unknown variance | diabetes, 60 rows |")
