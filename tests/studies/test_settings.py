"""Settings: their populations stand for the truth; real data are what they say."""

import dataclasses
import pickle

import numpy as np
import pytest

from temperance import expected_risk, models
from temperance_studies.settings import (
    REAL,
    GaussianNoise,
    LinearSetting,
    LogisticSetting,
    MixtureNoise,
    SummedNoise,
    UniformNoise,
    best_beta,
    load,
    true_risk,
)
from temperance_studies.settings.logistic_risk import GaussianInputs
from temperance_studies.thesis.settings import thesis_settings

VERSIONS = ("as-stated", "as-coded")
KEYS = tuple(thesis_settings())
LOGISTIC = tuple(key for key in KEYS if key.startswith("logistic"))
CASES = [(version, key) for version in VERSIONS for key in KEYS]


def fresh_risk(setting, train, alpha, rng, count):
    """Risk on fresh test data: mean and standard error."""
    draw = getattr(setting, "draw_test", setting.draw)
    risks = [
        expected_risk(setting.model, train, draw(rng), alpha, risk="gibbs") for _ in range(count)
    ]
    return np.mean(risks, axis=0), np.std(risks, axis=0, ddof=1) / np.sqrt(count)


class TestSettings:
    def test_both_versions_have_the_same_keys(self):
        assert KEYS == tuple(thesis_settings("as-coded"))
        assert len(KEYS) == 12

    def test_only_uniform_noise_is_the_same_in_both(self):
        stated, coded = thesis_settings(), thesis_settings("as-coded")
        assert [key for key in KEYS if stated[key] == coded[key]] == ["unknown-uniform"]
        assert all(setting.name.endswith("as coded") for key, setting in coded.items()
                   if key != "unknown-uniform")  # fmt: skip

    def test_sigma_is_a_standard_deviation_in_the_code(self):
        assert thesis_settings()["linear-40-40-8"].noise.variance == 8
        assert thesis_settings("as-coded")["linear-40-40-8"].noise.variance == 64
        assert thesis_settings("as-coded")["linear-40-40-8"].model.noise_variance == 8

    def test_unknown_version_is_refused(self):
        with pytest.raises(ValueError, match="version must be one of"):
            thesis_settings("as-meant")

    @pytest.mark.parametrize(("version", "key"), CASES)
    def test_values_are_plain_picklable_and_frozen(self, version, key):
        setting = thesis_settings(version)[key]
        before = len(pickle.dumps(setting))
        setting.population  # noqa: B018
        copy = pickle.loads(pickle.dumps(setting))
        assert copy == setting
        assert hash(copy) == hash(setting)
        assert len(pickle.dumps(setting)) == before < 1000
        with pytest.raises(dataclasses.FrozenInstanceError):
            setting.n = 3

    @pytest.mark.parametrize(("version", "key"), CASES)
    def test_the_same_generator_draws_the_same_data(self, version, key):
        setting = thesis_settings(version)[key]
        one, same, other = (setting.draw(np.random.default_rng(seed)) for seed in (0, 0, 1))
        assert len(one[1]) == setting.n
        assert np.array_equal(one[1], same[1])
        assert not np.array_equal(one[1], other[1])

    def test_another_seed_is_another_theta(self):
        one, other = (thesis_settings(seed=seed)["linear-40-40-8"] for seed in (0, 1))
        assert not np.allclose(one.theta, other.theta)


class TestNoise:
    @pytest.mark.parametrize(
        ("noise", "kurtosis"),
        [
            (GaussianNoise(3.5), 3.0),
            (MixtureNoise(0.1, 12.0), 3 * (0.1**2 + 12**2) / 2 / 6.05**2),
            (MixtureNoise(0.1, 12.0, share=0.8), 3 * (0.8 * 0.01 + 0.2 * 144) / 2.48**2),
            (SummedNoise(0.1, 12.0), 3.0),
            (SummedNoise(0.1, 12.0, share=0.8), 3.0),
            (UniformNoise(4.5), 1.8),
        ],
    )
    def test_moments(self, noise, kurtosis):
        e = noise.draw(np.random.default_rng(0), 400_000)
        for power, value in ((1, 0.0), (2, noise.variance), (4, kurtosis * noise.variance**2)):
            error = (e**power).std() / np.sqrt(len(e))
            assert abs((e**power).mean() - value) < 4 * error


