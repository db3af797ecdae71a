"""Blocks of rows: the same answer as all rows at once, in memory that does not grow with them."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import PredefinedSplit

from temperance import calibrate, models, strategies
from temperance import data as memory
from temperance.streaming import (
    blocks_of_arrays,
    blocks_of_parquet,
    calibrate_blocks,
    fold_numbers,
)

MODELS = [models.GaussianLinear(0.3, 0.2, 0.7), models.NormalInverseGammaLinear(prior_mean=0.1)]
BETAS = np.array([1e-3, 0.1, 1.0, 3.0])


def some_rows(n=90, d=40, scales=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * scales
    return X, X[:, 0] + 4 * rng.standard_normal(n), rng.uniform(0.5, 2.0, n)


def in_memory(model, X, y, weights, folds, transfer="beta"):
    splits = strategies.FromSplitter(PredefinedSplit(folds), transfer)
    return calibrate(model, X, y, splits, weights=weights, risk="gibbs")


def one_pass(model, blocks, strategy=None, **options):
    return calibrate_blocks(model, blocks, strategy, risk="gibbs", **options)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("transfer", ["beta", "alpha"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
def test_blocks_give_what_all_rows_give(model, transfer, weighted):
    X, y, weights = some_rows()
    weights = weights if weighted else np.ones(len(y))
    blocks = blocks_of_arrays(X, y, weights, rows=17)
    streamed = one_pass(model, blocks, strategies.KFold(10, transfer), seed=3)
    whole = in_memory(model, X, y, weights, fold_numbers(len(y), 10, seed=3), transfer)
    assert whole.at_bound == isinstance(model, models.NormalInverseGammaLinear)
    assert streamed.beta == pytest.approx(whole.beta, rel=1e-8)
    betas = np.array([0.0, 1e-3, 0.1, 1.0, 3.0])
    for one, other in zip(
        streamed.curve(betas, derivative=True), whole.curve(betas, derivative=True), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    assert streamed.alpha == pytest.approx(whole.alpha, rel=1e-8)
    for beta in (0.0, 0.4, 1.0):
        one, other = (each.posterior_at(beta) for each in (streamed, whole))
        np.testing.assert_allclose(one.mean, other.mean, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(one.cov, other.cov, rtol=1e-9, atol=1e-12)
    if isinstance(model, models.NormalInverseGammaLinear):
        assert streamed.posterior.b == pytest.approx(whole.posterior.b, rel=1e-8)


@pytest.mark.parametrize("scales", [[1e6, 1.0, 1e-3], [1e9, 1.0, 1.0]], ids=str)
@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
def test_columns_on_any_scale(scales, shift):
    X, y, _ = some_rows(3000, 3, scales)
    X[:, 1] += shift  # far from zero, beside a column of ones: nearly collinear
    X[:, 2] = 1.0
    model = models.GaussianLinear(prior_cov=1e2)
    streamed = one_pass(model, blocks_of_arrays(X, y, rows=500), bounds=(0, 1e3))
    whole = in_memory(model, X, y, None, fold_numbers(3000, 10))
    betas = np.array([1e-3, 1.0, 1e3])
    np.testing.assert_allclose(streamed.curve(betas), whole.curve(betas), rtol=1e-7)


def test_the_cut_into_blocks_does_not_matter():
    X, y, _ = some_rows(100)
    results = [one_pass(MODELS[0], blocks_of_arrays(X, y, rows=rows)) for rows in (1, 64, 100)]
    assert [each.beta for each in results] == pytest.approx([results[0].beta] * 3, rel=1e-9)


def test_blocks_without_rows_do_not_matter():
    X, y, weights = some_rows(100)
    weights[20:40] = 0.0
    nothing, idle = slice(0, 0), slice(20, 40)
    cuts = [nothing, slice(0, 20), idle, nothing, slice(40, 100), nothing]
    blocks = [(X[cut], y[cut], weights[cut]) for cut in cuts]
    found = one_pass(MODELS[0], [([], []), *blocks])
    kept = weights > 0
    expected = one_pass(MODELS[0], [(X[kept], y[kept], weights[kept])])
    assert found.beta == pytest.approx(expected.beta, rel=1e-9)
    assert found.data.size == pytest.approx(weights.sum())


@pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")
def test_squares_that_vanish_do_not_matter():
    X, y, _ = some_rows(300, 2, 1e-200)
    model = models.GaussianLinear(prior_cov=1e300)
    found = one_pass(model, blocks_of_arrays(X, y, rows=90), "bayes").posterior
    expected = calibrate(model, X, y, "bayes").posterior
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-11)
    assert np.all(found.mean != 0)


def test_folds_are_the_same_however_many_are_drawn_at_a_time(monkeypatch):
    expected = fold_numbers(5000, 7, seed=4)
    monkeypatch.setattr("temperance.streaming.folds.DRAWN", 7)
    np.testing.assert_array_equal(fold_numbers(5000, 7, seed=4), expected)


def test_other_strategies_in_one_pass():
    X, y, weights = some_rows(100)
    halves = fold_numbers(100, 2)

    def blocks():
        return blocks_of_arrays(X, y, weights, rows=50)

    one_way = one_pass(MODELS[0], blocks(), strategies.SampleSplitting(shuffle=True))
    expected = in_memory(MODELS[0], X, y, weights, np.where(halves == 1, 0, -1))
    assert one_way.risk == pytest.approx(expected.risk, rel=1e-9)
    both = strategies.SampleSplitting("alpha", shuffle=True, both_directions=True)
    expected = in_memory(MODELS[0], X, y, weights, halves, "alpha")
    assert one_pass(MODELS[0], blocks(), both).risk == pytest.approx(expected.risk)
    bayes = one_pass(MODELS[0], blocks(), strategies.Bayes())
    expected = calibrate(MODELS[0], X, y, "bayes", weights=weights, risk="gibbs")
    assert (bayes.beta, bayes.risk) == (1.0, pytest.approx(expected.risk, rel=1e-10))
    assert np.isnan(bayes.standard_error)
    assert one_pass(MODELS[0], blocks(), strategies.Naive()).beta == 3.0


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
def test_errors_and_ranges_are_those_between_the_folds_of_rows_in_memory(model):
    X, y, weights = some_rows()
    folds = fold_numbers(90, 10)
    streamed = one_pass(model, blocks_of_arrays(X, y, weights, rows=20))
    whole = in_memory(model, X, y, weights, folds)
    table = replace(whole.table, groups=folds)
    grouped = replace(whole, table=table)
    for name in ("standard_error", "gain_standard_error", "beta_range"):
        found, expected = (getattr(each, name) for each in (streamed, grouped))
        assert found == pytest.approx(expected, rel=1e-6)
    loss, bayes = (table.at(np.array([beta]))[0] for beta in (streamed.beta, 1.0))
    share = np.bincount(folds, weights)
    means, gains = (np.bincount(folds, weights * each) / share for each in (loss, bayes - loss))
    for losses, error in ((means, streamed.standard_error), (gains, streamed.gain_standard_error)):
        away = losses - share @ losses / share.sum()
        # The ten folds are the observations: with equal weights, their deviation over root ten.
        count = share.sum() ** 2 / (share**2).sum()
        expected = np.sqrt(share @ away**2 / share.sum() / (count - 1))
        assert error == pytest.approx(expected, rel=1e-6)
    assert "±" in repr(streamed)
    assert "by KFold(n_folds=10, transfer='beta', duplicates='apart')" in repr(streamed)


@pytest.mark.parametrize(("n", "d", "noise"), [(300, 7, 3.0), (100, 50, 5.0)])
@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
def test_errors_between_folds_are_honest(n, d, noise):
    """In root mean square they are those over rows, or a little larger, and say what varies."""
    found, errors, over_rows = np.zeros((3, 100, 2))
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, d))
        y = X[:, 0] + noise * rng.standard_normal(n)
        streamed = one_pass(models.GaussianLinear(), [(X, y)], seed=seed)
        whole = in_memory(models.GaussianLinear(), X, y, None, fold_numbers(n, 10, seed))
        found[seed] = streamed.risk, streamed.gain
        errors[seed] = streamed.standard_error, streamed.gain_standard_error
        over_rows[seed] = whole.standard_error, whole.gain_standard_error
    rms, rms_of_rows = (np.sqrt((each**2).mean(axis=0)) for each in (errors, over_rows))
    assert np.all((0.9 < rms / rms_of_rows) & (rms / rms_of_rows < 1.5))
    varies = found.std(axis=0, ddof=1)
    if n > 10 * d:
        assert rms[0] == pytest.approx(varies[0], rel=0.2)
    else:  # the risks of folds that share most of their rows vary together, differences less
        assert rms[1] == pytest.approx(varies[1], rel=0.25)


def test_without_folds_there_are_no_errors():
    X, y, _ = some_rows()
    bayes = one_pass(MODELS[0], [(X, y)], "bayes")
    assert np.isnan(bayes.standard_error) and bayes.beta_range == (1.0, 1.0)


def test_levels_are_those_of_all_rows():
    X, y, weights = some_rows(200, 5)
    X[:, 0] = 1.0
    for model in (models.HierarchicalLinear(), models.HierarchicalLinear(2.0, intercept=False)):
        found = one_pass(model, blocks_of_arrays(X, y, weights, rows=60))
        splits = strategies.FromSplitter(PredefinedSplit(fold_numbers(200, 10)))
        whole = calibrate(model, X, y, splits, weights=weights, risk="gibbs")
        np.testing.assert_allclose(found.curve(BETAS), whole.curve(BETAS), rtol=1e-10)
        assert found.beta == pytest.approx(whole.beta, rel=1e-7)
        np.testing.assert_allclose(found.posterior.mean, whole.posterior.mean, rtol=1e-7)
    X[3, 0] = -1.0  # a column whose squares are all 1
    with pytest.raises(ValueError, match="^X must begin with a column of ones, or intercept must"):
        one_pass(models.HierarchicalLinear(), [(X, y)])


def test_memory_does_not_grow_with_the_rows():
    def blocks(count):
        rng = np.random.default_rng(0)
        for _ in range(count):
            X = rng.standard_normal((4000, 20))
            yield X, X[:, 0] + rng.standard_normal(4000)

    peaks = []
    for count in (20, 80):
        tracemalloc.start()
        one_pass(models.GaussianLinear(), blocks(count))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.15 * peaks[0]  # sums in a tree: one more level
    assert peaks[1] < 80 * 4000 * 20 * 8 / 4  # negative control: all rows would not fit in that


def test_arrays_on_disk(tmp_path):
    X, y, _ = some_rows()
    for name, array in (("X", X), ("y", y)):
        np.save(tmp_path / f"{name}.npy", array)
    mapped = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("X", "y"))
    from_disk = one_pass(MODELS[0], blocks_of_arrays(*mapped, rows=100))
    assert from_disk.beta == one_pass(MODELS[0], [(X, y)]).beta


def test_parquet_files(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y, _ = some_rows(500, 4)
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(response=y, note="text")
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=120)
    blocks = blocks_of_parquet(path, "response", columns=list("abcd"), rows=50)
    assert len(list(blocks)) == len(list(blocks)) == 10
    found = one_pass(models.GaussianLinear(), blocks)
    expected = one_pass(models.GaussianLinear(), [(X, y)])
    assert found.risk == pytest.approx(expected.risk, rel=1e-12)
    with pytest.raises(ValueError, match="^column 'note' must hold real numbers, got "):
        list(blocks_of_parquet(path, "response"))
    with pytest.raises(ValueError, match="^target must be among .*, got 'price'$"):
        list(blocks_of_parquet(path, "price"))
    block = next(iter(blocks_of_parquet(path, "response", rows=50, columns=["b", "a"])))
    np.testing.assert_array_equal(block[0], X[:50, [1, 0]])


BAD_COLUMNS = {
    "target": (["a", "response"], "columns must not hold the target, got 'response' among them"),
    "target alone": (["response"], "columns must not hold the target, got 'response' among them"),
    "twice": (["a", "b", "a"], "columns must have names of their own, got 'a' twice"),
    "none": ([], "columns must name at least one input beside 'response', got none"),
    "unknown": (["a", "z"], "columns must be among ['a', 'b', 'response'], got 'z'"),
    "missing": (None, "column 'b' must have no missing values, got one in row 13"),
}


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_bad_columns_of_parquet_files(case, tmp_path):
    pandas = pytest.importorskip("pandas")
    columns, message = BAD_COLUMNS[case]
    values = np.arange(30)
    frame = pandas.DataFrame({"a": values, "b": values, "response": values})
    frame["b"] = frame["b"].astype("Int64").mask(values == 13)
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError) as raised:
        list(blocks_of_parquet(tmp_path / "rows.parquet", "response", columns, rows=7))
    assert str(raised.value) == message


@pytest.mark.parametrize("damage", ["absent", "cut", "no file", "empty", "text", "flipped"])
def test_damaged_parquet_files_are_named(damage, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y, _ = some_rows(500, 4)
    path = tmp_path / "rows.parquet"
    pandas.DataFrame(X, columns=list("abcd")).assign(y=y).to_parquet(path)
    content = bytearray(path.read_bytes())
    if damage == "absent":
        path.unlink()
    elif damage == "no file":
        path = tmp_path
    else:
        content[len(content) // 2 :: 7] = b"#" * len(content[len(content) // 2 :: 7])
        path.write_bytes(
            {"cut": content[:300], "empty": b"", "text": b"a,y\n1,2\n", "flipped": content}[damage]
        )
    with pytest.raises(ValueError) as raised:
        list(blocks_of_parquet(path, "y"))
    assert str(raised.value).startswith(f"{str(path)!r} cannot be read as a Parquet file: ")
    assert "\n" not in str(raised.value)


def test_folds_are_even_and_depend_on_the_place_alone():
    folds = fold_numbers(5003, 10, seed=1)
    counts = np.bincount(folds, minlength=10)
    assert np.ptp(counts) <= 1
    np.testing.assert_array_equal(fold_numbers(1234, 10, seed=1), folds[:1234])
    assert not np.array_equal(fold_numbers(5003, 10, seed=2), folds)


X, Y, _ = some_rows(30, 3)
BAD = {
    "model": (
        lambda: one_pass(models.Polynomial(3), [(X, Y)]),
        "model must be GaussianLinear, NormalInverseGammaLinear, HierarchicalLinear, Laplace",
    ),
    "strategy": (
        lambda: one_pass(MODELS[0], [(X, Y)], strategies.SafeBayes()),
        r"strategy must be KFold, SampleSplitting\(shuffle=True\), Naive or Bayes, LeaveOneOut or "
        r"Stacking of these on blocks and partitions, where equal rows are not seen, got SafeBayes",
    ),
    "halves": (
        lambda: one_pass(MODELS[0], [(X, Y)], strategies.SampleSplitting()),
        r"strategy must be .* got SampleSplitting\(transfer='beta', shuffle=False",
    ),
    "duplicates": (
        lambda: one_pass(MODELS[0], [(X, Y)], strategies.KFold(duplicates="together")),
        "strategy must be .* got KFold",
    ),
    "not blocks": (
        lambda: one_pass(MODELS[0], 3),
        r"blocks must be an iterable of \(X, y\) or \(X, y, weights\), got 3",
    ),
    "an array": (
        lambda: one_pass(MODELS[0], X),
        r"blocks must hold \(X, y\) or \(X, y, weights\), got ndarray as partition 0",
    ),
    "empty": (
        lambda: one_pass(MODELS[0], []),
        r"blocks must hold at least one block, got none \(a generator can be read only once\)",
    ),
    "too few": (
        lambda: one_pass(MODELS[0], [(X[:9], Y[:9])]),
        r"X must have a row in every fold of KFold\(.*\), got none in one of them out of 9 rows",
    ),
    "columns": (
        lambda: one_pass(MODELS[0], [(X, Y), (X[:, :2], Y)]),
        "X must have 3 columns in every partition, got 2 in partition 1",
    ),
    "nan": (
        lambda: one_pass(MODELS[0], [(X, Y), (X, Y * np.nan)]),
        "partition 1: y must be finite, got nan in row 0",
    ),
    "huge": (
        lambda: one_pass(replace(MODELS[0], prior_mean=0.0), [(X * 1e200, Y)]),
        "X and y must be of a size whose squares are finite, also times weights, prior variances",
    ),
    "huge with weights": (
        lambda: one_pass(MODELS[0], [(X, Y), (X * 1e300, Y, np.full(30, 1e30))]),
        "partition 1: X and y times the roots of the weights must be finite, got -?inf in row 0",
    ),
    "weights": (
        lambda: one_pass(MODELS[0], [(X, Y, np.full(30, 1e308))]),
        r"partition 0: weights must have a finite sum, got up to 1e\+308",
    ),
    "weights of all blocks": (
        lambda: one_pass(MODELS[0], [(X, Y, np.full(30, 5e306))] * 3, "bayes"),
        "weights must have a finite sum over all rows, got infinity",
    ),
    "no weight": (
        lambda: one_pass(MODELS[0], [(X, Y, np.zeros(30))]),
        "X must have at least one row of positive weight, got none",
    ),
    "reference": (
        lambda: one_pass(MODELS[0], [(X, Y)], strategies.ReferenceRisk()),
        "ReferenceRisk needs rows in memory: use calibrate",
    ),
    "folds": (
        lambda: one_pass(MODELS[0], [(X, Y)], strategies.KFold(10**15)),
        r"n_folds=1000000000000000 would take 2\.4e\+16 bytes of memory, ",
    ),
    "no arrays": (
        lambda: blocks_of_arrays(X, None),
        "y must be an array of rows, got NoneType",
    ),
    "lengths": (
        lambda: blocks_of_arrays(X, Y[:3]),
        r"X, y must have the same length, got \[30, 3\]",
    ),
    "bayes": (
        lambda: one_pass(MODELS[0], [(X, Y)], strategies.Bayes(), bounds=(2, 3)),
        "bounds must contain beta = 1 for Bayes",
    ),
    "prior": (
        lambda: one_pass(replace(MODELS[0], prior_cov=[1.0, 2.0]), [(X, Y)]),
        "prior_cov must be a scalar or have shape",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_line(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=f"^{message}") as raised:
        call()
    assert "\n" not in str(raised.value)


def test_rows_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e6)
    monkeypatch.setattr("temperance.streaming.accumulate.MANY", 1000)
    blocks = [(np.zeros((20, 5000)), np.zeros(20))]
    message = (
        "^20 rows of 5000 columns would take 1.6e\\+06 bytes of memory, 1e\\+06 are available$"
    )
    with pytest.raises(ValueError, match=message):
        one_pass(MODELS[0], blocks)
