"""Draws as an ArviZ object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from temperance.sampling.draws import Draws
from temperance.types import Array

if TYPE_CHECKING:
    import xarray


def arviz_tree(
    draws: Draws, observed: Mapping[str, Array], attrs: Mapping[str, Any]
) -> xarray.DataTree:
    """Return the groups posterior, log_likelihood (minus the losses) and observed_data."""
    try:
        import arviz_base
    except ImportError:
        raise ImportError(
            "ArviZ objects need arviz-base: pip install 'temperance[arviz]'"
        ) from None
    tree = arviz_base.from_dict(
        {
            "posterior": dict(draws.theta),
            "log_likelihood": {"y": -draws.losses},
            "observed_data": dict(observed),
        }
    )
    tree.attrs.update(attrs)
    return tree