class TestTruth:
    @pytest.mark.parametrize(("version", "key"), CASES)
    @pytest.mark.slow
    def test_true_risk_is_the_risk_of_fresh_data(self, version, key):
        setting = thesis_settings(version)[key]
        other = thesis_settings(VERSIONS[version == "as-stated"])[key]
        if key == "linear-16-40-0.2":  # more rows than columns, or the noise would hardly matter
            setting, other = (dataclasses.replace(each, n=400) for each in (setting, other))
        rng = np.random.default_rng(7)
        X, y = setting.draw(rng)
        alpha = np.array([0.3, 3.0]) * len(y)
        exact = true_risk(setting, X, y, alpha)
        mean, error = fresh_risk(setting, (X, y), alpha, rng, 30 if key in LOGISTIC else 300)
        assert np.all(np.abs(mean - exact) < 4 * error)
        # The negative control: the other version's truth is another.
        if other != setting:
            wrong = true_risk(_with_model(other, setting.model), X, y, alpha)
            assert np.any(np.abs(mean - wrong) > 4 * error)

    @pytest.mark.parametrize("key", [key for key in KEYS if key not in LOGISTIC])
    def test_population_rows_are_the_truth(self, key):
        setting = thesis_settings()[key]
        X, y = setting.draw(np.random.default_rng(1))
        assert setting.exact
        alpha = np.array([0.1, 1.0]) * len(y)
        exact = expected_risk(setting.model, (X, y), setting.population, alpha, risk="gibbs")
        assert np.array_equal(exact, true_risk(setting, X, y, alpha))

    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("key", LOGISTIC)
    def test_logistic_population_is_near_the_truth(self, version, key):
        setting = thesis_settings(version)[key]
        X, y = setting.draw(np.random.default_rng(2))
        alpha = np.array([0.3, 1.0]) * len(y)
        rows = expected_risk(setting.model, (X, y), setting.population, alpha, risk="gibbs")
        assert not setting.exact
        np.testing.assert_allclose(rows, true_risk(setting, X, y, alpha), rtol=0.02)

    def test_logistic_formula_against_a_million_points(self):
        rng = np.random.default_rng(3)
        d, k = 4, 3
        mean, root = rng.standard_normal(d), rng.standard_normal((d, d))
        cov = root @ root.T
        mu, spread = rng.standard_normal((2, d)), rng.standard_normal((2, d, k))
        shares, product = np.array([0.3, 0.7]), rng.standard_normal(d)
        found = GaussianInputs(shares, mu, spread, product).risk(mean, cov)
        theta = mean + rng.standard_normal((1_000_000, d)) @ root.T
        cluster = (rng.random(len(theta)) > shares[0]).astype(int)
        g = rng.standard_normal((len(theta), k))
        z = mu[cluster] + np.einsum("nij,nj->ni", spread[cluster], g)
        loss = np.logaddexp(0, (z * theta).sum(axis=1)) - product @ mean
        assert abs(loss.mean() - found) < 4 * loss.std() / 1000
        assert abs(loss.mean() - found * 1.01) > 4 * loss.std() / 1000

    @pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0])
    def test_logistic_formula_for_a_known_predictor(self, scale):
        # One column, a point mass at theta = 1: E log(1 + e^X) with X ~ N(0, scale^2).
        inputs = GaussianInputs(
            np.ones(1), np.zeros((1, 1)), np.full((1, 1, 1), scale), np.zeros(1)
        )
        t = np.linspace(-12, 12, 200_001)
        density = np.exp(-(t**2) / 2)
        expected = density @ np.logaddexp(0, scale * t) / density.sum()
        assert inputs.risk(np.ones(1), np.zeros((1, 1))) == pytest.approx(expected, rel=1e-6)

    def test_label_product(self):
        setting = LogisticSetting(50, 6, "laplace")
        rng = np.random.default_rng(0)
        big = dataclasses.replace(setting, n=400_000)
        Z, y = big.draw(rng)
        from temperance_studies.settings.logistic import _logistic_inputs

        product = Z * y[:, None]
        error = product.std(axis=0) / np.sqrt(len(Z))
        assert np.all(
            np.abs(product.mean(axis=0) - _logistic_inputs(setting).label_product) < 4 * error
        )

    @pytest.mark.parametrize("key", ["linear-40-40-8", "polynomial", "logistic-mean-field"])
    def test_best_beta_is_the_best(self, key):
        setting = thesis_settings("as-coded")[key]
        X, y = setting.draw(np.random.default_rng(4))
        best = best_beta(setting, X, y)
        least = true_risk(setting, X, y, best * len(y))
        grid = np.linspace(0, 3, 31)
        assert np.all(true_risk(setting, X, y, grid * len(y)) >= least - 1e-12)
        if 0 < best < 3:
            beside = true_risk(setting, X, y, (best + np.array([-1e-3, 1e-3])) * len(y))
            assert np.all(beside > least)

    def test_best_beta_heeds_the_bounds(self):
        setting = thesis_settings()["logistic-mean-field"]
        X, y = setting.draw(np.random.default_rng(0))
        assert best_beta(setting, X, y, bounds=(0.0, 0.5)) == 0.5

    @pytest.mark.parametrize("key", ["linear-40-40-8", "mean-40-4", "logistic-mean-field"])
    def test_predictive_risk_is_that_of_fresh_rows(self, key):
        setting = thesis_settings()[key]
        rng = np.random.default_rng(5)
        X, y = setting.draw(rng)
        found = true_risk(setting, X, y, float(len(y)), "predictive")
        risks = [
            expected_risk(
                setting.model, (X, y), setting.draw(rng), float(len(y)), risk="predictive"
            )
            for _ in range(200)
        ]
        error = np.std(risks) * np.sqrt(1 / 200 + setting.n / 4096)
        assert abs(np.mean(risks) - found) < 4 * error

    def test_the_polynomial_as_coded_is_tested_without_noise(self):
        setting = thesis_settings("as-coded")["polynomial"]
        x, y = setting.draw_test(np.random.default_rng(0))
        assert np.array_equal(y, setting.truth(x))
        noisy = thesis_settings()["polynomial"]
        assert np.array_equal(noisy.draw_test(np.random.default_rng(0))[1],
                              noisy.draw(np.random.default_rng(0))[1])  # fmt: skip

    def test_its_predictive_risk_is_that_of_the_function_itself(self):
        setting = thesis_settings("as-coded")["polynomial"]
        X, y = setting.draw(np.random.default_rng(6))
        alpha = np.array([0.1, 1.0]) * len(y)
        found = true_risk(setting, X, y, alpha, "predictive")
        # -log N(f(x); mean, deviation^2), by quadrature on [-1, 1]; the deviation of a forecast
        # includes the assumed noise.
        x, weights = np.polynomial.legendre.leggauss(400)
        for value, at in zip(found, alpha, strict=True):
            mean, deviation = setting.model.posterior(X, y, at).predict(x)
            square = ((setting.truth(x) - mean) / deviation) ** 2
            loss = (square + np.log(2 * np.pi * deviation**2)) / 2
            exact = weights @ loss / 2
            error = np.sqrt(weights @ (loss - exact) ** 2 / 2 / 4096)
            assert abs(value - exact) < 4 * error
            # The negative control: with noise in the test the risk is another.
            noisy = dataclasses.replace(setting, noisy_test=True)
            assert true_risk(noisy, X, y, at, "predictive") > exact + 10 * error

    def test_unknown_risk_is_refused(self):
        setting = thesis_settings()["mean-40-4"]
        for function, last in ((true_risk, 1.0), (best_beta, (0.0, 3.0))):
            with pytest.raises(ValueError, match="risk must be one of"):
                function(setting, None, [1.0, 2.0], last, risk="sharp")

    def test_unknown_approximation_is_refused(self):
        with pytest.raises(ValueError, match="approximation must be one of"):
            LogisticSetting(50, 30, "exact")


