r"""A model written in NumPyro."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from temperance.models.sampled import SampledModel, refuse_nan
from temperance.sampling.draws import Draws
from temperance.types import Array, Data


@dataclass(frozen=True, eq=False)
class NumPyroModel(SampledModel):
    r"""A NumPyro model function, its observed sites tempered row by row.

    .. math:: \pi_c(\theta) \propto \prod_i p(y_i | \theta, x_i)^{c_i} \, \pi_0(\theta)

    The function is called as ``model(X, y)``, with the X (n, d) and y (n,) that are handed to
    :func:`temperance.calibrate`; without columns X is None.

    Parameters
    ----------
    model : function (X, y)
        Unchanged: neither scaled nor masked.
    sites : names of the observed sites to temper
        By default all that are observed.  A ``numpyro.factor`` may be a likelihood or a prior: a
        model with one must name its sites.
    chains, draws, warmup : numbers of chains, of draws of each, and of steps to tune it
    overlap : least share of effective draws from a rung of the ladder to the next
    seed : int

    Examples
    --------
    >>> import numpy as np, numpyro, numpyro.distributions as dist
    >>> def model(X, y):
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    ...     numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)
    >>> posterior = NumPyroModel(model).posterior(None, np.array([2.0, 4.0]), alpha=2.0)
    >>> print(f"{float(posterior['posterior']['mean'].mean()):.1f}")  # N(2, 1/3)
    2.0
    """

    model: Callable[[Any, Any], Any]
    sites: Sequence[str] | None = None
    chains: int = 4
    draws: int = 500
    warmup: int = 500
    overlap: float = 0.5
    seed: int = 0
    _samplers: dict[str, tuple[Data, NumPyroSampler]] = field(
        default_factory=dict, init=False, repr=False
    )

    def sampler(self, data: Data) -> NumPyroSampler:
        """Return the sampler on these data, compiled once."""
        last = self._samplers.get("last")
        if last is None or not _same(last[0], data):
            last = (data, NumPyroSampler(self, data))
            self._samplers["last"] = last
        return last[1]


class NumPyroSampler:
    """NUTS on the tempered model, compiled once for all exponents."""

    def __init__(self, settings: NumPyroModel, data: Data) -> None:
        try:
            import jax
            import numpyro
            from numpyro.infer.util import initialize_model
        except ImportError:
            raise ImportError("NumPyroModel needs numpyro: pip install 'temperance[jax]'") from None
        self.settings, self.count = settings, len(data)
        self.arguments = (
            (jax.numpy.asarray(data.X) if data.X.shape[1] else None),
            jax.numpy.asarray(data.y),
        )
        self.sites = self._tempered_sites()
        tempered = _tempering(settings.model, self.sites, self.arguments)
        self.known = initialize_model(
            jax.random.PRNGKey(settings.seed),
            tempered,
            dynamic_args=True,
            model_args=(jax.numpy.ones(self.count),),
            validate_grad=False,
        )
        self.kernel = numpyro.infer.hmc.hmc(potential_fn_gen=self.known.potential_fn, algo="NUTS")
        self.run = jax.jit(jax.vmap(self._chain, in_axes=(0, 0, None)))

    def draw(self, exponents: Array, seed: int, start: Any = None) -> Draws:
        """Draw from the posterior with ``exponents`` (n,); ``start`` is an ``end`` of before."""
        import jax

        begin, chains = jax.random.split(jax.random.PRNGKey(seed)), self.settings.chains
        if start is None:
            start = self._scattered(begin[0])
        keys = jax.random.split(begin[1], chains)
        end, (theta, losses, divergent) = self.run(keys, start, jax.numpy.asarray(exponents))
        found = np.asarray(losses, dtype=float)
        refuse_nan(found)
        parameters = {name: np.asarray(value, dtype=float) for name, value in theta.items()}
        return Draws(parameters, found, int(np.sum(divergent)), end)

    def _chain(self, key: Any, position: Any, exponents: Any) -> Any:
        import jax

        begin, move = self.kernel
        arguments = (exponents,)
        state = begin(position, num_warmup=self.settings.warmup, rng_key=key, model_args=arguments)
        constrain = self.known.postprocess_fn(*arguments)

        def step(state: Any, _: Any) -> Any:
            return move(state, model_args=arguments), None

        def record(state: Any, _: Any) -> Any:
            state = move(state, model_args=arguments)
            theta = constrain(state.z)
            return state, (theta, self._losses(theta), state.diverging)

        state, _ = jax.lax.scan(step, state, None, length=self.settings.warmup)
        state, drawn = jax.lax.scan(record, state, None, length=self.settings.draws)
        return state.z, drawn

    def _losses(self, theta: Any) -> Any:
        """Minus the log likelihood of each row, over all tempered sites, (n,)."""
        trace = _trace(self.settings.model, self.arguments, theta)
        parts = [trace[name]["fn"].log_prob(trace[name]["value"]) for name in self.sites]
        return -sum(part.reshape(self.count, -1).sum(axis=1) for part in parts)

    def _scattered(self, key: Any) -> Any:
        """Points within 2 of zero, where every parameter is unconstrained, one for each chain."""
        import jax

        template = self.known.param_info.z
        keys = dict(zip(template, jax.random.split(key, len(template)), strict=True))
        return {
            name: jax.random.uniform(
                keys[name], (self.settings.chains, *value.shape), minval=-2.0, maxval=2.0
            )
            for name, value in template.items()
        }

    def _tempered_sites(self) -> tuple[str, ...]:
        trace = _trace(self.settings.model, self.arguments, {})
        observed = {
            name: site
            for name, site in trace.items()
            if site["type"] == "sample" and site["is_observed"]
        }
        if not observed:
            raise ValueError("model must have an observed site, got none: write obs=y")
        named = self.settings.sites
        if named is None:
            factors = [name for name, site in observed.items() if _is_factor(site)]
            if factors:
                raise ValueError(
                    f"sites must name what to temper, of {', '.join(observed)}: the factor "
                    f"{factors[0]!r} may be a likelihood or a prior"
                )
            named = tuple(observed)
        for name in named:
            if name not in observed:
                raise ValueError(
                    f"sites must be observed, one of {', '.join(observed)}, got {name!r}"
                )
            shape = tuple(observed[name]["fn"].batch_shape)
            if not shape or shape[0] != self.count:
                raise ValueError(
                    f"site {name!r} must have a log probability for each of the {self.count} rows, "
                    f"got batch shape {shape}"
                )
        return tuple(named)


def _tempering(
    model: Callable[..., Any], sites: tuple[str, ...], arguments: tuple[Any, Any]
) -> Callable[[Any], Any]:
    from numpyro.primitives import Messenger

    class Temper(Messenger):  # type: ignore[misc, unused-ignore]
        """Scale the named sites by row; unlike handlers.scale, by 0 too."""

        def __init__(self, exponents: Any) -> None:
            self.exponents = exponents
            super().__init__()

        def process_message(self, msg: Any) -> None:
            if msg["type"] != "sample" or msg["name"] not in sites:
                return
            rows = self.exponents.reshape(-1, *(1,) * (len(msg["fn"].batch_shape) - 1))
            msg["scale"] = rows if msg.get("scale") is None else msg["scale"] * rows
            # A row without weight plays no part even where its likelihood is zero.
            msg["fn"] = msg["fn"].mask(rows > 0)

    def tempered(exponents: Any) -> Any:
        with Temper(exponents):
            return model(*arguments)

    return tempered


def _trace(model: Callable[..., Any], arguments: tuple[Any, Any], theta: Mapping[str, Any]) -> Any:
    import jax
    from numpyro import handlers

    seeded = handlers.seed(model, jax.random.PRNGKey(0))
    return handlers.trace(handlers.substitute(seeded, dict(theta))).get_trace(*arguments)


def _is_factor(site: Any) -> bool:
    return type(site["fn"]).__name__ == "Unit" or bool(site["infer"].get("is_auxiliary"))


def _same(one: Data, other: Data) -> bool:
    return one is other or (np.array_equal(one.X, other.X) and np.array_equal(one.y, other.y))
