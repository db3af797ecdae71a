"""Models with data to match, strategies, and naive computations to hold them against."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from temperance import models, strategies
from temperance.data import Data
from temperance.models.glm.softmax.quadrature import contrasts, nodes
from temperance.quadrature import softplus_expectations

RISKS = ("gibbs", "predictive")


def gaussian_data(n: int = 14, d: int = 3, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) + rng.standard_normal(n)
    return Data(X, y, rng.uniform(0.5, 2.0, n))


def binary_data(n: int = 14, d: int = 3, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (rng.random(n) < special.expit(X @ rng.standard_normal(d))).astype(float)
    y[:2] = 0.0, 1.0
    return Data(X, y, rng.uniform(0.5, 2.0, n))


def class_data(n: int = 14, d: int = 3, seed: int = 0, n_classes: int = 3) -> Data:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    logits = X @ rng.standard_normal((d, n_classes)) + rng.gumbel(size=(n, n_classes))
    y = logits.argmax(axis=1).astype(float)
    y[:n_classes] = np.arange(n_classes)
    return Data(X, y, rng.uniform(0.5, 2.0, n))


def covariance(d: int, seed: int = 1) -> np.ndarray:
    root = np.random.default_rng(seed).standard_normal((d, d))
    return np.eye(d) + root @ root.T / d


LINEAR = {
    "linear": models.GaussianLinear(2.0, 0.3, covariance(3)),
    "unknown variance": models.NormalInverseGammaLinear(2.0, 3.0, [0.1, -0.2, 0.3], covariance(3)),
    "mean": models.GaussianMean(1.5, 0.2, 0.7),
    "polynomial": models.Polynomial(4, 0.5),
}
LOGISTIC = {
    "jaakkola": models.JaakkolaLogistic([0.1, -0.2, 0.3], covariance(3)),
    "full": models.FullCovarianceLogistic([0.1, -0.2, 0.3], covariance(3)),
    "laplace": models.LaplaceLogistic([0.1, -0.2, 0.3], covariance(3)),
    "mean-field": models.MeanFieldLogistic([0.1, -0.2, 0.3], [0.5, 1.0, 2.0]),
    "backprop": models.MeanFieldLogistic(0.1, 0.8, method="sgd", steps=30),
}
SOFTMAX = {"softmax": models.SoftmaxLogistic(covariance(3))}
HIERARCHICAL = {
    "hierarchical": models.HierarchicalLinear(a=1.5, b=0.8, scales=(0.3, 3.0), intercept=False)
}
MODELS = LINEAR | LOGISTIC | SOFTMAX | HIERARCHICAL

STRATEGIES = {
    "bayes": strategies.Bayes(),
    "naive": strategies.Naive(),
    "split": strategies.SampleSplitting(),
    "split, thesis": strategies.SampleSplitting("alpha"),
    "split, random": strategies.SampleSplitting("alpha", True, True, 3),
    "bootstrap": strategies.Bootstrap(n_draws=6),
    "bootstrap, out of bag": strategies.Bootstrap(n_draws=6, out_of_bag=True),
    "safe bayes": strategies.SafeBayes(),
    "safe bayes, thesis": strategies.SafeBayes("alpha"),
    "safe bayes, random": strategies.SafeBayes("alpha", start=3, permutations=2),
    "k-fold": strategies.KFold(4),
    "k-fold, alpha": strategies.KFold(5, "alpha"),
    "leave-one-out": strategies.LeaveOneOut(),
    "leave-one-out, alpha": strategies.LeaveOneOut("alpha"),
    "stacking": strategies.Stacking(strategies.KFold(4)),
}


def table_of(model, data: Data, plan, risk="gibbs", bounds=(0.0, 3.0)):
    """Return the table of a plan's held-out rows, of models with and without one of their own."""
    return model.held_out(data, plan, risk, bounds)


