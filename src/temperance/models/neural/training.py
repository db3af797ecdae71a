r"""Training of many networks side by side, by Adam on shared mini-batches.

Networks differ in the weights of the rows and in beta alone.  All see the same rows in the same
order and the same random numbers, so that curves over beta are smooth.  Each has a learning rate
of its own, which falls when its objective does; training ends when every rate has fallen so far
that a network no longer moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from temperance.checks import positive, whole
from temperance.models.neural.network import Network, Prior

CHUNK = 100  # steps between looks at the objectives
PATIENCE = 2  # chunks without progress after which a learning rate falls
FALL = 0.3  # factor of each fall
FALLS = 4  # after which a network is trained
ADAM = optax.scale_by_adam()


class Trainable(Protocol):
    """A hashable object with an objective."""

    def objective(
        self,
        network: Network,
        prior: Prior,
        variables: Any,
        key: Any,
        X: Any,
        y: Any,
        weights: Any,
        beta: Any,
    ) -> Any:
        """Return an unbiased estimate of the objective of one network."""
        ...


@dataclass(frozen=True)
class Training:
    """Settings of the training of a network.

    Parameters
    ----------
    steps : int
        Largest number of steps; training ends before if the objectives fall no further.
    learning_rate : float
        First step size of Adam, in standard deviations of the prior.
    batch_size : int
        Rows of a mini-batch; all rows if there are no more than that.
    """

    steps: int = 10_000
    learning_rate: float = 0.01
    batch_size: int = 256

    def __post_init__(self) -> None:
        """Refuse settings that train nothing."""
        whole("steps", self.steps, 1)
        positive("learning_rate", self.learning_rate)
        whole("batch_size", self.batch_size, 1)


@dataclass(frozen=True)
class Run:
    """How networks are trained, and who is told how far they are.

    Parameters
    ----------
    training : Training
    seed : int
    lanes : int
        Number of networks that are trained at the same time.
    report : function, optional
        Called with a line of text.
    """

    training: Training
    seed: int
    lanes: int
    report: Callable[[str], None] | None = None

    def tell(self, line: str) -> None:
        """Report a line, if anybody listens."""
        if self.report:
            self.report(line)


class Task(NamedTuple):
    """What F networks are trained on.

    Rows and prior, weights of the pairs (P, n), and of each network the number of its pair and its
    beta, (F,).
    """

    X: Any
    y: Any
    prior: Prior
    weights: Any
    pair: Any
    betas: Any

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.weights.shape[1])

    def of(self, part: NDArray[np.intp]) -> Task:
        """Return the task of some of the networks."""
        return self._replace(pair=self.pair[part], betas=self.betas[part])

    def repeated(self, times: int) -> Task:
        """Return the task with each network repeated."""
        return self._replace(pair=np.repeat(self.pair, times), betas=np.repeat(self.betas, times))


class Trained(NamedTuple):
    """Variables of the networks, with a leading axis F, and whether each settled."""

    variables: Any
    settled: Any


class State(NamedTuple):
    """Variables, moments of Adam, mean of the last iterates, best objective, stale chunks, rate."""

    variables: Any
    moments: Any
    average: Any
    best: Any
    stale: Any
    rate: Any


def train_from_bayes(
    network: Network, method: Trainable, task: Task, run: Run, first: Any
) -> Trained:
    """Return networks at all betas; those of a pair start from its own, trained at beta = 1.

    Rows that a pair tests have no part in where its networks start.

    Parameters
    ----------
    first : variables with a leading axis M: so many networks are trained of each pair and beta

    Returns
    -------
    Variables with a leading axis F M, those of the first of the F networks first.
    """
    members = len(jax.tree.leaves(first)[0])
    pairs, place = np.unique(task.pair, return_inverse=True)
    bayes = task._replace(pair=pairs, betas=np.ones(len(pairs), dtype=np.float32))
    start = jax.tree.map(lambda leaf: jnp.concatenate([leaf] * len(pairs)), first)
    warm = train(network, method, bayes.repeated(members), run, start, falls=1)
    index = (place[:, None] * members + np.arange(members)).ravel()
    start = jax.tree.map(lambda leaf: leaf[index], warm.variables)
    run = replace(run, seed=run.seed + 1)
    return train(network, method, task.repeated(members), run, start)


def train(
    network: Network,
    method: Trainable,
    task: Task,
    run: Run,
    start: Any,
    falls: int = FALLS,
) -> Trained:
    """Return networks that minimise the objective, from variables with a leading axis F.

    Parameters
    ----------
    falls : how often a learning rate falls before its network counts as trained
    """
    parts = []
    count, before = len(task.betas), 0
    for index, kept in groups(count, run.lanes):
        some = jax.tree.map(lambda leaf, index=index: leaf[index], start)

        def tell(step: int, rate: Any, before: int = before, kept: int = kept) -> None:
            done = before + int((np.asarray(rate)[:kept] == 0).sum())
            most = run.training.steps
            run.tell(f"networks trained: {done} of {count}, step {step} of at most {most}")

        found = _train(network, method, task.of(index), run, some, falls, tell)
        before += kept
        parts.append(jax.tree.map(lambda leaf, kept=kept: leaf[:kept], found))
    return Trained(*jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts))


def groups(count: int, lanes: int) -> Iterator[tuple[NDArray[np.intp], int]]:
    """Yield indices in groups of one size, and how many of each are not repetitions.

    The last group is filled up with its last member: one compiled program serves all.

    Examples
    --------
    >>> [(index.tolist(), kept) for index, kept in groups(5, 4)]
    [([0, 1, 2], 3), ([3, 4, 4], 2)]
    """
    size = -(-count // -(-count // lanes))
    for begin in range(0, count, size):
        index = np.arange(begin, begin + size)
        yield np.minimum(index, count - 1), int((index < count).sum())


def _train(
    network: Network,
    method: Trainable,
    task: Task,
    run: Run,
    start: Any,
    falls: int,
    tell: Callable[[int, Any], None],
) -> Trained:
    training, count = run.training, len(task.betas)
    # Types as the program returns them, so that it is compiled once.
    state = State(
        start,
        jax.vmap(ADAM.init)(start),
        start,
        jnp.full(count, jnp.inf, dtype=jnp.float32),
        jnp.zeros(count, dtype=jnp.int32),
        jnp.full(count, training.learning_rate, dtype=jnp.float32),
    )
    least = training.learning_rate * FALL ** (falls - 0.5)
    key = jax.random.key(run.seed)
    for chunk, done in enumerate(range(0, training.steps, CHUNK)):
        steps = min(CHUNK, training.steps - done)
        state, value = _chunk(
            network, method, training.batch_size, steps, task, state,
            jax.random.fold_in(key, chunk), least,
        )  # fmt: skip
        finite = np.isfinite(np.asarray(value))
        if not finite.all():
            beta = float(task.betas[int(np.argmin(finite))])
            raise ValueError(
                f"learning_rate must be smaller, or the loss finite: training at beta = {beta:.3g} "
                f"left the finite numbers with {training.learning_rate!r}"
            )
        tell(done + steps, state.rate)
        if not np.any(state.rate > 0):
            break
    return Trained(state.average, state.rate == 0)


@partial(jax.jit, static_argnames=("network", "method", "batch_size", "steps"))
def _chunk(
    network: Network,
    method: Trainable,
    batch_size: int,
    steps: int,
    task: Task,
    state: State,
    key: Any,
    least: float,
) -> tuple[State, Any]:
    """Return the state after some steps, and the mean objective of each network over them."""
    rows = task.rows

    def step(carry: Any, key: Any) -> tuple[Any, Any]:
        variables, moments, total = carry
        which, noise = jax.random.split(key)
        X, y, weights = task.X, task.y, task.weights
        if rows > batch_size:
            # Drawn with replacement: the sum over rows is estimated without bias.
            index = jax.random.randint(which, (batch_size,), 0, rows)
            X, y = jax.tree.map(lambda part: part[index], (X, y))
            weights = weights[:, index] * (rows / batch_size)

        def one(variables: Any, moments: Any, pair: Any, beta: Any, rate: Any) -> Any:
            value, slope = jax.value_and_grad(partial(method.objective, network, task.prior))(
                variables, noise, X, y, weights[pair], beta
            )
            move, moments = ADAM.update(slope, moments)
            variables = jax.tree.map(lambda at, by: at - rate * by, variables, move)
            return variables, moments, value

        variables, moments, value = jax.vmap(one)(
            variables, moments, task.pair, task.betas, state.rate
        )
        total = jax.tree.map(jnp.add, total, variables)
        return (variables, moments, total), value

    nothing = jax.tree.map(jnp.zeros_like, state.variables)
    (variables, moments, total), values = jax.lax.scan(
        step, (state.variables, state.moments, nothing), jax.random.split(key, steps)
    )
    moving = state.rate > 0
    average = jax.tree.map(
        lambda now, before: jnp.where(moving[:, None], now / steps, before), total, state.average
    )
    mean, error = values.mean(axis=0), values.std(axis=0) / np.sqrt(steps)
    stale = jnp.where(mean < state.best - error, 0, state.stale + 1)
    falls = stale >= PATIENCE
    rate = jnp.where(falls, FALL * state.rate, state.rate)
    rate = jnp.where(rate > least, rate, 0.0)
    best = jnp.minimum(mean, state.best)
    return State(variables, moments, average, best, jnp.where(falls, 0, stale), rate), mean
