r"""A model written in NumPyro."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, ClassVar

import numpy as np

from temperance.checks import shown
from temperance.data import Array, Data
from temperance.models.sampled.compiled import kept_on_disk
from temperance.models.sampled.draws import Draws
from temperance.models.sampled.ladder import Report
from temperance.models.sampled.latent_sites import refuse_latent
from temperance.models.sampled.model import SampledModel, refuse_nan
from temperance.models.sampled.own_rows import MayCarryRows, as_rows_of, rows_in


@dataclass(frozen=True, eq=False)
class NumPyroModel(MayCarryRows, SampledModel):
    r"""A NumPyro model function; its observed sites are tempered row by row.

    .. math:: \pi_c(\theta) \propto \prod_i p(y_i | \theta, x_i)^{c_i} \, \pi_0(\theta)

    The function is called as ``model(X, y)``, with the X (n, d) and y (n,) given to
    :func:`temperance.calibrate`, both as floats; X is None if it has no columns.  Or with the rows
    of ``data``, as they are.

    Parameters
    ----------
    model : function (X, y)
        Without scaling or masking of the likelihood.
    sites : names of the observed sites to temper
        By default all observed sites.  A ``numpyro.factor`` may be a likelihood or a prior: for a
        model with a factor, ``sites`` is required.
    data : pair (X, y), optional
        Rows that no matrix holds: arrays of any shape or pytrees of arrays, n rows each, integers
        stay integers.  Then ``calibrate(model, model.X, model.y)``.
    chains, draws, warmup : numbers of chains, of draws per chain, and of tuning steps
    overlap : least share of effective draws from a rung of the ladder to the next
    seed : int
    progress : function (beta, upper, rungs), bool or None
        Called at every rung; by default a line on a terminal or in a notebook.
    cache : bool
        Whether compiled programs are kept on disk for the next process, see docs/any-model.md.

    Examples
    --------
    >>> import numpy as np, numpyro, numpyro.distributions as dist
    >>> def model(X, y):
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    ...     numpyro.sample("y", dist.Normal(mean, 1.0).expand([len(y)]), obs=y)
    >>> posterior = NumPyroModel(model).posterior(None, np.array([2.0, 4.0]), alpha=2.0)
    >>> print(f"{float(posterior['posterior']['mean'].mean()):.0f}")  # N(2, 1/3)
    2
    """

    model: Callable[[Any, Any], Any]
    sites: Sequence[str] | None = None
    data: tuple[Any, Any] | None = None
    chains: int = 4
    draws: int = 500
    warmup: int = 500
    overlap: float = 0.5
    seed: int = 0
    progress: Report | bool | None = None
    cache: bool = True

    constants: ClassVar[str] = "with the constants of NumPyro's log_prob"

    def __post_init__(self) -> None:
        """Refuse a model that is not a function."""
        super().__post_init__()
        object.__setattr__(self, "data", as_rows_of(self.data))
        if not callable(self.model):
            raise ValueError(f"model must be a function of X and y, got {shown(self.model)}")
        try:
            parameters = signature(self.model)
        except ValueError:  # of some functions that are not written in Python
            return
        try:
            parameters.bind(None, None)
        except TypeError:
            raise ValueError(
                f"model must be a function of X and y alone, got arguments {parameters}: bind "
                "others by functools.partial"
            ) from None

    @cached_property
    def _compiled(self) -> dict[tuple[int, ...], _Program]:
        return {}

    def sampler(self, data: Data) -> NumPyroSampler:
        """Return the sampler on these data; data of one shape share a compiled program."""
        try:
            import numpyro  # noqa: F401
        except ImportError:
            raise ImportError("NumPyroModel needs NumPyro: pip install 'temperance[jax]'") from None
        X, y = self.rows(data)
        arguments = (X if data.X.shape[1] else None, y)
        known = self._compiled.get(data.X.shape)
        if known is None or not known.serves(arguments):
            known = self._compiled[data.X.shape] = _Program(self, arguments)
        return NumPyroSampler(known, arguments)


@dataclass(frozen=True, eq=False)
class NumPyroSampler:
    """NUTS for the tempered model on one data set."""

    program: _Program
    arguments: tuple[Any, Any]

    def draw(self, exponents: Array, seed: int, start: Any = None) -> Draws:
        """Return draws for ``exponents`` (n,); ``start`` is the ``end`` of earlier draws."""
        import jax

        key_start, key_run = jax.random.split(jax.random.PRNGKey(seed))
        begin = self.program.scattered(key_start) if start is None else start
        keys = jax.random.split(key_run, self.program.settings.chains)
        with kept_on_disk(self.program.settings.cache):
            end, (theta, losses, divergent) = self.program.run(
                keys, begin, jax.numpy.asarray(exponents), *self.arguments
            )
        found = np.asarray(losses, dtype=float)
        refuse_nan(found)
        parameters = {name: np.asarray(value, dtype=float) for name, value in theta.items()}
        return Draws(parameters, found, int(np.sum(divergent)), end)


class _Program:
    """The compiled chains of one model on data of one shape, for all exponents.

    A model that depends on the values of X or y while it is traced is compiled for them only.
    """

    def __init__(self, settings: NumPyroModel, arguments: tuple[Any, Any]) -> None:
        import jax
        from numpyro.infer.hmc import hmc
        from numpyro.infer.util import initialize_model

        self.settings, self.rows = settings, rows_in(arguments)
        self.sites = tempered_sites(settings.model, arguments, settings.sites)
        self.bound = None if _traceable(settings.model, arguments) else arguments
        self.known = initialize_model(
            jax.random.PRNGKey(settings.seed),
            _tempering(settings.model, self.sites),
            dynamic_args=True,
            model_args=(jax.numpy.zeros(self.rows), *arguments),
        )
        self.kernel = hmc(potential_fn_gen=self.known.potential_fn, algo="NUTS")
        self.run = jax.jit(jax.vmap(self._chain, in_axes=(0, 0, None, None, None)))

    def _chain(self, key: Any, position: Any, exponents: Any, X: Any, y: Any) -> Any:
        import jax

        begin, move = self.kernel
        X, y = self.bound or (X, y)
        given = (exponents, X, y)
        constrain = self.known.postprocess_fn(*given)

        def step(state: Any, _: Any) -> Any:
            return move(state, model_args=given), None

        def record(state: Any, _: Any) -> Any:
            state = move(state, model_args=given)
            theta = constrain(state.z)
            return state, (theta, self._losses(theta, X, y), state.diverging)

        state = begin(position, num_warmup=self.settings.warmup, rng_key=key, model_args=given)
        state, _ = jax.lax.scan(step, state, None, length=self.settings.warmup)
        state, drawn = jax.lax.scan(record, state, None, length=self.settings.draws)
        return state.z, drawn

    def _losses(self, theta: Any, X: Any, y: Any) -> Any:
        """Return minus the log likelihood of each row, over all tempered sites, (n,)."""
        trace = _trace(self.settings.model, (X, y), theta)
        parts = [trace[name]["fn"].log_prob(trace[name]["value"]) for name in self.sites]
        return -sum(part.reshape(self.rows, -1).sum(axis=1) for part in parts)

    def serves(self, arguments: tuple[Any, Any]) -> bool:
        """Return whether the program can run on these data, which have its shape."""
        import jax

        own, other = (jax.tree.leaves(part) for part in (self.bound, arguments))
        return self.bound is None or all(map(np.array_equal, own, other))

    def scattered(self, key: Any) -> Any:
        """Return points within 2 of zero in unconstrained coordinates, NumPyro's default start."""
        import jax

        template = self.known.param_info.z
        keys = jax.random.split(key, len(template))
        return {
            name: jax.random.uniform(
                own, (self.settings.chains, *value.shape), value.dtype, minval=-2.0, maxval=2.0
            )
            for own, (name, value) in zip(keys, template.items(), strict=True)
        }