def data_for(name: str, seed: int = 0) -> Data:
    """Data that the model of this name can take."""
    if name in SOFTMAX:
        return class_data(seed=seed)
    data = binary_data(seed=seed) if name in LOGISTIC else gaussian_data(seed=seed)
    return Data(data.X[:, :1], data.y, data.weights) if name == "polynomial" else data


def naive_losses(model, data: Data, weights: np.ndarray, beta: float, risk: str) -> np.ndarray:
    """Loss of every row under the posterior of ``weights``, straight from the textbook."""
    if isinstance(model, models.HierarchicalLinear):
        return naive_hierarchical_losses(model, data, weights, beta, risk)
    if isinstance(model, models.SoftmaxLogistic):
        return naive_softmax_losses(model, data, weights, beta, risk)
    if isinstance(
        model, models.JaakkolaLogistic | models.FullCovarianceLogistic | models.LaplaceLogistic
    ) or isinstance(model, models.MeanFieldLogistic):
        return naive_logistic_losses(model, data, weights, beta, risk)
    Z = model.design(data.X)
    prior = model.prior(Z.shape[1])
    cov = np.diag(prior.root**2) if prior.root.ndim == 1 else prior.root @ prior.root.T
    precision0 = np.linalg.inv(cov)
    s2 = getattr(model, "noise_variance", 1.0)
    P = precision0 + beta * (Z.T * weights) @ Z / s2
    S = np.linalg.inv(P)
    m = S @ (precision0 @ prior.mean + beta * Z.T @ (weights * data.y) / s2)
    h = np.einsum("ij,jk,ik->i", Z, S, Z)
    error = data.y - Z @ m
    if not isinstance(model, models.NormalInverseGammaLinear):
        if risk == "gibbs":
            return (error**2 + h) / (2 * s2) + 0.5 * np.log(2 * np.pi * s2)
        return -stats.norm.logpdf(error, scale=np.sqrt(s2 + h))
    a = model.a + beta * weights.sum() / 2
    quadratic = prior.mean @ precision0 @ prior.mean + beta * weights @ data.y**2 - m @ P @ m
    b = model.b + quadratic / 2
    if risk == "gibbs":
        return 0.5 * (a / b * error**2 + h + np.log(b) - special.digamma(a) + np.log(2 * np.pi))
    return -stats.t.logpdf(error, df=2 * a, scale=np.sqrt(b / a * (1 + h)))


def naive_logistic_losses(model, data, weights, beta, risk):
    posterior = model.posterior(data.X, data.y, beta * weights.sum(), weights)
    mean = data.X @ posterior.mean
    variance = np.einsum("ij,jk,ik->i", data.X, posterior.cov, data.X)
    if risk == "gibbs":
        return softplus_expectations(mean, variance)[0] - data.y * mean
    p = posterior.predict(data.X)
    return -np.log(np.where(data.y == 1, p, 1 - p))


def naive_softmax(model, data, weights, beta):
    """Mode (K, d) and covariance (K d, K d) of all coefficients, by a plain Newton iteration."""
    X, K = data.X, int(data.y.max()) + 1
    d = X.shape[1]
    prior = model.prior(d)
    root = np.diag(prior.root) if prior.root.ndim == 1 else prior.root
    P = np.kron(np.eye(K), np.linalg.inv(root @ root.T))

    def at(theta, beta):
        p = special.softmax(X @ theta.reshape(K, d).T, axis=1)
        residual = p - np.eye(K)[data.y.astype(int)]
        W = p[:, :, None] * (np.eye(K) - p[:, None])
        gradient = P @ theta + beta * np.einsum("i,ik,id->kd", weights, residual, X).ravel()
        WX = np.einsum("i,ikl,id->ikld", weights, W, X).reshape(len(X), -1)
        hessian = (WX.T @ X).reshape(K, K, d, d).swapaxes(1, 2).reshape(K * d, K * d)
        return gradient, P + beta * hessian

    theta = np.zeros(K * d)
    for share, steps in [(0.1, 4), (0.3, 4), (1.0, 12)]:  # short enough for Newton's method
        for _ in range(steps):
            gradient, hessian = at(theta, share * beta)
            theta = theta - np.linalg.solve(hessian, gradient)
    return theta.reshape(K, d), np.linalg.inv(at(theta, beta)[1])


