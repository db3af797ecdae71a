"""The pages do what they say: code runs, output is what is shown, links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import shlex
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.model_selection import TimeSeriesSplit

import temperance
from temperance import calibrate, expected_risk, messages, models, strategies
from temperance.checks import as_data
from temperance.extend import gain_of
from temperance.protocols import Model, Posterior, Strategy
from temperance.strategies import (
    Bootstrap,
    FromSplitter,
    KFold,
    LeaveOneOut,
    Naive,
    Oracle,
    SafeBayes,
    SampleSplitting,
    Stacking,
)

ROOT = Path(__file__).resolve().parents[1]
SLOW = {
    "any-model.md",
    "command-line.md",
    "from-draws.md",
    "groups-and-time.md",
    "losses.md",
    "neural-networks.md",
    "numpyro.md",
    "pymc.md",
    "stan.md",
}
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")

ignore_warnings = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")


class Block(NamedTuple):
    """Code, the line on which it begins, and the output shown right behind it, if any."""

    code: str
    line: int
    output: str | None


def blocks(text: str, language: str) -> list[Block]:
    found = list(BLOCK.finditer(text))
    matching = []
    for block, after in itertools.zip_longest(found, found[1:]):
        if block[1] != language:
            continue
        adjacent = after is not None and not text[block.end() : after.start()].strip()
        shown = after[2] if adjacent and after[1] == "text" else None
        matching.append(Block(block[2], text.count("\n", 0, block.start(2)), shown))
    return matching


def command(line: str) -> str:
    """Run the command ``temperance`` on a narrow page and return what it prints."""
    from typer.testing import CliRunner

    from temperance.app.cli.app import app

    program, *words = shlex.split(line)
    assert program == "temperance"
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def run_page(text: str, name: str) -> dict:
    """Run the blocks of a page in one namespace and compare what they print.

    Commands are run where their output is shown.
    """
    namespace = {"__name__": "page"}
    for block in blocks(text, "sh"):
        if block.output is not None:
            assert _lines(command(block.code)) == _lines(block.output), f"{name}:{block.line}"
    for block in blocks(text, "python"):
        printed = io.StringIO()
        code = compile("\n" * block.line + block.code, name, "exec", dont_inherit=True)
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if block.output is not None and printed.getvalue():
            assert _lines(printed.getvalue()) == _lines(block.output), f"{name}:{block.line}"
    return namespace


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def headings(text: str) -> set[str]:
    """Anchors that a page offers."""
    titles = re.findall(r"^#+ (.+)$", BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(text: str, page: Path) -> list[str]:
    broken = []
    for link in LINK.findall(BLOCK.sub("", text)):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        inside = target == ROOT or ROOT in target.parents
        if not inside or not target.exists():
            broken.append(link)
        elif anchor and anchor not in headings(target.read_text()):
            broken.append(link)
    return broken


@pytest.fixture
def aside(tmp_path, monkeypatch):
    """Pages may draw, save pictures and silence warnings without leaving a trace."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        yield
    from matplotlib import pyplot

    pyplot.close("all")


def run_in_turn(page):
    """Pages that sample or compare all strategies take long."""
    marks = pytest.mark.slow if page.name in SLOW else ()
    return pytest.param(page, marks=marks, id=page.name)