def _with_model(setting, model):
    """Return the setting with another model, for its truth."""

    class Borrowed:
        def __getattr__(self, name):
            return getattr(setting, name)

    borrowed = Borrowed()
    borrowed.model = model
    return borrowed


class TestReal:
    SHAPES = {
        "diabetes": (442, 10),
        "breast-cancer": (569, 30),
        "wine": (178, 13),
        "iris": (150, 4),
        "digits": (357, 64),
        "engel": (235, 1),
        "stackloss": (21, 3),
        "statecrime": (51, 6),
        "ccard": (72, 4),
        "copper": (25, 5),
        "star98": (303, 20),
        "fair": (6366, 8),
        "spector": (32, 3),
        "longley": (16, 6),
    }

    def test_all_are_listed(self):
        assert set(REAL) == set(self.SHAPES)

    @pytest.mark.parametrize("name", REAL)
    def test_shapes_values_and_words(self, name):
        pytest.importorskip("sklearn" if REAL.index(name) < 5 else "statsmodels")
        data = load(name)
        assert data.X.shape == self.SHAPES[name]
        assert data.X.dtype == data.y.dtype == float
        assert len(data) == len(data.y) == len(data.X)
        assert np.all(np.isfinite(data.X)) and np.all(np.isfinite(data.y))
        assert np.all(np.ptp(data.X, axis=0) > 0) or name == "digits"
        assert len(data.features) == data.X.shape[1]
        assert data.target and data.source
        if data.task == "classification":
            assert set(data.y) == {0.0, 1.0}
        else:
            assert len(set(data.y)) > 10
        assert name in repr(data)

    def test_known_rows(self):
        pytest.importorskip("statsmodels")
        assert load("stackloss").y[0] == 42
        assert load("engel").X[0, 0] == pytest.approx(420.157651)
        assert load("digits").y.sum() == 174

    def test_unknown_name_is_refused(self):
        with pytest.raises(ValueError, match="name must be one of diabetes, .*, got 'boston'"):
            load("boston")

    @pytest.mark.parametrize(
        ("name", "package"), [("engel", "statsmodels"), ("wine", "scikit-learn")]
    )
    def test_without_the_package_there_is_a_hint(self, monkeypatch, name, package):
        import temperance_studies.settings.real as real

        def missing(module):
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)

        monkeypatch.setattr(real, "import_module", missing)
        with pytest.raises(ImportError, match=rf"{package}, .*pip install 'temperance\[study\]'"):
            load(name)

    def test_a_package_that_lacks_its_own_needs_is_not_taken_for_missing(self, monkeypatch):
        import temperance_studies.settings.real as real

        def missing(module):
            raise ModuleNotFoundError("No module named 'patsy'", name="patsy")

        monkeypatch.setattr(real, "import_module", missing)
        with pytest.raises(ModuleNotFoundError, match="patsy"):
            load("engel")


