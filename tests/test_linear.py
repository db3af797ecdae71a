"""Linear models: limits, costs counted in decompositions, tolerances stated and kept."""

import mpmath
import numpy as np
import pytest
from scenarios import gaussian_data, naive_curve
from sklearn.model_selection import GroupKFold
from temperance.models.linear import fast
from temperance.models.linear.fast import deletion_sums, fold_moments, moment_source
from temperance.models.linear.fast.blocks import partition_of
from temperance.models.linear.fast.interpolant import MOST_POINTS
from temperance.models.linear.fast.sums import summed
from temperance.models.linear.grams import triangle, triangle_of_gram
from temperance.models.linear.moments import Sums
from temperance.models.linear.rows import WhitenedRows
from temperance.posteriors.student import gamma_half_step

from temperance import calibrate, expected_risk, models, strategies, validation
from temperance.data import Data
from temperance.plans import Folds, LeaveOneOut, Pairs, PrefixPlan
from temperance.strategies.selection import PAIRS_PER_STEP, few_pairs

pytestmark = pytest.mark.usefixtures("shortcuts")


@pytest.fixture
def decompositions(monkeypatch):
    """Count calls of the decompositions that cost more than O(d^2)."""
    calls = []
    for name in ("svd", "qr", "eigh", "cholesky", "inv", "solve"):
        original = getattr(np.linalg, name)

        def counted(*args, _original=original, _name=name, **kwargs):
            calls.append(_name)
            return _original(*args, **kwargs)

        monkeypatch.setattr(np.linalg, name, counted)
    return calls


@pytest.mark.parametrize(
    "strategy",
    [strategies.Naive(), strategies.KFold(5), strategies.LeaveOneOut(), strategies.Bootstrap(9)],
    ids=repr,
)
@pytest.mark.parametrize(
    "model",
    [models.GaussianLinear(), models.NormalInverseGammaLinear()],
    ids=lambda model: type(model).__name__,
)
def test_further_betas_cost_no_decomposition(model, strategy, decompositions):
    data = gaussian_data(60, 5)
    curve = model.risk_curve(data, strategy.plan(data, np.random.default_rng(0)))
    curve(1.0)
    assert decompositions  # the first one did
    decompositions.clear()
    curve(np.linspace(0, 3, 500), derivative=True)
    assert decompositions == []


def test_safe_bayes_works_in_blocks(decompositions):
    data = gaussian_data(1000, 4)
    plan = PrefixPlan(data.weights, np.arange(1000)[None])
    curve = models.GaussianLinear().risk_curve(data, plan)
    curve(1.0)
    kernels = decompositions.count("cholesky")  # at the betas that the others are read off
    assert decompositions.count("eigh") == 1  # stacked
    assert len(decompositions) - kernels < 4  # and a factor for the first prefixes, too short
    assert kernels < 4 * MOST_POINTS
    decompositions.clear()
    curve(0.5)
    assert decompositions == ["cholesky"]


@pytest.fixture
def rows_seen(monkeypatch):
    """Count the rows that are summed up, and those that are gathered or copied."""
    seen = {"summed": 0, "taken": 0}
    gram, grams, take = WhitenedRows.gram, WhitenedRows.grams, WhitenedRows.take

    def counted_gram(self, which=slice(None), weights=None):
        seen["summed"] += len(self.response[which])
        return gram(self, which, weights)

    def counted_grams(self, labels, count, weights=None):
        before = seen["summed"]
        found = grams(self, labels, count, weights)
        if seen["summed"] == before:  # else each label was summed up by itself
            seen["summed"] += len(self)
        return found

    def counted_take(self, which, weights=None):
        seen["taken"] += len(self.response[which])
        return take(self, which, weights)

    for name, counted in (
        ("gram", counted_gram),
        ("grams", counted_grams),
        ("take", counted_take),
    ):
        monkeypatch.setattr(WhitenedRows, name, counted)
    return seen


@pytest.mark.parametrize("strategy", ["naive", "sample-splitting", "k-fold", "leave-one-out"])
@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
def test_a_calibration_sums_every_row_once(strategy, rows_seen, decompositions):
    """The guard of the cost: one pass, no factor of the rows, few eigendecompositions."""
    data = gaussian_data(2000, 12)
    found = calibrate(models.GaussianLinear(), data.X, data.y, strategy)
    assert rows_seen == {"summed": 2000, "taken": 0}
    assert decompositions.count("eigh") == 1
    assert decompositions.count("cholesky") <= 1  # those of all folds at once
    assert not {"svd", "qr", "inv"} & set(decompositions)
    if strategy == "k-fold":
        assert np.isfinite(found.standard_error)  # only now are single rows looked at
        assert rows_seen["taken"] == 2000