def naive_softmax_losses(model, data, weights, beta, risk):
    """Row by row and node by node, in the logits of all K classes."""
    mode, cov = naive_softmax(model, data, weights, beta)
    K, d = mode.shape
    C, (points, shares) = contrasts(K), nodes(K - 1)
    losses = []
    for x, y in zip(data.X, data.y.astype(int), strict=True):
        rows = np.kron(C.T, x)  # C'f = (C' (x) x') theta
        values, axes = np.linalg.eigh(rows @ cov @ rows.T)
        spread = (axes * np.sqrt(values)) @ axes.T
        logits = (C @ (C.T @ mode @ x)) + points @ spread.T @ C.T
        log_p = special.log_softmax(logits, axis=1)[:, y]
        losses.append(-shares @ log_p if risk == "gibbs" else -np.log(shares @ np.exp(log_p)))
    return np.array(losses)


def naive_hierarchical(model, data, train, beta):
    """Log weights of the scales and, for each, the posterior (mean, S, a, b) of all coefficients.

    An intercept has a flat prior, which takes one observation from the evidence and from a.
    """
    used = train > 0
    Z, y, w = data.X[used], data.y[used], train[used]
    level = int(model.intercept)
    found, logs = [], []
    for scale in model.scales:
        precision = np.full(Z.shape[1], scale**-2.0)
        precision[:level] = 0.0
        A = beta * Z.T @ (w[:, None] * Z) + np.diag(precision)
        m = np.linalg.solve(A, beta * Z.T @ (w * y))
        Q = beta * (w * (y - Z @ m) ** 2).sum() + (m**2 * precision).sum()
        log_det = np.linalg.slogdet(A)[1] - np.log(precision[level:]).sum()
        a, b = model.a + beta * max(w.sum() - level, 0) / 2, model.b + Q / 2
        known = model.noise_variance
        logs.append(-0.5 * log_det - (Q / (2 * known) if known else a * np.log(b)))
        found.append((m, np.linalg.inv(A), a, b))
    return special.log_softmax(logs), found


def naive_hierarchical_losses(model, data, train, beta, risk):
    log_weights, found = naive_hierarchical(model, data, train, beta)
    Z, y, s2 = data.X, data.y, model.noise_variance
    losses = []
    for m, S, a, b in found:
        e, v = y - Z @ m, np.einsum("ij,jk,ik->i", Z, S, Z)
        if s2 and risk == "gibbs":
            losses.append(0.5 * (e**2 / s2 + v + np.log(2 * np.pi * s2)))
        elif s2:
            losses.append(-stats.norm.logpdf(e, scale=np.sqrt(s2 * (1 + v))))
        elif risk == "gibbs":
            losses.append(
                0.5 * (a / b * e**2 + v + np.log(b) - special.digamma(a) + np.log(2 * np.pi))
            )
        else:
            losses.append(-stats.t.logpdf(y, 2 * a, Z @ m, np.sqrt(b / a * (1 + v))))
    losses = np.array(losses)
    if risk == "gibbs":
        return np.exp(log_weights) @ losses
    return -special.logsumexp(log_weights[:, None] - losses, axis=0)


def naive_curve(model, data: Data, plan, beta: float, risk: str) -> float:
    """Average over pairs and rows, one fit per pair."""
    pairs = plan.pairs()
    total = sum(
        test @ naive_losses(model, data, weights, beta, risk)
        for weights, test in zip(pairs.likelihood_weights, pairs.test, strict=True)
    )
    return total / pairs.test.sum()