def test_own_settings_need_no_more_than_the_protocol():
    setting = LinearSetting(20, 3, UniformNoise(1.0), variance=1.0, seed=5)
    assert isinstance(setting.model, models.GaussianLinear)
    X, y = setting.draw(np.random.default_rng(0))
    assert 0 <= best_beta(setting, X, y) <= 3
    assert len(setting.population[1]) == 4


@pytest.mark.parametrize("version", ["as-stated", "as-coded"])
def test_the_risk_of_draws_averages_to_the_gibbs_risk(version):
    setting = thesis_settings(version)["logistic-jaakkola"]
    rng = np.random.default_rng(0)
    mean, root = rng.standard_normal(30), 0.3 * rng.standard_normal((30, 30))
    theta = mean + rng.standard_normal((4000, 30)) @ root.T
    risks = setting.risk_of_draws(theta)
    error = risks.std(ddof=1) / np.sqrt(len(risks))
    assert abs(risks.mean() - setting.gibbs_risk(mean, root @ root.T)) < 4 * error
    assert abs(risks.mean() - setting.gibbs_risk(mean, 1.2 * root @ root.T)) > 4 * error
    assert risks[0] == pytest.approx(setting.gibbs_risk(theta[0], np.zeros((30, 30))), rel=1e-9)
