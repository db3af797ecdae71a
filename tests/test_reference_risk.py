"""Reference risk: its formulas against dense matrices; laws; the rule and what it refuses."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import special, stats

from temperance import calibrate, models
from temperance.data import Data
from temperance.linear import reference_risk
from temperance.messages import TemperanceWarning
from temperance.strategies import KFold, LeaveOneOut, ReferenceRisk
from temperance.table import mean_and_error

RISKS = ("gibbs", "predictive")
BETAS = np.array([0.0, 0.02, 0.4, 1.0, 2.8])
KNOWN, UNKNOWN = models.GaussianLinear(0.1), models.NormalInverseGammaLinear()
known_or_not = pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
plain = pytest.mark.parametrize("model", [KNOWN, UNKNOWN], ids=["known", "unknown"])
shapes = pytest.mark.parametrize("n, d", [(14, 3), (9, 9), (6, 11), (30, 2)])


def covariance(d):
    root = np.random.default_rng(1).standard_normal((d, d))
    return np.eye(d) + root @ root.T / d


def full_prior(known, d=3):
    if known:
        return models.GaussianLinear(2.0, 0.3, covariance(d))
    return models.NormalInverseGammaLinear(2.0, 3.0, np.linspace(0.1, 0.3, d), covariance(d))


def weighted(n=14, d=3):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) + rng.standard_normal(n)
    return Data(X, y, rng.uniform(0.5, 2.0, n))


def regression(seed=0, n=40, d=20, noise=3.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return Data(X, X[:, 0] + noise * rng.standard_normal(n), np.ones(n))


def select(model, data, veto=2.0, duplicates="auto", bounds=(0.0, 3.0), risk="gibbs"):
    rule = ReferenceRisk(veto, duplicates) if duplicates else veto
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TemperanceWarning)
        return calibrate(
            model, data.X, data.y, rule, bounds=bounds, risk=risk, weights=data.weights
        )


def summary(calibration):
    names = ("beta", "risk", "bayes_risk", "standard_error", "gain_standard_error")
    return np.array([getattr(calibration, name) for name in names])


class Naive:
    """The reference by dense matrices, in units of the noise, on a wide grid of kappas."""

    def __init__(self, model, data, counts):
        self.known, self.model, self.data = hasattr(model, "noise_variance"), model, data
        unit = np.sqrt(model.noise_variance) if self.known else 1.0
        prior, root = model.prior(data.X.shape[1]), np.sqrt(counts)
        self.Z, self.P0 = data.X / unit, np.linalg.inv(prior.root @ prior.root.T)
        self.r, self.counts, self.n = data.y / unit - self.Z @ prior.mean, counts, counts.sum()
        self.share = counts / self.n
        kappas = np.exp(np.linspace(-12, 20, 161))
        K = root[:, None] * (self.Z @ prior.root @ prior.root.T @ self.Z.T) * root
        inverses = np.linalg.inv(np.eye(len(K)) + kappas[:, None, None] * K)
        self.weigh(kappas, inverses @ (root * self.r) @ (root * self.r), inverses)

        h = (1 - np.diagonal(inverses, axis1=1, axis2=2)) / counts
        kept = np.where(counts < 1, 1 - counts * h, 1 - h)
        squares = (inverses @ (root * self.r) / root) ** 2 / kept
        ratio = ((counts * h * squares).sum(axis=1)) / ((counts * h).sum(axis=1) * self.noise)
        phi = np.exp(self.weight @ np.log(ratio))
        self.own = self.weight @ squares

        S = np.linalg.inv(phi / kappas[:, None, None] * self.P0 + self.gram(counts))
        means = S @ (self.Z.T @ (counts * self.r))
        self.mean = self.weight @ means
        self.cov = np.einsum("k,kij->ij", self.weight * self.noise * phi, S)
        self.cov += ((means - self.mean).T * self.weight) @ (means - self.mean)
        self.s = self.weight @ self.noise

    def gram(self, weights):
        return (self.Z.T * weights) @ self.Z

    def weigh(self, kappas, misfit, inverses):
        evidence, log_kappa = np.linalg.slogdet(inverses)[1] / 2, np.log(kappas)
        if self.known:
            log_s = np.linspace(-30, 20, 5001)
            height = -self.n / 2 * log_s - misfit[:, None] / 2 * np.exp(-log_s)
            height -= (log_s**2 + (log_s + log_kappa[:, None]) ** 2) / (2 * 1.5**2)
            evidence += special.logsumexp(height, axis=1)
            self.noise = special.softmax(height, axis=1) @ np.exp(log_s)
        else:
            evidence -= self.n / 2 * np.log(misfit) + log_kappa**2 / (4 * 1.5**2)
            self.noise = misfit / (self.n - 2)
        self.weight = special.softmax(evidence)

    def intensity(self):
        """Least squares over three scales, each row deleted for real; no more than Ledoit-Wolf."""
        A, d = self.gram(self.share), self.Z.shape[1]
        gap, wanted = [], []
        for kappa in (0.1, 1.0, 10.0):
            V, left_out = np.linalg.inv(self.P0 / kappa + self.n * A), 0.0
            for i, z in enumerate(self.Z):
                one = np.where(np.arange(len(self.Z)) == i, np.minimum(self.counts, 1.0), 0.0)
                P = self.P0 / kappa + self.gram(self.counts - one)
                left_out += self.share[i] * z @ np.linalg.inv(P) @ z
            gap.append(np.trace((np.diag(np.diag(A)) - A) @ V))
            wanted.append(left_out - np.trace(A @ V))
        X, top, bottom = self.Z / np.sqrt(np.diag(A)), 0.0, 0.0
        for i, j in ((i, j) for i in range(d) for j in range(d) if i != j):
            product = X[:, i] * X[:, j]
            top += (self.share @ product**2 - (self.share @ product) ** 2) / self.n
            bottom += (self.share @ product) ** 2
        return np.clip(min(np.dot(gap, wanted) / np.dot(gap, gap), top / bottom), 0.0, 1.0)

    def curve(self, beta, risk):
        """The loss of draws by second moments; of forecasts, at two responses for each new row."""
        P = self.P0 + beta * self.gram(self.data.weights)
        V = np.linalg.inv(P)
        D = self.mean - V @ (beta * self.Z.T @ (self.data.weights * self.r))
        rho, M, d = self.intensity(), self.mean - D, self.Z.shape[1]
        A = self.gram(self.share)
        A = (1 - rho) * A + rho * np.diag(np.diag(A))
        if self.known:
            constant = np.log(2 * np.pi * self.model.noise_variance) / 2
        else:
            a = self.model.a + beta * self.data.size / 2
            b = self.model.b + (beta * self.data.weights @ self.r**2 - M @ P @ M) / 2
        if risk == "gibbs":
            square, spread = D @ A @ D + np.trace(A @ self.cov) + self.s, np.trace(A @ V)
            if self.known:
                return (square + spread) / 2 + constant
            return (a / b * square + spread + np.log(2 * np.pi * b) - special.digamma(a)) / 2
        z = np.vstack([self.Z, np.diag(np.sqrt(d * np.diag(A)))])
        noise = np.append(self.own * self.s / (self.share @ self.own), np.full(d, self.s))
        v, spread = (np.einsum("ij,jk,ik->i", z, each, z) for each in (V, self.cov))
        error = z @ D + np.array([[-1.0], [1.0]]) * np.sqrt(spread + noise)
        if self.known:
            loss = (error**2 / (1 + v) + np.log(1 + v)) / 2 + constant
        else:
            loss = -stats.t.logpdf(error, df=2 * a, scale=np.sqrt(b / a * (1 + v)))
        return loss.mean(axis=0) @ np.append((1 - rho) * self.share, np.full(d, rho / d))


@known_or_not
class TestFormulae:
    @pytest.mark.parametrize("duplicates", ["together", "apart"])
    @shapes
    def test_curves_are_those_of_dense_matrices(self, known, n, d, duplicates):
        model, data = full_prior(known, d), weighted(n, d)
        naive = Naive(model, data, data.weights if duplicates == "apart" else np.ones(n))
        for risk in RISKS:
            found = select(model, data, None, duplicates, risk=risk).curve(BETAS)
            expected = [naive.curve(beta, risk) for beta in BETAS]
            np.testing.assert_allclose(found, expected, rtol=1e-7, err_msg=risk)

    @pytest.mark.parametrize("veto", [None, 2.0])
    @pytest.mark.parametrize("risk", RISKS)
    @shapes
    def test_slopes_are_finite_differences(self, known, n, d, risk, veto):
        curve = select(full_prior(known, d), weighted(n, d), veto, risk=risk).curve
        beta = BETAS[1:]
        differences = (curve(beta * (1 + 1e-5)) - curve(beta * (1 - 1e-5))) / (2e-5 * beta)
        _, slope = curve(beta, derivative=True)
        np.testing.assert_allclose(slope, differences, rtol=1e-5, atol=1e-7 * np.abs(slope).max())


def test_shrinkage_keeps_to_its_ends():
    def intensity(Z):
        return reference_risk.shrinkage_intensity(Z, np.full(len(Z), 1 / len(Z)), len(Z))

    rng = np.random.default_rng(0)
    x = rng.exponential(size=50)
    centred = np.column_stack([np.ones(50), (x - x.mean()) / x.std()])
    assert [intensity(Z) for Z in (np.ones((5, 1)), np.zeros((5, 2)), centred)] == [0, 0, 0]
    assert 0.5 < intensity(rng.standard_normal((10, 40))) <= 1.0
    assert intensity(rng.standard_normal((5000, 2)) @ [[1, 1], [0, 0.1]]) < 0.01


@pytest.mark.parametrize("n, d", [(20, 7), (10, 14)])
@pytest.mark.parametrize("full", [False, True])
def test_one_huge_column_spoils_no_other(n, d, full):
    """Differences of squares would: one part in 1e16 of 1e18 is no small variance."""
    data, model = regression(n=n, d=d), models.GaussianLinear(0.1, 0.0, np.eye(d) if full else 1)
    sizes = np.ones((2, d))
    sizes[:, 3] = 1e6, 1e9
    found = [select(model, Data(data.X * size, data.y, data.weights), None) for size in sizes]
    np.testing.assert_allclose(*(each.curve(BETAS[1:]) for each in found), rtol=1e-5)


def test_units_that_are_far_off_do_not_drag_the_reference_with_them(monkeypatch):
    data = regression(noise=1.0)
    scaled = [Data(data.X, unit * data.y, data.weights) for unit in (100.0, 1000.0)]
    near, far = (select(KNOWN, each, None).beta for each in scaled)
    assert near == pytest.approx(far, rel=0.25)
    monkeypatch.setattr(reference_risk, "MOST_DEVIATIONS", np.inf)
    near, far = (select(KNOWN, each, None).beta for each in scaled)
    assert far < 0.1 * near


class TestLaws:
    @pytest.mark.parametrize("duplicates", ["auto", "together", "apart"])
    @known_or_not
    def test_weight_k_is_k_copies(self, known, duplicates):
        data, counts = weighted(), np.random.default_rng(0).integers(1, 4, 14)
        X, y = (np.repeat(part, counts, axis=0) for part in (data.X, data.y))
        both = Data(X, y, np.ones(len(y))), Data(data.X, data.y, counts.astype(float))
        found = [select(full_prior(known), each, duplicates=duplicates) for each in both]
        np.testing.assert_allclose(*map(summary, found), rtol=1e-6)

    @known_or_not
    def test_the_order_of_rows_plays_no_part(self, known):
        data, order = weighted(), np.random.default_rng(1).permutation(14)
        both = data, Data(data.X[order], data.y[order], data.weights[order])
        found = [summary(select(full_prior(known), each)) for each in both]
        np.testing.assert_allclose(*found, rtol=1e-9)

    @pytest.mark.parametrize("risk", RISKS)
    def test_units_only_add_to_the_risk(self, risk):
        data, c, columns = regression(), 7.0, np.geomspace(0.1, 10, 20)
        other = Data(data.X * columns, data.y * c, data.weights)
        scaled = models.GaussianLinear(2.0 * c**2, 0.1 * c / columns, 1.5 * c**2 / columns**2)
        first = summary(select(models.GaussianLinear(2.0, 0.1, 1.5), data, risk=risk))
        second = summary(select(scaled, other, risk=risk))
        first[1:3] += np.log(c)
        np.testing.assert_allclose(second, first, rtol=1e-6)

    def test_copies_of_all_rows_are_noticed(self):
        """Twice the rows twice: the posterior must count each half as much, no more is known."""
        model, data = models.GaussianLinear(8.0), regression(n=30, d=30, noise=8.0)
        twice = Data(np.tile(data.X, (2, 1)), np.tile(data.y, 2), np.ones(60))
        once, together = select(model, data), select(model, twice)
        assert 0.05 < once.beta < 1
        assert together.beta == pytest.approx(once.beta / 2, rel=1e-6)
        assert select(model, twice, duplicates="apart").beta > 1.2 * together.beta


class TestRule:
    @pytest.mark.parametrize("risk", RISKS)
    @plain
    def test_without_veto_it_is_the_minimum_of_the_reference(self, model, risk):
        found = select(model, regression(), None, risk=risk)
        assert found.risk == pytest.approx(found.curve(found.beta), rel=1e-12)
        assert found.risk <= found.curve(np.linspace(0, 3, 3001)).min() + 1e-9
        assert found.bayes_risk == found.curve(1.0) and np.isnan(found.standard_error)
        assert "reference model with free scales" in repr(found)

    @pytest.mark.parametrize("risk", RISKS)
    @plain
    def test_errors_are_those_of_leave_one_out(self, model, risk):
        found, free = (select(model, regression(), veto, risk=risk) for veto in (2.0, None))
        table = select(model, regression(), LeaveOneOut(), None, risk=risk).table
        loss, bayes = table.at(np.array([found.beta, 1.0]))
        errors = [
            mean_and_error(each, table.share, table.counts)[1] for each in (loss, bayes - loss)
        ]
        np.testing.assert_allclose([found.standard_error, found.gain_standard_error], errors)
        assert found.risk == pytest.approx(free.curve(found.beta))

    @pytest.mark.parametrize("veto", [0.1, 0.5, 2.0])
    def test_the_veto_takes_the_closest_that_leave_one_out_tolerates(self, veto):
        moved, model = 0, models.GaussianLinear(1.0)
        for seed in range(6):
            data = regression(seed, n=16, d=12, noise=2.0)
            free, found = (select(model, data, each).beta for each in (None, veto))
            left_out = select(model, data, LeaveOneOut(), None)
            table, grid = left_out.table, np.append(np.geomspace(1e-5, 3, 2000), left_out.beta)
            rows = table.at(np.append(grid, found)) - table.at(np.array([left_out.beta]))
            pairs = [mean_and_error(row, table.share, table.counts) for row in rows]
            tolerated = np.array([mean <= veto * error + 1e-12 for mean, error in pairs])
            nearest = np.abs(np.log(grid / free))[tolerated[:-1]].min()
            assert tolerated[-1] and abs(np.log(found / free)) <= nearest + 1e-6
            moved += found != free
        assert moved > 2 or veto > 0.1  # a tenth of a standard error is heard

    @pytest.mark.parametrize("bounds", [(0.0, 3.0), (0.3, 0.9), (1.0, 20.0)])
    def test_the_choice_keeps_to_the_bounds(self, bounds):
        for seed in range(4):
            found = select(KNOWN, regression(seed), 0.2, bounds=bounds)
            assert bounds[0] <= found.beta <= bounds[1]
            assert found.at_bound == (found.beta in bounds)

    @pytest.mark.parametrize("veto", [2.0, None])
    def test_results_can_be_sent_to_other_processes(self, veto):
        found = select(KNOWN, regression(), veto)
        np.testing.assert_array_equal(summary(pickle.loads(pickle.dumps(found))), summary(found))

    @pytest.mark.parametrize("case", range(8))
    @plain
    def test_strange_data(self, model, case):
        X, y, weights = (getattr(regression(), name) for name in ("X", "y", "weights"))
        data = [
            Data(X, 0 * y, weights),
            Data(0 * X, y, weights),
            Data(X, 1e6 * y, weights),
            Data(np.repeat(X[:, :1], 20, axis=1), y, weights),
            Data(X, X @ np.ones(20), weights),
            Data(X[:, :1], 0 * y, 1e8 * weights),
            Data(X[:20], y[:20], weights[:20]),
            Data(X[:3], y[:3], weights[:3]),
        ][case]
        for duplicates in ("auto", "apart"):
            found = select(model, data, duplicates=duplicates)
            assert 0 <= found.beta <= 3 and np.isfinite(found.risk)

    def test_it_beats_ten_folds_where_the_variance_is_far_too_small(self):
        """40 rows of 40 columns with noise variance 64 in place of 8, paired over data sets."""
        rng, model, risks = np.random.default_rng(11), models.GaussianLinear(8.0), []
        for _ in range(40):
            theta, X = rng.standard_normal(40), rng.standard_normal((40, 40))
            data = Data(X, X @ theta + 8 * rng.standard_normal(40), np.ones(40))
            found = select(model, data, KFold(), None), select(model, data)
            laws = [each.posterior for each in found]
            risks.append([((law.mean - theta) ** 2).sum() + np.trace(law.cov) for law in laws])
        difference = np.subtract(*np.transpose(risks))
        assert difference.mean() > 2 * difference.std() / np.sqrt(40)


class TestRefusals:
    @pytest.mark.parametrize("model", [models.LaplaceLogistic(), models.HierarchicalLinear()])
    def test_models_without_a_reference(self, model):
        X, name = np.column_stack([np.ones(3), [1.0, 2.0, 3.0]]), type(model).__name__
        with pytest.raises(ValueError, match=f"a reference .* got {name}; use KFold"):
            calibrate(model, X, [0, 1, 1], ReferenceRisk())

    def test_options(self):
        for veto in (0.0, -1.0):
            with pytest.raises(ValueError, match=f"veto must be positive, got {veto}"):
                ReferenceRisk(veto)
        with pytest.raises(ValueError, match="duplicates must be one of"):
            ReferenceRisk(duplicates="both")

    def test_too_few_rows(self):
        with pytest.raises(ValueError, match="at least 2 distinct rows .* veto, got 1"):
            calibrate(KNOWN, [[1.0], [1.0]], [2.0, 2.0], ReferenceRisk())
        with pytest.raises(ValueError, match="must hold more than 2 .* got 2"):
            calibrate(UNKNOWN, [[1.0], [2.0]], [2.0, 2.0], ReferenceRisk())
