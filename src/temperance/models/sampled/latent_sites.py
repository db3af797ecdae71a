"""Latent sites of NumPyro models: what cannot be sampled along beta is refused."""

from __future__ import annotations

from typing import Any


def refuse_latent(argument: str, name: str, distribution: Any) -> None:
    """Refuse a discrete or an improper distribution of a latent site."""
    inner = distribution
    while True:
        kind = type(inner).__name__
        if kind == "ImproperUniform":
            raise ValueError(
                f"{argument} must be proper, for beta = 0 is the prior, got ImproperUniform "
                f"for {name!r}"
            )
        if not hasattr(inner, "base_dist"):
            break
        inner = inner.base_dist
    if distribution.support.is_discrete:
        raise ValueError(
            f"{argument} must be continuous, for draws move along gradients, got {kind} "
            f"for {name!r}"
        )