@pytest.mark.parametrize("page", [run_in_turn(page) for page in PAGES])
def test_page_runs(page, aside):
    run_page(page.read_text(), str(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page):
    assert broken_links(page.read_text(), page) == []


def test_every_public_name_is_documented():
    text = "\n".join(page.read_text() for page in PAGES)
    classes = [name for name in vars(messages) if name.endswith("Warning")]
    public = [
        *temperance.__all__,
        *temperance.ESTIMATORS,
        *models.__all__,
        *strategies.__all__,
        *classes,
    ]
    words = set(re.findall(r"\w+", text))
    assert [name for name in public if name not in words] == []


def test_every_strategy_name_is_documented():
    text = "\n".join(page.read_text() for page in PAGES)
    names = strategies.NAMES | strategies.FOR_SOME_MODELS | strategies.RATES
    assert [name for name in names if f'"{name}"' not in text] == []


class TestTheChecksSeeFaults:
    """Negative controls: each check above must fail on a page that is wrong."""

    def test_wrong_output(self):
        with pytest.raises(AssertionError, match="page.md:1"):
            run_page("```python\nprint(2)\n```\n\n```text\n3\n```\n", "page.md")

    def test_wrong_output_of_a_command(self):
        with pytest.raises(AssertionError, match="page.md:1"):
            run_page("```sh\ntemperance --version\n```\n\n```text\n3\n```\n", "page.md")

    def test_right_output(self):
        namespace = run_page("```python\nx = 2\nprint(x)\n```\n\n```text\n2\n```\n", "page.md")
        assert namespace["x"] == 2

    def test_text_further_down_is_not_output(self):
        run_page("```python\nprint(2)\n```\nwords\n```text\n3\n```\n", "page.md")

    def test_error_names_its_line(self):
        with pytest.raises(ZeroDivisionError) as error:
            run_page("words\n\n```python\n\n1 / 0\n```\n", "page.md")
        assert error.traceback[-1].lineno + 1 == 5

    def test_broken_links(self):
        text = "[a](nowhere.md) [b](notation.md#nowhere) [c](notation.md#transfer) [d](../../x)"
        wrong = ["nowhere.md", "notation.md#nowhere", "../../x"]
        assert broken_links(text, ROOT / "docs" / "page.md") == wrong


@pytest.fixture(scope="module")
def model_page():
    return run_page((ROOT / "docs" / "add-a-model.md").read_text(), "add-a-model.md")


@pytest.fixture(scope="module")
def poisson(model_page):
    return model_page["PoissonRate"](a=3.0, b=0.7)


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(11)
    return rng.poisson(rng.gamma(2.0, 2.0, size=24)).astype(float)


@pytest.fixture(scope="module")
def strategy_page():
    return run_page((ROOT / "docs" / "add-a-strategy.md").read_text(), "add-a-strategy.md")


PLANS = {
    "naive": Naive(),
    "halves, alpha": SampleSplitting(transfer="alpha"),
    "folds, beta": KFold(5),
    "folds, alpha": KFold(5, transfer="alpha"),
    "leave-one-out, alpha": LeaveOneOut(transfer="alpha"),
    "prefixes, alpha": SafeBayes(transfer="alpha", permutations=2),
    "resamples": Bootstrap(n_draws=7, out_of_bag=True),
}


def table_of(model, y, strategy, risk="gibbs", weights=None):
    rows, plan = strategy.planned(as_data(None, y, weights), np.random.default_rng(0))
    return model.held_out(rows, plan, risk, (0.0, 3.0))


class TestModelSkeleton:
    def test_keeps_the_contract(self, poisson, counts):
        assert isinstance(poisson, Model)
        assert isinstance(poisson.posterior(None, counts, 2.0), Posterior)

    def test_beta_one_is_the_textbook_posterior(self, poisson, counts):
        posterior = poisson.posterior(None, counts, alpha=len(counts))
        assert posterior.a == pytest.approx(3.0 + counts.sum(), rel=1e-14)
        assert posterior.b == pytest.approx(0.7 + len(counts), rel=1e-14)

    def test_alpha_zero_is_the_prior(self, poisson, counts):
        posterior = poisson.posterior(None, counts, alpha=0.0)
        assert (posterior.a, posterior.b) == (3.0, 0.7)

    @settings(max_examples=25, deadline=None)
    @given(
        repeats=st.lists(st.integers(0, 4), min_size=24, max_size=24).filter(any),
        beta=st.floats(0.0, 3.0),
    )
    def test_weight_is_repetition(self, poisson, counts, repeats, beta):
        weights = np.array(repeats)
        repeated = np.repeat(counts, weights)
        alpha = beta * len(repeated)
        ours = poisson.posterior(None, counts, alpha, weights)
        theirs = poisson.posterior(None, repeated, alpha)
        assert (ours.a, ours.b) == pytest.approx((theirs.a, theirs.b), rel=1e-12)
        for risk in ("gibbs", "predictive"):
            one = expected_risk(
                poisson, (None, counts, weights), (None, counts, weights), alpha, risk=risk
            )
            two = expected_risk(poisson, (None, repeated), (None, repeated), alpha, risk=risk)
            assert one == pytest.approx(two, rel=1e-10, abs=1e-12)

    @pytest.mark.parametrize("risk", ["gibbs", "predictive"])
    @pytest.mark.parametrize("strategy", PLANS.values(), ids=PLANS)
    def test_slope_is_a_finite_difference(self, poisson, counts, strategy, risk):
        table = table_of(poisson, counts, strategy, risk)
        at = np.array([1e-3, 0.1, 0.8, 2.5])
        step = 1e-4 * at
        difference = (table(at + step) - table(at - step)) / (2 * step)
        assert table(at, derivative=True)[1] == pytest.approx(difference, rel=1e-5, abs=1e-7)

    def test_slope_is_minus_a_covariance(self, poisson, counts):
        train, test, alpha = (None, counts[:12]), (None, counts[12:]), 9.0
        risk = {"risk": "gibbs", "derivative": True}
        _, slope = expected_risk(poisson, train, test, alpha, **risk)
        risk |= {"gradient": "covariance", "n_draws": 4000}
        estimates = [
            expected_risk(poisson, train, test, alpha, seed=seed, **risk)[1] for seed in range(25)
        ]
        error = np.std(estimates, ddof=1) / 5
        assert abs(np.mean(estimates) - slope) < 4 * error
        assert abs(np.mean(estimates) + slope) > 4 * error

    def test_gibbs_risk_is_the_mean_over_draws(self, poisson, counts):
        train, test = counts[:12], counts[12:]
        draws = poisson.posterior(None, train, alpha=9.0).sample(100_000, seed=1)
        losses = poisson.loss(draws, None, test).mean(axis=1)
        error = losses.std(ddof=1) / np.sqrt(len(losses))
        exact = expected_risk(poisson, (None, train), (None, test), 9.0, risk="gibbs")
        assert abs(losses.mean() - exact) < 4 * error
        naive = -stats.poisson.logpmf(test, draws[:50])
        assert poisson.loss(draws[:50], None, test) == pytest.approx(naive, abs=1e-9)

    def test_predictive_risk_is_that_of_a_negative_binomial(self, poisson, counts):
        train, test = counts[:12], counts[12:]
        posterior = poisson.posterior(None, train, alpha=9.0)
        log = stats.nbinom.logpmf(test, posterior.a, posterior.b / (1 + posterior.b))
        exact = expected_risk(poisson, (None, train), (None, test), 9.0)
        assert exact == pytest.approx(np.mean(-log), rel=1e-10)

    def test_posterior_is_a_gamma(self, poisson, counts):
        posterior = poisson.posterior(None, counts, alpha=9.0)
        gamma = stats.gamma(posterior.a, scale=1 / posterior.b)
        points = np.array([[0.5], [2.0], [4.0]])
        assert posterior.log_prob(points) == pytest.approx(gamma.logpdf(points[:, 0]), rel=1e-10)
        assert posterior.log_prob(points[0]) == pytest.approx(gamma.logpdf(0.5), rel=1e-10)
        draws = posterior.sample(20_000, seed=3)
        assert draws.shape == (20_000, 1)
        assert stats.kstest(draws[:, 0], gamma.cdf).pvalue > 1e-3
        new = stats.nbinom(posterior.a, posterior.b / (1 + posterior.b))
        mean, deviation = posterior.predict(np.empty((3, 0)))
        assert mean == pytest.approx([new.mean()] * 3)
        assert deviation == pytest.approx([new.std()] * 3)
        assert posterior.predict(None)[0].shape == (1,)

    @pytest.mark.parametrize("transfer", ["beta", "alpha"])
    def test_leave_one_out_is_n_folds(self, poisson, counts, transfer):
        betas = np.array([0.0, 0.3, 1.0, 3.0])
        folds = KFold(len(counts), transfer=transfer)
        one = table_of(poisson, counts, LeaveOneOut(transfer=transfer))(betas)
        assert one == pytest.approx(table_of(poisson, counts, folds)(betas), rel=1e-12)

    def test_row_losses_average_to_the_risk(self, poisson, counts):
        for strategy in PLANS.values():
            table = table_of(poisson, counts, strategy)
            mean = table.at(np.array([0.6]))[0] @ table.share
            assert mean == pytest.approx(table(0.6), rel=1e-12)

    def test_order_plays_no_part(self, poisson, counts):
        order = np.random.default_rng(0).permutation(len(counts))
        one = calibrate(poisson, None, counts, "leave-one-out")
        two = calibrate(poisson, None, counts[order], "leave-one-out")
        assert one.beta == pytest.approx(two.beta, abs=1e-6)

    @ignore_warnings
    @pytest.mark.parametrize("risk", ["gibbs", "predictive"])
    def test_every_strategy_calibrates_it(self, poisson, counts, strategy_page, risk):
        own = (
            strategy_page["RollingOrigin"](n_blocks=4),
            strategy_page["UnlessBayesWillDo"](n_folds=3),
            strategy_page["FixedBeta"](0.4, KFold(3)),
        )
        rules = (
            *(
                rule()
                for name, rule in strategies.NAMES.items()
                if name not in ("bootstrap", "k-fold", "stacking")
            ),
            *PLANS.values(),
            Bootstrap(n_draws=5),
            FromSplitter(TimeSeriesSplit(3)),
            Oracle(None, counts[::-1]),
            *own,
        )
        for rule in rules:
            choice = calibrate(poisson, None, counts, rule, risk=risk)
            assert 0 <= choice.beta <= 3
            assert choice.posterior.a == pytest.approx(3.0 + choice.beta * counts.sum())

    def test_forecasts_are_stacked(self, poisson, counts, strategy_page):
        for source in (None, strategy_page["RollingOrigin"](n_blocks=4)):
            choice = calibrate(poisson, None, counts, Stacking(source))
            assert choice.weights.weights.sum() == pytest.approx(1)
            sizes = [part.a for part in choice.posterior.parts]
            kept = choice.weights.without_negligible()
            assert sizes == pytest.approx(3.0 + kept.betas * counts.sum())

    @pytest.mark.parametrize("bad", [-1.0, 1.5])
    def test_refuses_what_is_no_count(self, poisson, counts, bad):
        with pytest.raises(ValueError, match=f"y must hold counts .*{bad}"):
            calibrate(poisson, None, [*counts, bad])

    def test_refuses_an_improper_prior(self, model_page):
        with pytest.raises(ValueError, match=r"b must be positive, got 0.0"):
            model_page["PoissonRate"](b=0.0)

    @pytest.mark.parametrize("risk", ["gibbs", "predictive"])
    def test_draws_alone_give_nearly_the_same_table(self, model_page, poisson, counts, risk):
        sampled = model_page["SampledPoissonRate"](a=3.0, b=0.7)
        betas = np.array([0.1, 1.0])
        exact = table_of(poisson, counts, SampleSplitting(), risk)
        drawn = table_of(sampled, counts, SampleSplitting(), risk)
        assert np.all(np.abs(drawn(betas) - exact(betas)) < 4 * drawn.error(betas))


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 30))
    return models.GaussianLinear(noise_variance=4.0), X, X[:, 0] + 4 * rng.standard_normal(60)