@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
@pytest.mark.parametrize(
    "model", [models.GaussianLinear(), models.NormalInverseGammaLinear()], ids=repr
)
def test_inputs_are_searched_for_bad_values_once(model, monkeypatch):
    """At the door: a model takes the data's word for it."""
    seen = []
    original = validation.refuse_non_finite
    monkeypatch.setattr(
        validation,
        "refuse_non_finite",
        lambda name, array, *more: seen.append(array.size) or original(name, array, *more),
    )
    data = gaussian_data(500, 4)
    calibrate(model, data.X, data.y, strategies.KFold())
    assert seen.count(data.X.size) == 1


def test_rows_that_a_gram_matrix_cannot_tell_apart_are_factored(rows_seen, decompositions):
    """Negative control of the guard above, and its reason: the answer stays right."""
    data = gaussian_data(400, 4)
    X = np.column_stack([data.X, data.X[:, 0] + 1e-6 * data.X[:, 1]])
    model = models.GaussianLinear(prior_cov=1e6)
    plan = strategies.KFold(5).plan(data, np.random.default_rng(0))
    curve = model.risk_curve(Data(X, data.y, data.weights), plan)
    value = curve(1.0)
    assert rows_seen["taken"] == 400
    assert "qr" in decompositions
    naive = np.mean([naive_curve(model, Data(X, data.y, data.weights), plan, 1.0, "gibbs")])
    assert value == pytest.approx(naive, rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("spread", [1.0, 4.0, 1e3])
@pytest.mark.parametrize("n", [400, 3000])
@pytest.mark.parametrize("kind", ["leave-one-out", "safe-bayes"])
def test_interpolated_sums_are_those_of_the_rows(kind, n, spread, weighted):
    """Training sets are read off few betas, those with wide columns from some beta on."""
    data = gaussian_data(n, 4)
    weights = data.weights if weighted else np.ones(n)
    X = data.X * [1.0, 1.0, 1.0, spread]
    rows = WhitenedRows(X, data.y, np.full(4, 0.7))
    plan = {
        "leave-one-out": LeaveOneOut(weights, "beta" if weighted else "alpha"),
        "safe-bayes": PrefixPlan(weights, np.arange(n)[None], start=3),
    }[kind]
    source = moment_source(rows, plan)
    betas = np.array([0.0, 1e-9, 1e-4, 1e-2, 1.0, 3.0, 1e6])
    found, direct = (
        Sums(*(sum(field) for field in zip(*parts, strict=True)))
        for parts in (
            source.sums(betas, pairwise=False),
            (summed(moments, False) for moments in source.moments(betas)),
        )
    )
    np.testing.assert_allclose(
        found.square + found.spread, direct.square + direct.spread, rtol=1e-12
    )
    np.testing.assert_allclose(
        found.d_square + found.d_spread, direct.d_square + direct.d_spread, rtol=1e-8
    )
    np.testing.assert_allclose(found.tested, direct.tested, rtol=1e-12)


@pytest.mark.parametrize(
    "far, weighted, count",
    [(1.0, False, 1), (1.0, True, 1), (4.4, False, 1), (12.0, False, 2), (12.0, True, 2)]
    + [(1000.0, False, 1), (1000.0, True, 1)],
)
def test_a_row_of_unexpected_leverage_is_left_out_as_well(far, weighted, count, monkeypatch):
    """Only some rows are asked for their lengths: the sums do not depend on which."""
    monkeypatch.setattr(deletion_sums, "SAMPLED_ROWS", 100)
    monkeypatch.setattr(deletion_sums, "SMALL_LEVERAGE", 0.2)
    data = gaussian_data(2000, 4)
    X, y = data.X.copy(), data.y.copy()
    X[7], y[7] = far, 50.0
    weights = data.weights if weighted else np.ones(len(data))
    source = moment_source(WhitenedRows(X, y, np.full(4, 0.7)), LeaveOneOut(weights))
    looks, supposed = [], []
    through, choose = deletion_sums.DeletionSums._through, deletion_sums.DeletionSums._variable_for
    monkeypatch.setattr(
        deletion_sums.DeletionSums,
        "_variable_for",
        lambda self, *supposing: supposed.append(supposing[0]) or choose(self, *supposing),
    )
    monkeypatch.setattr(
        deletion_sums.DeletionSums,
        "_through",
        lambda self, variable: looks.append(variable) or through(self, variable),
    )
    betas = np.array([0.0, 1e-4, 1e-2, 1.0, 3.0, 1e2])
    (found,) = source.sums(betas, pairwise=False)
    direct = [summed(moments, False) for moments in source.moments(betas)]
    for names, tolerance in ((("square", "spread"), 1e-11), (("d_square", "d_spread"), 1e-7)):
        total, expected = (
            sum(getattr(each, name) for each in sums for name in names)
            for sums in ([found], direct)
        )
        np.testing.assert_allclose(total, expected, rtol=tolerance)
    left = np.linalg.svd(np.sqrt(weights)[:, None] * X, full_matrices=False)[0]
    most = (left**2).sum(axis=1).max()
    assert (most > supposed[0]) == (far > 1.0)
    # A little more than expected takes no further betas, and a row alone cannot be interpolated.
    assert len(looks) == count


def test_the_sums_tell_the_largest_leverage():
    data = gaussian_data(500, 4)
    source = moment_source(WhitenedRows(data.X, data.y, np.ones(4)), LeaveOneOut(data.weights))
    _, bound = source.deletion_sums._values(np.array([1e-3, 1.0]))
    left = np.linalg.svd(np.sqrt(data.weights)[:, None] * data.X, full_matrices=False)[0]
    most = (left**2).sum(axis=1).max()
    assert most <= bound < 1.05 * most


@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize("way", ["folds", "pairs", "plain"])
def test_folds_of_labels_are_folds_of_weights(way, risk, monkeypatch):
    """A plan of labels gives what its explicit pairs give, for both transfers."""
    monkeypatch.setattr(fast, "LARGE_PROBLEM", 0 if way == "folds" else 2**17)
    monkeypatch.setattr(fast, "MANY_TRAINED", 2**15 if way == "plain" else 0)
    monkeypatch.setattr(fold_moments, "CACHED", 100)  # parts of folds
    data = gaussian_data(60, 5)
    fold = np.arange(60) % 7
    for transfer, start in (("beta", 0), ("alpha", 0), ("beta", 6), ("alpha", 3)):
        plan = Folds(data.weights, fold, 7, transfer, start)
        assert len(plan.pairs().test) == 7 - start
        for model in (models.GaussianLinear(0.5), models.NormalInverseGammaLinear()):
            betas = np.array([0.0, 0.3, 2.0])
            labels, pairs = (model.risk_curve(data, each, risk) for each in (plan, plan.pairs()))
            for found, expected in (
                (labels(betas, derivative=True), pairs(betas, derivative=True)),
                (labels.rows(0.7), pairs.rows(0.7)),
            ):
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("torn", [False, True], ids=["all or nothing", "torn rows"])
@pytest.mark.parametrize("pairs", [1, 2, 4, 5])
def test_blocks_are_the_distinct_ways_to_be_used(pairs, torn):
    """Their weights are those of the plan, row by row, and no two blocks could be one."""
    rng = np.random.default_rng(pairs)
    train, test = rng.integers(0, 2, (2, pairs, 4000)).astype(float)
    if torn:
        train[0] /= rng.integers(1, 3, 4000)
    weights = rng.uniform(0.5, 2.0, 4000)
    plan = Pairs(train * weights, test * weights, 4000.0)
    found = partition_of(plan, columns=2)
    label = np.empty(4000, dtype=int)
    for block, members in enumerate(found.members):
        label[members] = block
    np.testing.assert_allclose(found.train[:, label] * found.weights, plan.train, rtol=1e-12)
    np.testing.assert_allclose(found.test[:, label] * found.weights, plan.test, rtol=1e-12)
    uses = np.concatenate([found.train, found.test])
    assert uses.shape[1] == np.unique(uses, axis=1).shape[1]


LABELS = {
    "two, in order": lambda rng, n: np.arange(n) * 2 // n,
    "two, out of order where a chunk ends": lambda rng, n: (np.arange(n) < 64).astype(int),
    "one": lambda rng, n: np.zeros(n, dtype=int),
    "five, one without rows": lambda rng, n: rng.choice([0, 1, 3, 4], n),
    "many": lambda rng, n: rng.permutation(np.arange(n) // 3),
}


@pytest.mark.parametrize("chunk", [None, 64], ids=["one chunk", "chunks"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("k", [1, 3, 8, 9, 16, 17, 30, 128, 129])
@pytest.mark.parametrize("label", LABELS.values(), ids=LABELS)
def test_second_moments_of_labels_are_sums_over_their_rows(
    label, k, order, weighted, chunk, monkeypatch
):
    """Whether the rows come in order, and in how many chunks, does not matter."""
    if chunk:
        monkeypatch.setattr("temperance.models.linear.rows.CACHED", chunk * (k + 1))
    rng = np.random.default_rng(k)
    n = 301
    rows = WhitenedRows(
        np.asarray(rng.standard_normal((n, k)), order=order),
        rng.standard_normal(n),
        rng.uniform(0.5, 2.0, k),
    )
    weights = rng.uniform(0.5, 2.0, n) if weighted else None
    labels = label(rng, n)
    count = int(labels.max()) + 1
    expected = np.zeros((count, k + 1, k + 1))
    for i, each in enumerate(labels):
        row = np.append(rows.inputs[i] * rows.scale, rows.response[i])
        expected[each] += np.outer(row, row) * (weights[i] if weighted else 1.0)
    found, counts = rows.grams(labels, count, weights)
    np.testing.assert_array_equal(counts, np.bincount(labels, minlength=count))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        rows.gram(weights=weights), expected.sum(axis=0), rtol=1e-12, atol=1e-11
    )


@pytest.mark.parametrize("scales", [1.0, [1e-3, 1.0, 1e3, 1e9]], ids=str)
def test_triangles_of_gram_matrices_are_those_of_the_rows(scales):
    rows = np.random.default_rng(0).standard_normal((50, 4)) * scales
    found, expected = triangle_of_gram(rows.T @ rows), triangle(rows)
    signs = np.sign(np.diag(found) * np.diag(expected))[:, None]
    np.testing.assert_allclose(found * signs, expected, rtol=1e-12, atol=1e-12 * np.abs(rows).max())


def test_triangles_of_gram_matrices_know_their_limits():
    rows = np.random.default_rng(0).standard_normal((50, 3))
    empty = np.column_stack([rows, np.zeros(50)])
    found = triangle_of_gram(empty.T @ empty)
    np.testing.assert_allclose(found.T @ found, empty.T @ empty, atol=1e-12)
    twin = np.column_stack([rows, rows[:, 0]])
    near = np.column_stack([rows, rows[:, 0] + 1e-4 * rows[:, 1]])
    assert triangle_of_gram(twin.T @ twin) is None
    assert triangle_of_gram(near.T @ near) is None


@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize(
    "model",
    [models.GaussianLinear(0.5), models.NormalInverseGammaLinear()],
    ids=lambda model: type(model).__name__,
)
def test_safe_bayes_at_fixed_alpha_keeps_its_tolerance(model, risk):
    data = gaussian_data(150, 6, seed=3)
    plan = PrefixPlan(data.weights, np.arange(150)[None], start=1, transfer="alpha")
    betas = np.concatenate([[0.0], np.geomspace(1e-6, 50.0, 12)])
    interpolated = model.risk_curve(data, plan, risk)(betas)
    exact = model.risk_curve(data, plan.pairs(), risk)(betas)
    np.testing.assert_allclose(interpolated, exact, rtol=1e-9)


@pytest.mark.parametrize("alpha", [1e6, 1e12])
def test_infinite_alpha_is_least_squares(alpha):
    data = gaussian_data(30, 4)
    X, y = data.X, data.y
    least, residual, _, _ = np.linalg.lstsq(X, y)
    close = 1e3 / alpha
    known = models.GaussianLinear(2.0, 0.3).posterior(X, y, alpha)
    np.testing.assert_allclose(known.mean, least, atol=close)
    assert np.abs(known.cov).max() < close
    unknown = models.NormalInverseGammaLinear().posterior(X, y, alpha)
    np.testing.assert_allclose(unknown.mean, least, atol=close)
    assert unknown.a / unknown.b == pytest.approx(30 / residual[0], rel=1e2 * close)


def test_infinite_alpha_with_more_columns_than_rows_interpolates():
    data = gaussian_data(6, 15)
    posterior = models.GaussianLinear().posterior(data.X, data.y, 1e12)
    shortest = np.linalg.pinv(data.X) @ data.y
    np.testing.assert_allclose(posterior.mean, shortest, atol=1e-9)
    # Across the rows the prior is untouched.
    across = np.eye(15) - np.linalg.pinv(data.X) @ data.X
    np.testing.assert_allclose(across @ posterior.cov @ across, across, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 1e12])
@pytest.mark.parametrize(
    "model",
    [models.GaussianLinear(), models.NormalInverseGammaLinear()],
    ids=lambda model: type(model).__name__,
)
def test_collinear_columns_share_a_coefficient(model, alpha):
    data = gaussian_data(20, 2)
    doubled = np.column_stack([data.X, data.X])
    half = type(model)(prior_cov=0.5).posterior(doubled, data.y, alpha)
    whole = type(model)(prior_cov=1.0).posterior(data.X, data.y, alpha)
    np.testing.assert_allclose(half.mean[:2] + half.mean[2:], whole.mean, atol=1e-8)
    np.testing.assert_allclose(half.mean[:2], half.mean[2:], atol=1e-8)
    for risk in ("gibbs", "predictive"):
        risks = [
            expected_risk(other, (Z, data.y), (Z, data.y), alpha, risk=risk, derivative=True)
            for other, Z in ((type(model)(prior_cov=0.5), doubled), (model, data.X))
        ]
        np.testing.assert_allclose(risks[0], risks[1], rtol=1e-7, atol=1e-10)


def test_a_perfect_fit_keeps_the_scale_positive():
    X = np.random.default_rng(0).standard_normal((12, 3))
    y = X @ [1e6, -1e6, 1e6]
    model = models.NormalInverseGammaLinear(b=1e-8)
    for alpha in (1e-6, 1.0, 1e12):
        assert model.posterior(X, y, alpha).b >= 1e-8
    data = Data(X, y, np.ones(12))
    for strategy in (strategies.LeaveOneOut(), strategies.SafeBayes(), strategies.KFold(3)):
        curve = model.risk_curve(data, strategy.plan(data, np.random.default_rng(0)))
        assert np.all(np.isfinite(curve(np.array([1e-9, 1e-3, 1.0, 1e9]))))


def test_leave_one_out_with_more_columns_than_rows_at_large_beta():
    """Leverages reach one; differences of near-equal numbers would show here."""
    data = gaussian_data(10, 30)
    plan = strategies.LeaveOneOut().plan(data, np.random.default_rng(0))
    closed = models.GaussianLinear().risk_curve(data, plan)
    paired = models.GaussianLinear().risk_curve(data, plan.pairs())
    betas = np.array([1.0, 1e4, 1e8])
    np.testing.assert_allclose(closed(betas), paired(betas), rtol=1e-7)


def test_presets_are_linear_regressions():
    data = gaussian_data(20, 1)
    x = data.X[:, 0]
    powers = np.vander(x, 5, increasing=True)
    linear = models.GaussianLinear(0.3, 0.0, 0.5 ** np.arange(5))
    for alpha in (0.0, 7.0):
        np.testing.assert_allclose(
            models.Polynomial(5, 0.3).posterior(x, data.y, alpha).mean,
            linear.posterior(powers, data.y, alpha).mean,
        )
    mean = models.GaussianMean(0.3, 1.0, 2.0).posterior(None, data.y, 7.0)
    assert mean.mean == pytest.approx((1.0 / 2.0 + 7 * data.y.mean() / 0.3) / (0.5 + 7 / 0.3))
    assert mean.cov[0, 0] == pytest.approx(1 / (0.5 + 7 / 0.3))


def test_stochastic_optimiser_agrees_with_the_curve():
    data = gaussian_data(60, 40, seed=1)
    model, strategy = models.GaussianLinear(0.3), strategies.KFold(5)
    curve = calibrate(model, data.X, data.y, strategy)
    descent = calibrate(model, data.X, data.y, strategy, optimiser="stochastic")
    assert not curve.at_bound
    assert abs(descent.beta - curve.beta) < 0.05
    assert descent.risk == pytest.approx(curve.risk, rel=0.05)
    assert descent.curve.method == "1000 posterior draws per pair"


@pytest.mark.parametrize("transfer", ["beta", "alpha"])
@pytest.mark.parametrize("n", [20, 120])
@pytest.mark.parametrize("scales", [[1, 1, 1], [1e3, 1, 1e-3], [1e6, 1, 1], [1e9, 1, 1]], ids=str)
@pytest.mark.parametrize(
    "model",
    [models.GaussianLinear(prior_cov=1e2), models.NormalInverseGammaLinear(prior_cov=1e2)],
    ids=lambda model: type(model).__name__,
)
def test_safe_bayes_takes_columns_on_any_scale(model, scales, n, transfer):
    """Vague priors and raw units: pivots of the innovations would drown in rounding."""
    rng = np.random.default_rng(n)
    Z = rng.standard_normal((n, 3)) * scales
    data = Data(Z, Z[:, 1] + rng.standard_normal(n), np.ones(n))
    plan = PrefixPlan(data.weights, np.arange(n)[None], transfer=transfer)
    curve, exact = model.risk_curve(data, plan), model.risk_curve(data, plan.pairs())
    betas = np.array([0.0, 1e-3, 1.0, 3.0, 1e3, 1e6, 1e11])
    deletion_sums = curve(betas)
    one_by_one = [curve(beta) for beta in betas[::-1]][::-1]
    np.testing.assert_allclose(deletion_sums, exact(betas), rtol=1e-9)
    np.testing.assert_allclose(one_by_one, deletion_sums, rtol=1e-9)
    _, slope = curve(3.0, derivative=True)
    assert slope == pytest.approx(exact(3.0, derivative=True)[1], rel=1e-5, abs=1e-9)


def test_a_column_that_appears_late_is_met_with_care():
    """A dummy that is zero for two blocks has its whole prior ahead in the third."""
    rng = np.random.default_rng(0)
    Z = np.column_stack([np.ones(100), 1e5 * (np.arange(100) >= 70)])
    data = Data(Z, rng.standard_normal(100), np.ones(100))
    model = models.GaussianLinear(prior_cov=1e4)
    plan = PrefixPlan(data.weights, np.arange(100)[None])
    betas = np.array([0.1, 1.0, 3.0])
    np.testing.assert_allclose(
        model.risk_curve(data, plan)(betas), model.risk_curve(data, plan.pairs())(betas), rtol=1e-9
    )


def test_nearly_collinear_columns_against_many_digits():
    rng = np.random.default_rng(3)
    x = rng.standard_normal(12)
    X = np.column_stack([x, x + 1e-6 * rng.standard_normal(12)])
    y = rng.standard_normal(12)
    posterior = models.GaussianLinear(prior_cov=1e10).posterior(X, y, 12.0)
    with mpmath.workdps(50):
        Z, r = mpmath.matrix(X.tolist()), mpmath.matrix(y.tolist())
        precision = Z.T * Z + mpmath.eye(2) / mpmath.mpf(10) ** 10
        exact = mpmath.lu_solve(precision, Z.T * r)
    np.testing.assert_allclose(posterior.mean, [float(e) for e in exact], rtol=1e-7)


def test_a_few_pairs_stand_for_all():
    """Pairs are drawn in proportion to what they test, so the parts average to the whole."""
    test = np.repeat(np.eye(20), 3, axis=1) * np.repeat(np.arange(1.0, 21.0), 3)
    pairs = Pairs(np.ones_like(test), test, 60.0)
    rng = np.random.default_rng(0)
    parts = [few_pairs(pairs, rng).test for _ in range(4000)]
    shares = np.mean([part.sum(axis=0) / part.sum() for part in parts], axis=0)
    np.testing.assert_allclose(shares, test.sum(axis=0) / test.sum(), atol=4 * 0.08 / 4000**0.5)
    assert len(parts[0]) == PAIRS_PER_STEP


@pytest.mark.slow
def test_stochastic_optimiser_with_many_unequal_pairs_ends_at_the_bound():
    """More pairs than one step uses, of different sizes; the choice is the bound itself."""
    data = gaussian_data(30, 2, seed=1)
    unequal = strategies.FromSplitter(GroupKFold(10), groups=np.minimum(np.arange(30), 9))
    model = models.GaussianLinear(1.0)
    curve = calibrate(model, data.X, data.y, unequal)
    descent = calibrate(model, data.X, data.y, unequal, optimiser="stochastic")
    assert descent.beta == curve.beta == 3.0


@pytest.mark.parametrize("start", [31, 32, 40, 64])
@pytest.mark.parametrize("transfer", ["beta", "alpha"])
def test_safe_bayes_may_start_after_whole_blocks(start, transfer):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((70, 4)) * [1, 1, 1, 1e6]
    data = Data(Z, rng.standard_normal(70), np.ones(70))
    plan = strategies.SafeBayes(transfer, start=start).plan(data, rng)
    model = models.GaussianLinear(prior_cov=1e4)
    betas = np.array([0.0, 0.5, 3.0])
    np.testing.assert_allclose(
        model.risk_curve(data, plan)(betas), model.risk_curve(data, plan.pairs())(betas), rtol=1e-9
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("transfer", ["beta", "alpha"])
@pytest.mark.parametrize("prior_cov", [1e4, 1e8])
@pytest.mark.parametrize("kind", [models.GaussianLinear, models.NormalInverseGammaLinear])
def test_leave_one_out_of_a_level_seen_once(kind, prior_cov, transfer, seed):
    """Its row determines a coefficient alone; without it there is nothing but the prior."""
    rng = np.random.default_rng(seed)
    Z = np.column_stack([np.ones(30), rng.standard_normal((30, 3)), np.arange(30) == 7])
    data = Data(Z, rng.standard_normal(30), rng.uniform(0.5, 2.0, 30))
    plan = strategies.LeaveOneOut(transfer).plan(data, rng)
    model = kind(prior_cov=prior_cov)
    for risk in ("gibbs", "predictive"):
        curve = model.risk_curve(data, plan, risk)
        exact = model.risk_curve(data, plan.pairs(), risk)
        betas = np.array([0.01, 0.3, 3.0])
        for one, other in zip(
            curve(betas, derivative=True), exact(betas, derivative=True), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        loss, weight = curve.rows(0.3)
        np.testing.assert_allclose(loss, exact.rows(0.3)[0], rtol=1e-8)
        np.testing.assert_allclose(weight, data.weights)


def test_gamma_half_step_against_many_digits():
    a = np.array([0.01, 0.5, 1.0, 5.0, 19.9, 20.1, 100.0, 1e4, 6e5, 1e8, 5e11])
    value, slope = gamma_half_step(a)
    with mpmath.workdps(40):
        exact = [mpmath.loggamma(each + 0.5) - mpmath.loggamma(each) for each in map(mpmath.mpf, a)]
        digamma = [mpmath.digamma(each + 0.5) - mpmath.digamma(each) for each in map(mpmath.mpf, a)]
    np.testing.assert_allclose(value, [float(e) for e in exact], rtol=2e-14, atol=2e-14)
    np.testing.assert_allclose(slope, [float(e) for e in digamma], rtol=2e-13)


def test_predictive_slope_with_very_many_observations():
    """digamma(a + 1/2) - digamma(a) is far below the rounding of its terms."""
    data = gaussian_data(12, 2)
    big = Data(data.X, data.y, np.full(12, 1e8))
    plan = strategies.Naive().plan(big, np.random.default_rng(0))
    curve = models.NormalInverseGammaLinear().risk_curve(big, plan, "predictive")
    _, slope = curve(1e-3, derivative=True)
    step = 1e-5
    assert slope == pytest.approx((curve(1e-3 + step) - curve(1e-3 - step)) / (2 * step), rel=1e-3)


@pytest.mark.parametrize("rows", ["columns of a wider array", "every other row", "backwards"])
@pytest.mark.parametrize("n, k", [(10_923, 10), (21_845, 10)])
def test_a_last_chunk_of_one_row_may_lie_anywhere(n, k, rows):
    """One row is contiguous whatever its stride."""
    wide = np.random.default_rng(0).standard_normal((n, k + 1))
    X = {
        "columns of a wider array": wide[:, :k],
        "every other row": np.repeat(wide[:, :k], 2, axis=0)[::2],
        "backwards": wide[::-1, :k].copy()[::-1],
    }[rows]
    labels = np.arange(n) % 10
    found, expected = (
        WhitenedRows(part, wide[:, k], np.ones(k)).grams(labels, 10)[0] for part in (X, X.copy())
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)
