"""The thesis' figures: tables against naive computations, pictures from tables alone."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from functools import cache

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Annotation
from scipy.stats import norm

from temperance import calibrate, expected_risk, models
from temperance.strategies import Bootstrap, Naive
from temperance_studies.settings import (
    VERSIONS,
    GaussianNoise,
    LinearSetting,
    LogisticSetting,
    best_beta,
)
from temperance_studies.study import compare
from temperance_studies.thesis import figures
from temperance_studies.thesis.constant import without_constant
from temperance_studies.thesis.figures import FIGURES, save, variational_curves
from temperance_studies.thesis.figures import covariance_rule as covariance
from temperance_studies.thesis.figures import performance as numbers
from temperance_studies.thesis.figures.figure import rendered
from temperance_studies.thesis.figures.style import STRATEGIES
from temperance_studies.thesis.settings import thesis_settings
from temperance_studies.thesis.verdicts import variational as verdicts_variational

# In the order of the thesis' settings.
LABELS = [
    "joyplot_linreg1",
    "overfit_example",
    "polyreg_intro",
    "polyreg_plots",
    "boxplots_example",
    "linreg1_boxplot",
    "linreg1_additional_plots1",
    "linreg1_additional_plots2",
    "linreg1_additional_plots3",
    "linreg1_additional_plots4",
    "gaussian_plots",
    "linreg2_all_graphs",
    "SVI_vs_EM",
    "logreg_boxplots",
    "alpha100",
    "table-backbone",
]
ONE_VERSION = {"joyplot_linreg1", "alpha100", "table-backbone"}
# The others share their settings, and logistic regression takes long.
TWO_VERSIONS = [
    "overfit_example",
    "polyreg_plots",
    "boxplots_example",
    "linreg1_additional_plots4",
    "gaussian_plots",
    "linreg2_all_graphs",
    "SVI_vs_EM",
]
PANELS = {
    "boxplots_example": ["linear-40-40-8"],
    "linreg1_boxplot": ["linear-40-40-8"],
    "linreg2_all_graphs": ["unknown-gaussian", "unknown-mixture", "unknown-uniform"],
    "logreg_boxplots": ["logistic-jaakkola", "logistic-mean-field"],
}
CHEAP = ["joyplot_linreg1", "overfit_example", "polyreg_intro", "gaussian_plots", "alpha100"]


class Quick:
    """A comparison with few draws, which remembers what it has computed."""

    def __init__(self):
        self.known = {}

    def __call__(self, settings, strategies, repeats, seed):
        cheap = dict(strategies)
        cheap["bootstrap"] = Bootstrap(n_draws=5)
        if "covariance" in cheap:
            # Logistic posteriors are slow; what is told apart here are names, not strategies.
            repeats, cheap = 1, dict.fromkeys(cheap, Naive())
            cheap["covariance"] = lambda setting: covariance.CovarianceRule(setting, draws=20)
        key = (repr(settings), tuple(cheap), repeats, seed)
        if key not in self.known:
            self.known[key] = compare(settings, cheap, repeats, seed, n_jobs=1, progress=False)
        return self.known[key]


QUICK = Quick()


@pytest.fixture(autouse=True)
def coarse_curves(monkeypatch):
    monkeypatch.setattr(variational_curves, "BETAS", np.linspace(0.0, 3.0, 7))


@cache
def computed(label, version="as-stated"):
    return FIGURES[label].compute(repeats=2, seed=3, version=version, compare=QUICK)


def test_every_figure_of_the_thesis_has_its_label():
    assert list(FIGURES) == LABELS
    for label, figure in FIGURES.items():
        assert figure.label == label
        assert figure.title and "\n" not in figure.title


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.slow
def test_tables_come_first_and_pictures_need_nothing_else(label, tmp_path):
    figure, table = FIGURES[label], computed(label)
    before = dict(matplotlib.rcParams)
    assert tuple(table.columns) == figure.columns
    assert len(table)
    written = save(figure, table, tmp_path / "new")
    stem = label if label in ONE_VERSION else f"{label}-as-stated"
    assert [path.name for path in written] == [f"{stem}.{end}" for end in ("csv", "png", "svg")]
    assert sorted((tmp_path / "new").iterdir()) == written
    assert written[1].read_bytes().startswith(b"\x89PNG")
    self_contained(written[2].read_bytes())
    again = figure.plot(pd.read_csv(written[0]))
    assert rendered(again, "png") == written[1].read_bytes()
    assert dict(matplotlib.rcParams) == before


def self_contained(svg):
    assert b"<!DOCTYPE" not in svg
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    for element in root.iter():
        for name, value in element.attrib.items():
            if name.endswith("href"):
                assert value.startswith("#")
            assert "url(" not in value or "url(#" in value
            assert "://" not in value


@pytest.mark.parametrize("label", LABELS)
def test_figures_know_what_they_will_compare(label):
    asked = []

    def compare(settings, strategies, repeats, seed):
        asked.extend((name, setting, *strategies) for name, setting in settings.items())
        return QUICK(settings, strategies, repeats=2, seed=3)

    figure = FIGURES[label]
    figure.table(2, 3, "as-stated", compare)
    assert asked == [(c.name, c.setting, *c.strategies) for c in figure.comparisons(3)]
    assert bool(asked) == (label not in {*ONE_VERSION, "overfit_example", "SVI_vs_EM"})
    coded = figure.comparisons(3, "as-coded")
    assert [c.setting for c in coded] == [
        thesis_settings("as-coded" if len(figure.versions) == 2 else "as-stated", 3)[c.name]
        for c in coded
    ]


@pytest.mark.parametrize("label", [*TWO_VERSIONS])
def test_versions_differ_where_the_settings_do(label):
    assert FIGURES[label].versions == VERSIONS
    stated, coded = (computed(label, version) for version in VERSIONS)
    assert set(stated.version) == {"as-stated"} and set(coded.version) == {"as-coded"}
    assert not np.allclose(stated.risk, coded.risk, equal_nan=True)
    if label == "linreg2_all_graphs":
        same = [t[t.setting == "unknown-uniform"].drop(columns="version") for t in (stated, coded)]
        pd.testing.assert_frame_equal(*same)
    for version, table in zip(VERSIONS, (stated, coded), strict=True):
        notes = [artist.get_text() for artist in FIGURES[label].plot(table).findobj(Annotation)]
        assert any(note.startswith(version.replace("-", " ")) for note in notes), notes


@pytest.mark.parametrize("label", ["joyplot_linreg1", "alpha100"])
def test_versions_are_the_same_elsewhere(label):
    assert {each for each in LABELS if len(FIGURES[each].versions) == 1} == ONE_VERSION
    pd.testing.assert_frame_equal(computed(label), computed(label, "as-coded"))


@pytest.mark.parametrize("label", CHEAP)
def test_the_same_seed_gives_the_same_table(label):
    again = FIGURES[label].compute(repeats=2, seed=3, compare=Quick())
    pd.testing.assert_frame_equal(again, computed(label))
    other = FIGURES[label].compute(repeats=2, seed=4, compare=Quick())
    assert not other.equals(again)


def test_the_same_table_gives_the_same_files():
    figure = FIGURES["overfit_example"]
    table = computed("overfit_example")
    first, second = (rendered(figure.plot(table), "svg") for _ in range(2))
    assert first == second


def test_colours_and_markers_belong_to_one_strategy_each():
    looks = list(STRATEGIES.values())
    assert len({look.colour for look in looks}) == len(looks)
    assert len({look.marker for look in looks}) == len(looks)


@pytest.mark.parametrize("label", [*PANELS])
def test_strategies_look_the_same_everywhere(label):
    rows = [
        ("as-stated", "risk", setting, strategy, repetition, 1.0, 2.0 + repetition)
        for setting in PANELS[label]
        for strategy in reversed(STRATEGIES)  # order and look are the figure's own
        for repetition in range(3)
    ]
    rows += [("as-stated", "least", setting, None, None, None, 1.0) for setting in PANELS[label]]
    picture = FIGURES[label].plot(pd.DataFrame(rows, columns=FIGURES[label].columns))
    assert len(picture.axes) == len(PANELS[label])
    for ax in picture.axes:
        edges = [to_hex(box.get_edgecolor()) for box in ax.patches]
        assert edges == [look.colour.lower() for look in STRATEGIES.values()]
        markers = [line.get_marker() for line in ax.lines if line.get_markersize() > 5]
        markers = [marker for marker in markers if marker not in ("None", "")]
        assert markers == [look.marker for look in STRATEGIES.values()]
    names = [text.get_text() for text in picture.axes[0].get_yticklabels()]
    assert names == [look.name for look in STRATEGIES.values()]


@pytest.mark.parametrize("least, lines", [(1.0, 1), (-100.0, 0)])
def test_a_distant_minimal_error_is_named_but_not_drawn(least, lines):
    rows = [("as-stated", "risk", "linear-40-40-8", "bayes", i, 1.0, 2.0 + i) for i in range(3)]
    rows.append(("as-stated", "least", "linear-40-40-8", None, None, None, least))
    figure = FIGURES["linreg1_boxplot"]
    (ax,) = figure.plot(pd.DataFrame(rows, columns=figure.columns)).axes
    upright = [line for line in ax.lines if list(line.get_xdata()) == [least, least]]
    assert len(upright) == lines
    assert len(ax.texts) == 1 - lines
    assert lines or ax.get_xlim()[0] > 1


def test_ridges_are_the_densities_of_the_conjugate_posterior():
    table = computed("joyplot_linreg1")
    mle = float(table.theta[table.part == "mle"].iloc[0])
    ridges = table[table.part == "density"]
    assert ridges.beta.nunique() == 21 and ridges.beta.max() == 4
    precision = 1 + ridges.beta * 50 / 10.0
    mean = ridges.beta * 50 / 10.0 * mle / precision
    np.testing.assert_allclose(ridges.density, norm.pdf(ridges.theta, mean, precision**-0.5))


@pytest.mark.parametrize("version, noise", [("as-stated", 8.0), ("as-coded", 64.0)])
def test_overfitting_curves_are_those_of_plain_algebra(version, noise):
    table = computed("overfit_example", version)
    setting = thesis_settings(version, 3)["linear-40-40-8"]
    Z, y = numbers.data_set(setting, 1, 3)
    curve = table[table.repetition == 1].set_index(["part", "beta"]).risk
    for beta in numbers.BETAS[::30]:
        S = np.linalg.inv(np.eye(40) + beta / 8 * Z.T @ Z)
        m = S @ Z.T @ y * beta / 8
        true = (noise + np.sum((m - setting.theta) ** 2) + np.trace(S)) / 16
        seen = (np.mean((y - Z @ m) ** 2) + np.trace(Z @ S @ Z.T) / 40) / 16
        assert curve["generalisation", beta] == pytest.approx(true, rel=1e-9)
        assert curve["empirical", beta] == pytest.approx(seen, rel=1e-9)


@pytest.mark.parametrize("label", ["linreg1_additional_plots3", "gaussian_plots"])
def test_choices_lie_on_the_curve_of_their_data(label):
    table = computed(label, "as-coded")
    curve = table[table.part == "generalisation"]
    choices = table[table.part == "choice"]
    assert set(choices.strategy) == {*numbers.OF_THE_THESIS, *numbers.OURS, "oracle"}
    interpolated = np.interp(choices.beta, curve.beta, curve.risk)
    np.testing.assert_allclose(interpolated, choices.risk, rtol=2e-3)
    oracle = table[(table.strategy == "oracle") & (table.part == "risk")].set_index("repetition")
    others = table[(table.part == "risk")].set_index("repetition")
    assert (others.risk >= oracle.risk.reindex(others.index) - 1e-9).all()


def test_bands_are_the_predictives_of_plain_algebra():
    table = computed("polyreg_plots")
    seen = table[table.part == "observation"]
    bands = table[table.part == "band"]
    Z = np.vander(seen.x, 12, increasing=True)
    prior = np.diag(2.0 ** np.arange(12))
    new = np.vander(figures.polynomial_bands.GRID, 12, increasing=True)
    for strategy in ("sample-splitting, alpha", "bayes"):
        band = bands[bands.strategy == strategy]
        beta = band.beta.iloc[0]
        S = np.linalg.inv(prior + beta / 0.01 * Z.T @ Z)
        mean = new @ (S @ Z.T @ seen["mean"] * beta / 0.01)
        deviation = np.sqrt(0.01 + np.einsum("ij,jk,ik->i", new, S, new))
        np.testing.assert_allclose(band["mean"], mean, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(band.deviation, deviation, rtol=1e-6)
    truth = table[table.part == "truth"]
    np.testing.assert_allclose(truth["mean"], truth.x**2 + 5)


def test_the_band_of_infinite_beta_is_a_limit():
    table = computed("polyreg_plots")
    seen = table[table.part == "observation"]
    band = table[(table.part == "band") & (table.strategy == "MLE")]
    assert np.isinf(band.beta).all()
    inside = band[(band.x > seen.x.min()) & (band.x < seen.x.max())]
    model = models.Polynomial(n_powers=12, noise_variance=0.01)
    mean, deviation = model.posterior(seen.x, seen["mean"], 30 * 1e10).predict(inside.x)
    np.testing.assert_allclose(inside["mean"], mean, rtol=1e-3)
    np.testing.assert_allclose(inside.deviation, deviation, rtol=1e-3)


def test_the_first_steps_of_backprop_are_the_thesis_rate():
    table = computed("alpha100")
    path = table[table.beta == 0].pivot(index="step", columns="component", values="mean").to_numpy()
    noise = np.random.default_rng(3).standard_normal(20)
    # At the prior, theta = noise and the gradient of the mean is theta itself.
    np.testing.assert_allclose(path[0], 0.0)
    np.testing.assert_allclose(path[1], -0.2 * noise)
    assert path.shape == (201, 20)
    assert (table.optimum[table.beta == 0].abs() < 1e-8).all()
    last = table[(table.beta == 1) & (table.step == 200)]
    assert np.abs(last["mean"] - last.optimum).mean() < 0.3 < last.optimum.abs().max()


def test_the_backbone_is_what_the_curves_say():
    table = computed("table-backbone")
    kinds = table.groupby("model").kind.unique()
    for model, kind in kinds.items():
        expected = "quadrature" if model.startswith("logistic") else "exact"
        assert list(kind) == ["stochastic" if "Backprop" in model else expected], model
    thesis = table[table.thesis != ""].set_index(["model", "strategy"]).thesis
    assert thesis["linear, known variance", "SafeBayes"] == "exact"
    assert thesis["linear, known variance", "bootstrap"] == "stochastic"
    assert (thesis.xs("logistic, Jaakkola") == "stochastic").all()


def test_minimal_prediction_errors():
    stated, coded = (thesis_settings(version) for version in VERSIONS)

    def least(setting):
        return without_constant(setting, numbers.least_risk(setting))

    assert least(stated["linear-16-40-0.2"]) == pytest.approx(0.5)
    assert least(coded["linear-40-40-8"]) == pytest.approx(4.0)
    assert least(stated["mean-40-4"]) == pytest.approx(0.5)
    assert least(stated["polynomial"]) == pytest.approx(25.0)
    assert least(coded["polynomial"]) == pytest.approx(0.0, abs=1e-12)
    entropy = [0.5 * np.log(2 * np.pi * np.e * variance) for variance in (3.5, 4.0)]
    assert least(stated["unknown-gaussian"]) == pytest.approx(entropy[0])
    # With its constant the least risk of a right model is the entropy of the noise.
    assert numbers.least_risk(stated["mean-40-4"]) == pytest.approx(entropy[1])
    # A well specified model cannot be beaten at its own parameter.
    logistic = stated["logistic-mean-field"]
    point = np.zeros((30, 30))
    least = logistic.gibbs_risk(logistic.theta, point)
    assert numbers.least_risk(logistic) == pytest.approx(least, abs=1e-6)


def test_no_posterior_beats_the_minimal_prediction_error():
    for label in ("linreg2_all_graphs", "linreg1_additional_plots1"):
        table = computed(label)
        least = table[table.part == "least"].set_index("setting").risk
        risks = table[table.part == "risk"]
        assert (risks.risk > risks.setting.map(least)).all()


def test_the_covariance_rule_finds_the_oracle_of_exact_posteriors():
    setting = LinearSetting(40, 20, GaussianNoise(64.0), variance=8.0)
    for repetition in range(3):
        X, y = numbers.data_set(setting, repetition, 0)
        rule = covariance.CovarianceRule(setting, draws=4000)
        chosen = calibrate(setting.model, X, y, rule, risk="gibbs", seed=1).beta
        assert chosen == pytest.approx(best_beta(setting, X, y), rel=0.15)


def test_figure_and_verdict_have_one_covariance_rule():
    setting = LogisticSetting(14, 3, "mean-field")
    X, y = numbers.data_set(setting, 0, 0)
    found = verdicts_variational._measured(setting, X, y, [0, 0])
    seed = np.random.default_rng([0, 0, verdicts_variational.SLOPE_DRAWS])
    # The draws of the slope come first.
    own = (setting.model, (X, y), (X, y), 14.0)
    options = {"risk": "gibbs", "derivative": True, "n_draws": 20_000, "seed": seed}
    slope = expected_risk(*own, gradient="covariance", **options)[1]
    exact = expected_risk(*own, **options)[1]
    assert found["slope_error"] == pytest.approx(abs(slope / exact - 1))
    rule = covariance.CovarianceRule(setting)
    assert found["zero"] == calibrate(setting.model, X, y, rule, risk="gibbs", seed=seed).beta
    assert 0 < found["zero"] < 3


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    figure = FIGURES["overfit_example"]
    table = computed("overfit_example")
    (path, *_) = save(figure, table, tmp_path)
    before = sorted(tmp_path.iterdir()), path.read_bytes()

    def broken(source, target):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(OSError, match="no space"):
        save(figure, table.iloc[:400], tmp_path)
    assert (sorted(tmp_path.iterdir()), path.read_bytes()) == before


def test_bad_requests_are_refused():
    figure = FIGURES["joyplot_linreg1"]
    with pytest.raises(ValueError, match="repeats"):
        figure.compute(repeats=0, compare=QUICK)
    with pytest.raises(ValueError, match="version"):
        figure.compute(version="as-told", compare=QUICK)
    table = computed("joyplot_linreg1")
    with pytest.raises(ValueError, match="density"):
        figure.plot(table.drop(columns="density"))
    with pytest.raises(ValueError, match="rows"):
        figure.plot(table.iloc[:0])
    boxes = computed("gaussian_plots").assign(strategy="guess")
    with pytest.raises(ValueError, match="guess"):
        FIGURES["gaussian_plots"].plot(boxes)


def test_the_package_is_light_until_it_draws():
    code = "import sys, temperance_studies.thesis.figures\n"
    code += "assert not {'matplotlib', 'pandas'} & set(sys.modules)\n"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pictures_fit_their_canvas():
    # Nothing that is drawn may be cut off: a tight box around it is within the page.
    for label in ("gaussian_plots", "polyreg_plots", "overfit_example"):
        picture = FIGURES[label].plot(computed(label))
        rendered(picture, "png")
        box = picture.get_tightbbox()
        width, height = picture.get_size_inches()
        assert box.x0 > -0.02 and box.y0 > -0.02, label
        assert box.x1 < width + 0.02 and box.y1 < height + 0.02, label