class TestStrategySkeletons:
    def test_keep_the_contract(self, strategy_page):
        for rule in ("RollingOrigin", "UnlessBayesWillDo"):
            assert isinstance(strategy_page[rule](), Strategy)
        assert isinstance(strategy_page["FixedBeta"](1.0), Strategy)

    @settings(max_examples=40, deadline=None)
    @given(blocks=st.integers(2, 9), gap=st.integers(0, 4), extra=st.integers(0, 20))
    def test_rolling_origin_never_looks_ahead(self, strategy_page, blocks, gap, extra):
        n = blocks * (gap + 1) + extra
        data = as_data(None, np.arange(n), np.arange(1, n + 1))
        rule = strategy_page["RollingOrigin"](n_blocks=blocks, gap=gap)
        plan = rule.plan(data, np.random.default_rng(0))
        assert plan.train.shape == (blocks - 1, n)
        for train, test in zip(plan.train > 0, plan.test > 0, strict=True):
            assert train.any()
            assert test.any()
            assert np.flatnonzero(train).max() + gap < np.flatnonzero(test).min()
        # Every row behind the first block is tested once, by its weight.
        first = np.flatnonzero(plan.test.any(axis=0)).min()
        assert np.array_equal(plan.test.sum(axis=0)[first:], data.weights[first:])

    @pytest.mark.parametrize("transfer", ["beta", "alpha"])
    def test_rolling_origin_is_a_time_series_split(self, strategy_page, regression, transfer):
        ours = calibrate(*regression, strategy_page["RollingOrigin"](n_blocks=5, transfer=transfer))
        theirs = calibrate(*regression, FromSplitter(TimeSeriesSplit(4), transfer=transfer))
        assert ours.beta == pytest.approx(theirs.beta, abs=1e-9)
        assert ours.risk == pytest.approx(theirs.risk, rel=1e-12)

    def test_rolling_origin_refuses_too_many_blocks(self, strategy_page, regression):
        with pytest.raises(ValueError, match=r"n_blocks must be at most 30 .*got 31"):
            calibrate(*regression, strategy_page["RollingOrigin"](n_blocks=31, gap=1))

    def test_unless_bayes_will_do_is_k_fold_or_bayes(self, strategy_page, regression):
        rule = strategy_page["UnlessBayesWillDo"]
        best = calibrate(*regression, KFold())
        assert best.gain > 0
        gain = gain_of(best.table, best.losses)
        clear = gain.mean / gain.error
        assert calibrate(*regression, rule(errors=0.9 * clear)).beta == best.beta
        assert calibrate(*regression, rule(errors=1.1 * clear)).beta == 1.0

    @pytest.mark.parametrize("risk", ["gibbs", "predictive"])
    def test_fixed_beta_reports_what_k_fold_estimates(self, strategy_page, regression, risk):
        best = calibrate(*regression, KFold(), risk=risk)
        fixed = calibrate(*regression, strategy_page["FixedBeta"](best.beta), risk=risk)
        for name in ("beta", "risk", "standard_error", "bayes_risk", "gain_standard_error", "gain"):
            assert getattr(fixed, name) == pytest.approx(getattr(best, name), rel=1e-12)
        assert "FixedBeta" in repr(fixed)

    def test_fixed_beta_refuses_what_is_out_of_bounds(self, strategy_page, regression):
        with pytest.raises(ValueError, match=r"beta must lie within bounds .*got 4.0"):
            calibrate(*regression, strategy_page["FixedBeta"](4.0))
        with pytest.raises(ValueError, match=r"beta must be non-negative, got -1.0"):
            strategy_page["FixedBeta"](-1.0)