def tempered_sites(
    model: Callable[..., Any], arguments: tuple[Any, Any], named: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the names of the sites to temper; refuse those that have no rows."""
    rows = rows_in(arguments)
    try:
        trace = _trace(model, arguments, {})
    except NotImplementedError as error:
        raise ValueError(
            "model must have a proper prior, for beta = 0 is the prior, got a site that cannot be "
            f"sampled: {str(error) or 'ImproperUniform'}"
        ) from None
    for name, site in trace.items():
        if site["type"] == "sample" and not site["is_observed"]:
            refuse_latent("model", name, site["fn"])
    observed = {
        name: site
        for name, site in trace.items()
        if site["type"] == "sample" and site["is_observed"]
    }
    if not observed:
        raise ValueError("model must have an observed site, got none: write obs=y")
    if named is None:
        # A factor is an observed site of the distribution Unit.
        factors = [name for name, site in observed.items() if type(site["fn"]).__name__ == "Unit"]
        if factors:
            raise ValueError(
                f"sites must name what to temper, of {', '.join(observed)}: the factor "
                f"{factors[0]!r} may be a likelihood or a prior"
            )
        named = tuple(observed)
    for name in named:
        if name not in observed:
            raise ValueError(f"sites must be observed, one of {', '.join(observed)}, got {name!r}")
        shape = tuple(observed[name]["fn"].batch_shape)
        if not shape or shape[0] != rows:
            raise ValueError(
                f"site {name!r} must have a log probability for each of the {rows} rows, got batch "
                f"shape {shape}"
            )
    return tuple(named)


def _tempering(model: Callable[..., Any], sites: tuple[str, ...]) -> Callable[..., Any]:
    from numpyro.primitives import Messenger

    class Temper(Messenger):  # type: ignore[misc, unused-ignore]
        """Scale the named sites by row; unlike handlers.scale, it allows 0."""

        def __init__(self, exponents: Any) -> None:
            self.exponents = exponents
            super().__init__()

        def process_message(self, msg: Any) -> None:
            if msg["type"] != "sample" or msg["name"] not in sites:
                return
            rows = self.exponents.reshape(-1, *(1,) * (len(msg["fn"].batch_shape) - 1))
            msg["scale"] = rows if msg.get("scale") is None else msg["scale"] * rows
            # A row of weight zero contributes nothing even if its likelihood is zero.
            msg["fn"] = msg["fn"].mask(rows > 0)

    def tempered(exponents: Any, X: Any, y: Any) -> Any:
        with Temper(exponents):
            return model(X, y)

    return tempered


def _traceable(model: Callable[..., Any], arguments: tuple[Any, Any]) -> bool:
    import jax

    try:
        jax.eval_shape(lambda X, y: (_trace(model, (X, y), {}), 0)[1], *arguments)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):
        return False
    return True


def _trace(model: Callable[..., Any], arguments: tuple[Any, Any], theta: Mapping[str, Any]) -> Any:
    import jax
    from numpyro import handlers

    seeded = handlers.seed(model, jax.random.PRNGKey(0))
    return handlers.trace(handlers.substitute(seeded, dict(theta))).get_trace(*arguments)
