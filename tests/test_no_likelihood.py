"""Where the loss is no likelihood, nothing is called Bayes and beta = 1 is no landmark."""

from __future__ import annotations

import numpy as np
import pytest

from temperance import calibrate, models
from temperance.app.explanation import explain
from temperance.calibration import has_likelihood
from temperance.losses import Hinge, Huber, Pinball, Poisson
from temperance.strategies import Bayes, KFold, Sandwich


def rows(n=60):
    random = np.random.default_rng(3)
    X = np.column_stack([np.ones(n), random.normal(size=n)])
    return X, X @ [1.0, 2.0] + random.standard_t(3, size=n)


def chosen(loss, strategy, **options):
    X, y = rows()
    if loss.binary:
        y = (y > np.median(y)).astype(float)
    return calibrate(models.GibbsLinear(loss), X, y, strategy, seed=0, **options)


LOSSES = [Pinball(0.8), Hinge(), Huber(1.0)]


def test_models_say_whether_their_loss_is_a_likelihood():
    assert not has_likelihood(models.GibbsLinear(Pinball(0.5)))
    assert has_likelihood(models.GibbsLinear(Poisson()))
    assert has_likelihood(models.LaplaceLogistic())
    assert has_likelihood(models.GaussianLinear())


@pytest.mark.filterwarnings("ignore::temperance.messages.PriorWarning")  # N(0, 1), for margins
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("strategy", [KFold(4), Sandwich()], ids=["risk", "rule"])
def test_no_word_of_bayes(loss, strategy):
    result = chosen(loss, strategy, bounds=(0.0, 50.0))
    assert "beta" in repr(result)
    assert "Bayes" not in repr(result)
    assert "Bayes" not in explain(result)
    assert "1 is no landmark" in explain(result)


def test_there_is_no_gain_over_bayes():
    result = chosen(Pinball(0.5), KFold(4))
    assert np.isfinite([result.risk, result.standard_error]).all()
    assert np.isnan([result.bayes_risk, result.gain, result.gain_standard_error]).all()
    assert result.versus_bayes == "no likelihood"


def test_a_likelihood_keeps_its_landmark():
    result = chosen(Hinge(), KFold(4))
    X, y = rows()
    counts = calibrate(models.GibbsLinear(Poisson()), X, np.floor(np.exp(y / 4)), KFold(4))
    assert "Bayes is beta = 1" in repr(counts)
    assert np.isfinite(counts.gain)
    assert "Bayes" not in repr(result)


def test_the_plot_marks_the_choice_alone():
    pytest.importorskip("matplotlib").use("Agg")
    axes = chosen(Pinball(0.9), KFold(4)).plot()
    texts = [axes.get_xlabel(), axes.get_ylabel(), axes.get_title(loc="left")]
    texts += [each.get_text() for each in axes.get_legend().get_texts()]
    assert "weight of each loss" in texts[0]
    assert not any("Bayes" in text or "likelihood" in text for text in texts)
    assert not any(np.all(np.equal(line.get_xdata(), 1.0)) for line in axes.get_lines())


def test_bayes_is_for_likelihoods():
    with pytest.raises(ValueError, match="another than Bayes, which is for likelihoods"):
        chosen(Pinball(0.5), Bayes())


def test_a_flat_curve_stays_without_advice_to_keep_bayes():
    X, y = rows()
    model = models.GibbsLinear(Pinball(0.5))
    with pytest.warns(UserWarning, match="say nothing about it, use more data"):
        result = calibrate(model, 0 * X, y, KFold(4))
    assert "closest to 1" in repr(result)
    assert "Bayes" not in explain(result)