class TestComparison:
    def test_the_page_shows_its_strategies_and_settings(self):
        from temperance_studies.thesis.defaults import page as default_page
        from temperance_studies.thesis.defaults import settings as default_settings

        page = (ROOT / "docs" / "evidence-defaults.md").read_text()
        groups = default_settings.REGRESSIONS | default_settings.CLASSIFICATIONS
        problems = [name for group in groups.values() for name in group()]
        shown = [*default_page.STRATEGIES, *problems]
        shown.remove("reference risk, copies apart")  # a column
        assert [name for name in shown if f"| {name} |" not in page] == []


def mapped():
    """Return the paths that CONTRIBUTING's map names, from its indentation."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    block = text.split("## Where things live")[1].split("```text\n")[1].split("```")[0]
    paths, parents = [], []
    for line in block.splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        parents[depth:] = [name.rstrip("/")]
        paths.append("/".join(parents))
    return paths


def test_the_map_names_what_is_there():
    missing = [path for path in mapped() if not (ROOT / path).exists()]
    assert not missing


@pytest.mark.parametrize("package", ["src/temperance", "src/temperance_studies"])
def test_the_map_has_every_package_and_every_file_at_the_top(package):
    named = set(mapped())
    folders = {each.parent for each in (ROOT / package).rglob("__init__.py")}
    wanted = {each.relative_to(ROOT).as_posix() for each in folders}
    if package == "src/temperance":
        wanted |= {each.relative_to(ROOT).as_posix() for each in (ROOT / package).glob("*.py")}
    assert wanted <= named


def test_the_top_of_the_library_stays_small():
    assert len(list((ROOT / "src" / "temperance").glob("*.py"))) <= 17
