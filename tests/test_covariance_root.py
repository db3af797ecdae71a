"""Covariance roots: the form for more columns than rows equals the dense one, in O(n d) memory."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from temperance import data as memory
from temperance import models
from temperance.posteriors import (
    CovarianceRoot,
    GaussianPosterior,
    GaussianRegressionPosterior,
    LogisticPosterior,
    LowRankRoot,
    NormalInverseGammaPosterior,
)
from temperance.posteriors.covariance_root import low_rank_root, squares_across

RNG = np.random.default_rng(7)
N, D = 5, 13
DIRECTIONS = np.linalg.qr(RNG.standard_normal((D, N)))[0]
SHRINKAGE = np.array([1e-4, 0.03, 0.5, 0.9, 1.0])
OUTER = {
    "diagonal": np.linspace(0.2, 3.0, D),
    "triangle": np.tril(RNG.standard_normal((D, D))) + 3 * np.eye(D),
}


@pytest.fixture(params=OUTER)
def roots(request):
    """A low-rank root, and the same as a matrix from its definition."""
    outer = OUTER[request.param]
    inner = np.eye(D) - DIRECTIONS @ np.diag(1 - SHRINKAGE) @ DIRECTIONS.T
    matrix = np.diag(outer) if outer.ndim == 1 else outer
    return LowRankRoot(outer, DIRECTIONS, SHRINKAGE), CovarianceRoot(matrix @ inner)


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_a_low_rank_root_is_the_matrix_that_it_stands_for(roots):
    small, dense = roots
    close(small.dense(), dense.outer)
    close(small.product(), dense.outer @ dense.outer.T)
    points = RNG.standard_normal((4, D))
    for name in ("transform", "squared_lengths", "squared_distances"):
        close(getattr(small, name)(points), getattr(dense, name)(points))
    close(small.variances(), np.diag(dense.product()))
    assert small.log_determinant == pytest.approx(dense.log_determinant, rel=1e-10)


def test_a_diagonal_root_is_a_matrix():
    deviations = np.array([0.1, 1.0, 4.0])
    vector, matrix = CovarianceRoot(deviations), CovarianceRoot(np.diag(deviations))
    points = RNG.standard_normal((4, 3))
    for name in ("transform", "squared_lengths", "squared_distances"):
        close(getattr(vector, name)(points), getattr(matrix, name)(points))
    for name in ("dense", "product", "variances"):
        close(getattr(vector, name)(), getattr(matrix, name)())
    assert vector.log_determinant == pytest.approx(matrix.log_determinant)


POSTERIORS = {
    "gaussian": lambda root: GaussianPosterior(np.arange(D) / D, root, np.asarray),
    "regression": lambda root: GaussianRegressionPosterior(np.arange(D) / D, root, np.asarray, 0.5),
    "logistic": lambda root: LogisticPosterior(np.arange(D) / D, root, np.asarray),
    "unknown variance": lambda root: NormalInverseGammaPosterior(
        np.arange(D) / D, root, 3.0, 2.0, np.asarray
    ),
}


@pytest.mark.parametrize("kind", POSTERIORS)
def test_posteriors_of_both_roots_are_the_same(kind, roots):
    small, dense = (POSTERIORS[kind](root) for root in roots)
    X = RNG.standard_normal((6, D))
    close(small.cov, dense.cov)
    draws = small.sample(3, seed=0)
    close(draws, dense.sample(3, seed=0))
    close(small.log_prob(draws), dense.log_prob(draws))
    assert np.ndim(small.log_prob(draws[0])) == 0
    for law, other in (
        (small.marginals(), dense.marginals()),
        (small.combination(X), dense.combination(X)),
    ):
        close(law.location, other.location)
        close(law.scale, other.scale)
    close(small.linear_predictor(X), dense.linear_predictor(X))
    if kind != "gaussian":
        close(small.predict(X), dense.predict(X))


def test_the_root_of_coordinates_in_a_span(roots):
    outer = roots[0].outer
    inner = np.linalg.qr(RNG.standard_normal((N, N)))[0] * SHRINKAGE
    found = low_rank_root(outer, DIRECTIONS, inner)
    across = np.eye(D) - DIRECTIONS @ DIRECTIONS.T
    whole = across + DIRECTIONS @ inner @ inner.T @ DIRECTIONS.T
    matrix = np.diag(outer) if outer.ndim == 1 else outer
    close(found.product(), matrix @ whole @ matrix.T)


def test_axes_within_the_span_lose_no_digits():
    directions = np.zeros((6, 3))
    directions[:2, :2] = [[0.6, -0.8], [0.8, 0.6]]  # the first two axes, turned
    directions[2:, 2] = 0.5
    close(squares_across(directions), [0, 0, 0.75, 0.75, 0.75, 0.75])
    variances = LowRankRoot(np.ones(6), directions, np.array([1e-8, 1e-8, 0.1])).variances()
    np.testing.assert_allclose(variances[:2], 1e-16, rtol=1e-8)  # 1 - 1 + 1e-16 is 0


WIDE = {
    "known variance": models.GaussianLinear(noise_variance=0.3, prior_mean=0.1, prior_cov=0.5),
    "unknown variance": models.NormalInverseGammaLinear(prior_cov=0.5),
    "laplace": models.LaplaceLogistic(prior_cov=0.5),
    "jaakkola": models.JaakkolaLogistic(prior_cov=0.5),
    "full": models.FullCovarianceLogistic(prior_cov=0.5),
}
PRIORS = {
    "scalar": lambda d: 0.5,
    "variances": lambda d: np.linspace(0.5, 2, d),
    "matrix": lambda d: 0.5 * np.eye(d) + 0.3,
}


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", WIDE)
def test_more_columns_than_rows_is_the_posterior_of_all_columns(name, prior):
    """S^-1 = S_0^-1 + Z' diag(c) Z, with the curvatures c that the posterior itself implies."""
    n, d = 6, 20
    X, y = RNG.standard_normal((n, d)), (np.arange(n) % 2).astype(float)
    cov = PRIORS[prior](d)
    posterior = replace(WIDE[name], prior_cov=cov).posterior(X, y, alpha=4.0)
    assert isinstance(posterior.root, LowRankRoot)
    whole = cov * np.eye(d) if np.ndim(cov) < 2 else cov
    S = posterior.root.product()
    change = np.linalg.inv(S) - np.linalg.inv(whole)
    curvatures = np.linalg.pinv(X).T @ change @ np.linalg.pinv(X)
    np.testing.assert_allclose(change, X.T @ np.diag(np.diag(curvatures)) @ X, atol=1e-9)
    if "variance" in name:
        noise = getattr(WIDE[name], "noise_variance", 1.0)
        np.testing.assert_allclose(np.diag(curvatures), 4.0 / n / noise, rtol=1e-10)
        m0 = np.full(d, WIDE[name].prior_mean)
        pull = np.linalg.solve(whole, m0) + X.T @ y * 4.0 / n / noise
        np.testing.assert_allclose(posterior.mean, S @ pull, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(posterior.linear_predictor(X)[1], np.diag(X @ S @ X.T), rtol=1e-9)


@pytest.mark.parametrize("name", WIDE)
def test_memory_grows_with_the_rows_not_with_the_square_of_the_columns(name):
    n, d = 6, 20_000
    X, y = RNG.standard_normal((n, d)), (np.arange(n) % 2).astype(float)
    new, theta = RNG.standard_normal((2, 3, d))
    tracemalloc.start()
    try:
        posterior = WIDE[name].posterior(X, y, alpha=4.0)
        posterior.marginals()
        posterior.predict(new)
        draws = posterior.sample(3, seed=0)
        posterior.log_prob(draws)
        posterior.combination(theta)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12 * X.nbytes


@pytest.mark.parametrize("ask", ["cov", "root.dense()"])
def test_a_covariance_that_does_not_fit_is_refused(ask, monkeypatch):
    posterior = models.GaussianLinear().posterior(np.ones((2, 30)), [1.0, 2.0], alpha=2.0)
    assert posterior.cov.shape == (30, 30)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e4)
    with pytest.raises(ValueError) as error:
        replace(posterior).cov if ask == "cov" else posterior.root.dense()
    assert str(error.value) == (
        "the covariance of 30 coefficients would take 2.16e+04 bytes of memory, 1e+04 are available"
    )


def test_available_memory_is_what_the_system_says(tmp_path, monkeypatch):
    told = tmp_path / "meminfo"
    told.write_text("MemTotal:  9 kB\nMemAvailable:  2 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", told)
    assert memory.available_bytes() == 2048
    memory.refuse_too_large("an array", 256)
    with pytest.raises(ValueError, match=r"an array would take 2.06e\+03 bytes of memory, 2.05e\+"):
        memory.refuse_too_large("an array", 257)
    told.write_text("nothing known\n")
    assert memory.available_bytes() == float("inf")
    told.unlink()
    memory.refuse_too_large("an array", 1e30)
