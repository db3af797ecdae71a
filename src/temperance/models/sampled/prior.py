r"""Priors of models in JAX: a density and draws of it, in unconstrained coordinates.

Sampling works on z in R^d with theta = T(z), and log pi(z) = log pi(theta) + log |det dT/dz|.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from temperance.checks import shown
from temperance.models.sampled.latent_sites import refuse_latent
from temperance.models.sampled.precision import double_precision

Tree = Any
ACCEPTED = (
    "prior must be a NumPyro distribution, a pytree of them or a NumPyro model without observations"
)


@dataclass(frozen=True, eq=False)
class Prior:
    """Density of a prior, and draws from it if there is a function for them.

    Parameters
    ----------
    start : pytree
        A point z: structure, shapes, and start of chains.
    log_density : function z -> scalar
    constrain : function z -> theta
    draw : function of a JAX key -> z, or None to sample the density from ``start``
    """

    start: Tree
    log_density: Callable[[Tree], Any]
    constrain: Callable[[Tree], Tree]
    draw: Callable[[Any], Tree] | None


def prior_from(prior: Any, log_prior: Any, draw_prior: Any, init: Any) -> Prior:
    """Return the prior that the arguments of a model describe."""
    if prior is None and log_prior is None:
        raise ValueError(f"{ACCEPTED}, or log_prior a log density, got neither")
    if prior is not None:
        for name, given in (("log_prior", log_prior), ("draw_prior", draw_prior), ("init", init)):
            if given is not None:
                raise ValueError(f"{name} must be left out beside prior, got {shown(given)}")
        with double_precision():
            return _from_numpyro(prior)
    if not callable(log_prior):
        raise ValueError(f"log_prior must be a function, got {shown(log_prior)}")
    if draw_prior is None:
        if init is None or callable(init):
            raise ValueError(
                "init must be a parameter to start from, a pytree of real numbers, for a log_prior "
                f"without draw_prior, got {shown(init)}"
            )
        return Prior(_as_numbers("init", init), log_prior, _same, None)
    if init is not None:
        raise ValueError(f"init must be left out beside draw_prior, got {shown(init)}")
    if not callable(draw_prior):
        raise ValueError(f"draw_prior must be a function of a JAX key, got {shown(draw_prior)}")
    try:
        with double_precision():
            start = draw_prior(jax.random.key(0))
    except Exception as error:
        raise ValueError(
            f"draw_prior must be a function of a JAX key, got {type(error).__name__}: {error}"
        ) from error
    return Prior(_as_numbers("draw_prior", start), log_prior, _same, draw_prior)


def _same(tree: Tree) -> Tree:
    return tree


def _as_numbers(name: str, tree: Tree) -> Tree:
    """Return a pytree of real numbers as given; refuse anything else."""
    try:
        with double_precision():
            leaves = [np.asarray(leaf, dtype=float) for leaf in jax.tree.leaves(tree)]
    except (TypeError, ValueError):
        leaves = []
    if not sum(leaf.size for leaf in leaves):
        kind = "be" if name == "init" else "return"
        raise ValueError(f"{name} must {kind} a pytree of real numbers, got {shown(tree)}")
    return tree


def _from_numpyro(prior: Any) -> Prior:
    try:
        from numpyro.distributions import Distribution
    except ImportError:
        raise ImportError("prior needs NumPyro: pip install 'temperance[jax]'") from None

    def is_distribution(part: Any) -> bool:
        return isinstance(part, Distribution)

    leaves, structure = jax.tree.flatten(prior, is_leaf=is_distribution)
    if leaves and all(is_distribution(leaf) for leaf in leaves):
        return _of_distributions(leaves, structure)
    if callable(prior):
        return _of_model(prior)
    raise ValueError(f"{ACCEPTED}, got {shown(prior)}")


def _of_distributions(leaves: list[Any], structure: Any) -> Prior:
    from numpyro.distributions import biject_to

    for leaf in leaves:
        refuse_latent("prior", type(leaf).__name__, leaf)
    transforms = [biject_to(leaf.support) for leaf in leaves]

    def constrain(z: Tree) -> Tree:
        parts = structure.flatten_up_to(z)
        return structure.unflatten([t(part) for t, part in zip(transforms, parts, strict=True)])

    def log_density(z: Tree) -> Any:
        total: Any = 0.0
        for leaf, transform, part in zip(
            leaves, transforms, structure.flatten_up_to(z), strict=True
        ):
            theta = transform(part)
            volume = transform.log_abs_det_jacobian(part, theta)
            total += jnp.sum(leaf.log_prob(theta)) + jnp.sum(volume)
        return total

    def draw(key: Any) -> Tree:
        keys = jax.random.split(key, len(leaves))
        return structure.unflatten(
            [
                transform.inv(leaf.sample(own)).astype(float)
                for own, leaf, transform in zip(keys, leaves, transforms, strict=True)
            ]
        )

    return Prior(jax.jit(draw)(jax.random.key(0)), log_density, constrain, draw)


def _of_model(model: Callable[[], Any]) -> Prior:
    from numpyro import handlers
    from numpyro.infer.util import constrain_fn, potential_energy, unconstrain_fn

    def latent(key: Any) -> dict[str, Any]:
        trace = handlers.trace(handlers.seed(model, key)).get_trace()
        return {name: site for name, site in trace.items() if site["type"] == "sample"}

    try:
        sites = latent(jax.random.key(0))
    except NotImplementedError:
        raise ValueError("prior must be proper, got a site that cannot be sampled") from None
    except TypeError as error:
        raise ValueError(f"{ACCEPTED} or arguments, got TypeError: {error}") from error
    if not sites:
        raise ValueError(f"{ACCEPTED}, got a function without sites; a density is log_prior")
    for name, site in sites.items():
        if site["is_observed"]:
            raise ValueError(f"prior must be a model without observations, got {name!r} observed")
        refuse_latent("prior", name, site["fn"])

    def draw(key: Any) -> Tree:
        values = {name: site["value"] for name, site in latent(key).items()}
        z = unconstrain_fn(model, (), {}, values)
        return {name: jnp.asarray(z[name], dtype=float) for name in sites}

    def constrain(z: Tree) -> Tree:
        return constrain_fn(model, (), {}, z, return_deterministic=True)

    def log_density(z: Tree) -> Any:
        return -potential_energy(model, (), {}, z)

    return Prior(jax.jit(draw)(jax.random.key(0)), log_density, constrain, draw)
