"""The explorer: its curves and choices are the library's, and the page does what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from browser import Visit
from sklearn.model_selection import PredefinedSplit

from temperance import calibrate, expected_risk, models
from temperance.strategies import FromSplitter, LeaveOneOut, ReferenceRisk, SafeBayes

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explorer.html"
BETAS = np.array([0.0, 1e-3, 0.02, 0.1, 0.5, 1.0, 2.0, 3.0])
COMPUTE = (
    "options => { const {values, choices} = explorer.compute(options); return [values, choices]; }"
)
# Rows, columns, the variance that the model believes, the true one.
PROBLEMS = {
    "square": (40, 40, 8.0, 64.0),
    "tall": (120, 7, 0.5, 6.0),
    "wide": (16, 40, 0.25, 0.25),
    "one column": (30, 1, 4.0, 1.0),
    "scales far above their prior": (60, 20, 0.06, 64.0),
    "right": (60, 20, 4.0, 4.0),
}


def problem(n, d, believed, actual, seed=4):
    rng = np.random.default_rng(seed)
    X, theta = rng.standard_normal((n, d)), rng.standard_normal(d)
    y = X @ theta + np.sqrt(actual) * rng.standard_normal(n)
    return X, y, theta, rng.permutation(n) % 10


@pytest.fixture(scope="module")
def page(browser):
    visit = Visit(browser, PAGE)
    yield visit.page
    visit.close()


@pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")
@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_curves_and_choices_are_the_librarys(page, name, risk):
    n, d, believed, actual = PROBLEMS[name]
    X, y, theta, folds = problem(n, d, believed, actual)
    options = {"X": X.tolist(), "y": y.tolist(), "noise": believed, "folds": folds.tolist()}
    options |= {"risk": risk, "betas": BETAS.tolist(), "theta": theta.tolist(), "actual": actual}
    values, choices = page.evaluate(COMPUTE, options)
    model = models.GaussianLinear(noise_variance=believed)
    rules = {
        "k-fold": FromSplitter(PredefinedSplit(folds)),
        "leave-one-out": LeaveOneOut(),
        "reference-risk": ReferenceRisk(),
        "safe-bayes": SafeBayes(),
    }
    for rule, strategy in rules.items():
        calibration = calibrate(model, X, y, strategy, risk=risk)
        assert values[rule] == pytest.approx(calibration.curve(BETAS), rel=1e-6), rule
        assert choices[rule] == pytest.approx(calibration.beta, rel=1e-6), rule
    assert choices["bayes"] == 1.0


def test_one_problem_is_vetoed():
    """Otherwise the problems above would not try leave-one-out's veto."""
    X, y, _, _ = problem(*PROBLEMS["wide"])
    model = models.GaussianLinear(noise_variance=PROBLEMS["wide"][2])
    vetoed, free = (
        calibrate(model, X, y, ReferenceRisk(veto=veto), risk="predictive").beta
        for veto in (2.0, None)
    )
    assert 0 < vetoed < free


def test_true_risk_is_that_of_a_new_row(page):
    n, d, believed, actual = PROBLEMS["square"]
    X, y, theta, _ = problem(n, d, believed, actual)
    options = {"X": X.tolist(), "y": y.tolist(), "noise": believed, "betas": BETAS.tolist()}
    options |= {"theta": theta.tolist(), "actual": actual}
    model = models.GaussianLinear(noise_variance=believed)
    # Rows with the second moments of new ones: E zz' = I, E (y - z'theta)^2 = actual.
    Z = np.sqrt(d) * np.eye(d)
    rows = (
        np.concatenate([Z, Z]),
        np.concatenate([Z @ theta - actual**0.5, Z @ theta + actual**0.5]),
    )
    true = [expected_risk(model, (X, y), rows, beta * n, risk="gibbs") for beta in BETAS]
    values, _ = page.evaluate(COMPUTE, options)
    assert values["truth"] == pytest.approx(true, rel=1e-6)
    # The predictive risk is an average over 400 inputs; here are others.
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((20_000, d))
    rows = Z, Z @ theta + np.sqrt(actual) * rng.standard_normal(20_000)
    true = [expected_risk(model, (X, y), rows, beta * n, risk="predictive") for beta in BETAS]
    values, _ = page.evaluate(COMPUTE, options | {"risk": "predictive"})
    assert values["truth"] == pytest.approx(true, rel=0.05)


def test_inputs_that_are_kept_change_no_number(page):
    """A slider of the noise reads the eigenvectors of the last inputs again; copies are new."""
    moved, fresh = page.evaluate(
        """() => {
          const first = explorer.draw({n: 60, d: 20, actual: 9, sparse: false, seed: 3});
          explorer.compute({...first, noise: 1});
          const {X, y} = explorer.draw({n: 60, d: 20, actual: 4, sparse: false, seed: 3});
          if (X !== first.X) throw new Error("the inputs were drawn again");
          const values = X => explorer.compute({X, y, noise: 2, betas: [0, 0.1, 1, 3]}).values;
          return [values(X), values(X.map(z => [...z]))];
        }"""
    )
    for rule, values in fresh.items():
        assert moved[rule] == pytest.approx(values, rel=1e-12), rule


@pytest.fixture
def visit(browser):
    opened = []

    def open_at(width):
        opened.append(Visit(browser, PAGE, width=width))
        return opened[-1]

    yield open_at
    for each in opened:
        each.close()


@pytest.mark.parametrize("width", [1200, 375])
def test_opens_quietly_and_fits(visit, width):
    seen = visit(width)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.page.locator("#curves path[data-name]").count() == 5
    assert seen.page.locator("#curves [data-mark]").count() == 5
    assert seen.said == []
    assert seen.asked == [seen.own]


def test_controls_have_labels_and_move_the_curves(visit):
    seen = visit(1200)
    page = seen.page
    unnamed = page.eval_on_selector_all(
        "input, select", "all => all.filter(e => !e.labels.length).map(e => e.id)"
    )
    assert unnamed == []
    before = page.locator("#curves").inner_html()
    page.focus("#actual")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(
        "before => document.querySelector('#curves').innerHTML !== before", arg=before
    )
    assert page.locator("output[for=actual]").text_content() == "54"
    page.check("input[value=predictive]")
    page.wait_for_function(
        "document.querySelector('#risk-words').textContent.includes('log density')"
    )
    page.uncheck("[data-show=safe-bayes]")
    assert page.locator("#curves path[data-name]").count() == 4
    assert seen.said == []


def test_repeats_fill_boxes(visit):
    seen = visit(1200)
    page = seen.page
    page.select_option("#preset", "the model is right")
    page.locator("#n").fill("20")
    page.locator("#d").fill("2")
    page.click("#repeat")
    page.wait_for_selector("#boxes:not([hidden])", timeout=60_000)
    assert page.locator("#boxes [data-box]").count() == 5
    page.locator("#n").fill("30")  # the boxes are those of other settings
    assert page.locator("#boxes").is_hidden()
    assert seen.said == []
