"""The settings, the tables and the command of the study of the default strategy."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from temperance import expected_risk
from temperance.strategies import Bayes, ReferenceRisk
from temperance_studies.settings import GaussianNoise, StudentNoise, true_risk
from temperance_studies.thesis.defaults import page as default_page
from temperance_studies.thesis.defaults import settings as default_settings
from temperance_studies.thesis.defaults import tables as default_tables
from temperance_studies.thesis.inputs import BinaryRows, GaussianRows, HeavyRows
from temperance_studies.thesis.noisy_labels import NoisyLabelSetting
from temperance_studies.thesis.stress import StressSetting

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
    @pytest.mark.slow
    def test_population_rows_give_the_risk_of_fresh_data(self, name):
        setting = REGRESSIONS[name]
        rng = np.random.default_rng(len(name))
        X, y = setting.draw(rng)
        alpha = np.array([0.3, 3.0]) * len(y)
        exact = expected_risk(setting.model, (X, y), setting.population, alpha, risk="gibbs")
        fresh = np.array(
            [
                expected_risk(setting.model, (X, y), setting.draw(rng), alpha, risk="gibbs")
                for _ in range(200)
            ]
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
        rows = expected_risk(setting.model, (X, y), setting.population, 60.0, risk="gibbs")
        assert rows == pytest.approx(exact, rel=0.02)


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


@pytest.mark.slow
def test_the_command_writes_its_files_and_goes_on(tmp_path, monkeypatch, capsys):
    few = {
        "thesis": lambda: dict(list(default_settings.thesis_regressions().items())[:2]),
        "other": lambda: dict(list(default_settings.other_regressions().items())[-1:]),
        "stress": lambda: dict(list(default_settings.stress_regressions().items())[:1]),
        "copies": lambda: dict(list(default_settings.copied_regressions().items())[:1]),
    }
    part = default_page.SIMULATIONS["regressions"]._replace(groups=few)
    monkeypatch.setitem(default_page.SIMULATIONS, "regressions", part)
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
    (tmp_path / "evidence-defaults.md").write_text(page)
    default_page.main([*words, "3"])
    assert "stale" not in (tmp_path / "evidence-defaults.md").read_text()
    assert set(pd.read_csv(tmp_path / "default-regressions.csv")["repeats"]) == {3}


@pytest.mark.parametrize("name", ["predictive", "forecasts", "classifications"])
def test_every_part_has_its_page(name, tmp_path, monkeypatch, capsys):
    part = default_page.SIMULATIONS[name]
    groups = {
        label: lambda group=group: dict(list(group().items())[:1])
        for label, group in part.groups.items()
    }
    few = dict(list(part.strategies.items())[:3])
    monkeypatch.setitem(
        default_page.SIMULATIONS, name, part._replace(groups=groups, strategies=few)
    )
    words = ["--jobs", "1", "--out", str(tmp_path), "--parts", name, "--repeats", "2"]
    default_page.main(words)
    shown = capsys.readouterr().out
    assert all(f" {strategy} |" in shown for strategy in list(few)[1:])
    page = Path(__file__).resolve().parents[2] / "docs" / part.page
    for heading in part.tables(pd.read_csv(tmp_path / f"default-{name}.csv")):
        assert f"<!-- table: {heading} -->" in page.read_text(encoding="utf-8")


def test_the_command_refuses_too_few_repeats(capsys):
    with pytest.raises(SystemExit):
        default_page.main(["--repeats", "1"])
    assert "must be at least 2" in capsys.readouterr().err


def test_the_classifications_have_tables():
    names = list(default_page.LOGISTIC_STRATEGIES)
    parts = [lines([0.5, 0.2], strategy=name) for name in names]
    summary = pd.concat(parts).assign(median_best_beta=1.0, mean_excess=0.1, repeats=7)
    found = default_tables.classification_tables(summary)
    assert found["classifications measured"] == "2 settings, 7 data sets of each:"
    assert "| 10-fold, beta | 0.32 | 0.50 | 0 | 0 | 2.0 |" in found["classifications"]
    assert found["classification settings"].splitlines()[2].startswith("| s0 | 1.00 | 0.1 | 0.50 |")


def test_real_data_has_a_table():
    from temperance_studies.thesis.real_data.splits import Case, splits
    from temperance_studies.thesis.real_data.summary import by_case

    rules = {"bayes": Bayes(), "reference risk": ReferenceRisk()}
    table = splits([Case("diabetes", 60, "unknown variance")], rules, 2, n_jobs=1)
    found = default_tables.real_tables(by_case(table))["real data"].splitlines()
    assert found[0].endswith("| Gibbs risk: reference risk | log score: reference risk |")
    assert found[2].startswith("| unknown variance | diabetes, 60 rows |")
