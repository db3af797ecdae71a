"""Studies of coverage: what they record, their store, and the settings' parameters."""

import numpy as np
import pytest
from scipy import stats

from temperance import calibrate
from temperance.data import Data
from temperance.strategies import Bayes, Coverage, Sandwich
from temperance_studies.settings import (
    COVERAGE,
    GaussianNoise,
    LinearSetting,
    LinkCoverage,
    parameter_of,
)
from temperance_studies.study import (
    Ledger,
    SandwichCovariance,
    by_setting,
    compare,
    coverage_by_setting,
    remaining,
)
from temperance_studies.study.identity import digest, generator

pd = pytest.importorskip("pandas")
pytest.importorskip("joblib")

LINEAR = ("mean", "right", "heteroscedastic", "t3", "omitted-square", "clusters")
RULES = {"bayes": Bayes(), "sandwich": Sandwich(), "covariance": SandwichCovariance()}


def run(store=None, settings=None, strategies=RULES, repeats=3, **options):
    chosen = [COVERAGE["mean"](30), COVERAGE["clusters"](48)] if settings is None else settings
    options = {"measure": "coverage", "bounds": (0.0, 100.0), "n_jobs": 1, **options}
    return compare(chosen, strategies, repeats, store=store, **options)


class TestNumbers:
    def test_are_those_of_the_credible_sets(self):
        """A naive computation from means and covariances, with the groups of the setting."""
        setting = COVERAGE["clusters"](48)
        table = run(settings=[setting]).set_index(["repetition", "strategy"])
        identity, theta = digest(setting), setting.parameter
        for r in range(3):
            X, y = setting.draw(generator(0, r, identity))
            for name, rule in RULES.items():
                given = rule if name == "bayes" else Sandwich(groups=setting.groups)
                choice = calibrate(setting.model, X, y, given, bounds=(0, 100))
                found = choice.sandwich() if name == "covariance" else choice.posterior
                A = found.root.matrix if hasattr(found.root, "matrix") else found.root.outer
                S = np.diag(A**2) if A.ndim == 1 else A @ A.T
                freedom, factor = np.inf, 1.0
                if name != "covariance":
                    freedom, factor = 2 * found.a, found.b / found.a
                deviation = theta - found.mean
                d = deviation @ np.linalg.solve(factor * S, deviation) / 4
                law = stats.f(4, freedom) if np.isfinite(freedom) else stats.chi2(4, scale=0.25)
                half = stats.t.ppf(0.975, freedom) * np.sqrt(factor * np.diag(S))
                row = table.loc[r, name]
                assert row["joint"] == (law.cdf(d) <= 0.95)
                assert row["covered"] == "".join("01"[int(x)] for x in np.abs(deviation) <= half)
                assert row["single"] == np.mean(np.abs(deviation) <= half)
                assert row["length"] == pytest.approx(2 * half.mean(), rel=1e-9)

    def test_settings_of_risk_have_the_minimiser_on_their_population(self):
        setting = LinearSetting(30, 3, GaussianNoise(4.0), variance=1.0)
        assert parameter_of(setting) == pytest.approx(setting.theta, abs=1e-9)
        assert len(run(settings=[setting], repeats=2)) == 6

    def test_wrong_variance_is_seen(self):
        """Negative control: Bayes at half the noise's deviation covers in 67 % of the data sets."""
        rules = {"bayes": Bayes(), "coverage": Coverage(), "sandwich": Sandwich()}
        lines = coverage_by_setting(run(None, [COVERAGE["mean"](50)], rules, 100))
        joint = lines.set_index("strategy")["joint"]
        assert abs(joint["bayes"] - 0.67) < 4 * np.sqrt(0.67 * 0.33 / 100)
        assert abs(joint["coverage"] - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 100)
        assert abs(joint["sandwich"] - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 100)


class TestStore:
    def test_is_resumed_and_read(self, tmp_path):
        store = tmp_path / "coverage.sqlite"
        few = run(store, repeats=2)
        again = run(store, repeats=2)
        pd.testing.assert_frame_equal(few, again)  # seconds too: nothing was computed
        options = {"measure": "coverage", "bounds": (0.0, 100.0), "store": store}
        settings = [COVERAGE["mean"](30), COVERAGE["clusters"](48)]
        assert remaining(settings, RULES, 3, **options) == 2
        more = run(store, repeats=3)
        plain = run(repeats=3)
        pd.testing.assert_frame_equal(more.drop(columns="seconds"), plain.drop(columns="seconds"))
        with Ledger(store) as ledger:
            assert len(ledger.table()) == len(more)
            assert ledger.table()["covered"].iloc[-1] == more["covered"].iloc[-1]

    def test_studies_of_risk_are_not_mixed_with_it(self, tmp_path):
        setting = LinearSetting(12, 3, GaussianNoise(1.0), variance=1.0)
        store, other = tmp_path / "coverage.sqlite", tmp_path / "risk.sqlite"
        run(store, [setting], {"bayes": Bayes()}, 1)
        run(other, [setting], {"bayes": Bayes()}, 1, measure="risk")
        for path, measure in ((store, "risk"), (other, "coverage")):
            with pytest.raises(ValueError, match=r"must be of 'temperance study.*', got"):
                run(path, [setting], {"bayes": Bayes()}, 1, measure=measure)
        with Ledger(other) as ledger:
            assert "excess" in ledger.table().columns
            # Studies of risk are described as they were before there was another measure.
            assert "measure" not in ledger.description


class TestRefusals:
    def test_name_what_is_missing(self):
        with pytest.raises(ValueError, match="measure must be one of 'risk', 'coverage', got"):
            run(measure="width")
        with pytest.raises(ValueError, match="settings must have a population for measure='risk'"):
            run(measure="risk")

    def test_summaries_are_for_their_own_tables(self):
        table = run(settings=[COVERAGE["mean"](30)])
        with pytest.raises(ValueError, match=r"table must come from compare.*measure='risk'"):
            by_setting(table)
        with pytest.raises(ValueError, match=r"table must come from compare.*measure='coverage'"):
            coverage_by_setting(table.drop(columns="covered"))


class TestSettings:
    @pytest.mark.parametrize("name", COVERAGE)
    def test_parameter_is_the_minimiser_on_many_rows(self, name):
        """And is not that of a true parameter without the model's faults."""
        setting = COVERAGE[name](40_000)
        X, y = setting.draw(np.random.default_rng(0))
        rows = np.empty((len(y), 0)) if X is None else X
        found = setting.model.information(Data(rows, y, np.ones(len(y)))).minimiser
        assert found == pytest.approx(parameter_of(setting), abs=0.06)

    def test_the_wrong_link_has_another_parameter(self):
        setting = LinkCoverage(50)
        assert parameter_of(setting)[1] == pytest.approx(1.145, abs=2e-3)
        assert setting.coefficients[1] == 0.8

    def test_groups_share_their_first_input(self):
        setting = COVERAGE["clusters"](80)
        Z, _ = setting.draw(np.random.default_rng(0))
        assert (np.bincount(setting.groups) == 4).all()
        assert len(np.unique(Z[:, 1])) == 20
        assert len(np.unique(Z[:, 2])) == 80
