"""ArviZ objects: write draws of a tempered posterior as one, read those of other libraries.

Trees of arviz-base (PyMC 6, ArviZ 1) and the InferenceData of ArviZ 0 are both read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.models.sampled.draws import Draws
from temperance.types import Array

SAMPLE_DIMS = ("chain", "draw")


def arviz_tree(draws: Draws, observed: Mapping[str, Array], attrs: Mapping[str, Any]) -> Any:
    """Return draws as an ``xarray.DataTree``, for ArviZ's summaries, diagnostics and plots.

    The groups are ``posterior``, ``log_likelihood`` (minus the loss of every row, untempered) and
    ``observed_data``.  The number of divergent transitions joins ``attrs``.

    Parameters
    ----------
    draws : Draws
    observed : arrays with n rows by name; the log likelihood has the name of the first
    attrs : entries for all groups, such as beta, alpha and n

    Examples
    --------
    >>> import numpy as np
    >>> draws = Draws({"mu": np.zeros((2, 50))}, losses=np.ones((2, 50, 3)))
    >>> tree = arviz_tree(draws, {"y": np.arange(3.0)}, {"beta": 0.5, "alpha": 1.5, "n": 3})
    >>> tree.attrs["beta"], dict(tree["log_likelihood"].sizes)
    (0.5, {'chain': 2, 'draw': 50, 'y_row': 3})
    """
    try:
        from arviz_base import from_dict
    except ImportError:
        raise ImportError(
            "ArviZ objects need arviz-base: pip install 'temperance[arviz]'"
        ) from None
    name = next(iter(observed))
    # A parameter may have the name of the observed variable; in ArviZ groups have separate names.
    groups = {
        "posterior": {key: np.asarray(value) for key, value in draws.theta.items()},
        "log_likelihood": {name: -np.asarray(draws.losses)},
        "observed_data": {key: np.asarray(value) for key, value in observed.items()},
    }
    rows = {key: [f"{name}_row"] for key in observed}
    about = {**attrs, "divergences": int(draws.divergent)}
    return from_dict(groups, dims=rows, attrs={"/": about, "posterior": about})


def pointwise(source: Any, variable: str | None = None) -> tuple[Array, Array | None]:
    """Return the log likelihood (chains, draws, n) of one variable, and its values if stored."""
    group = _group(source, "log_likelihood")
    if group is None:
        raise ValueError(
            "log_likelihood must have a group of that name, which an ArviZ object gets by "
            "pm.compute_log_likelihood(idata) from PyMC, or by log_likelihood= in from_numpyro and "
            "from_cmdstanpy"
        )
    names = [str(name) for name in group.data_vars]
    if variable is None and len(names) != 1:
        raise ValueError(f"variable must name one of {', '.join(names)}: several are observed")
    chosen = names[0] if variable is None else variable
    if chosen not in names:
        raise ValueError(f"variable must be one of {', '.join(names)}, got {variable!r}")
    table = group[chosen].transpose(*SAMPLE_DIMS, ...)
    values = np.asarray(table.values, dtype=float)
    values = values.reshape(*values.shape[:2], -1)
    observed = _group(source, "observed_data")
    if observed is None or chosen not in observed.data_vars:
        return values, None
    y = np.asarray(observed[chosen].values).ravel()
    usable = y.dtype.kind in "biuf" and len(y) == values.shape[2]
    return values, y.astype(float) if usable else None


def resampled(source: Any, chosen: NDArray[np.intp], attrs: Mapping[str, Any]) -> Any:
    """Return the groups that have draws, with draws selected by flat index (chains, draws)."""
    import xarray

    groups = {}
    for name in ("posterior", "log_likelihood", "posterior_predictive"):
        group = _group(source, name)
        if group is not None:
            size = group.sizes["draw"]
            # Chain and draw of each selected draw, as index arrays with the new dimensions.
            index = {
                "chain": xarray.DataArray(chosen // size, dims=SAMPLE_DIMS),
                "draw": xarray.DataArray(chosen % size, dims=SAMPLE_DIMS),
            }
            taken = group.isel(index).drop_vars(SAMPLE_DIMS)
            labels = {
                dim: np.arange(count) for dim, count in zip(SAMPLE_DIMS, chosen.shape, strict=True)
            }
            groups[f"/{name}"] = taken.assign_coords(labels).assign_attrs(attrs)
    if "/posterior" not in groups:
        raise ValueError("to_arviz needs an ArviZ object with a group 'posterior', got none")
    for name in ("observed_data", "constant_data"):
        group = _group(source, name)
        if group is not None:
            groups[f"/{name}"] = group
    tree = xarray.DataTree.from_dict(groups)
    tree.attrs.update(attrs)
    return tree


def _group(source: Any, name: str) -> Any:
    """Return a group as a dataset, or None."""
    if name not in source:
        return None
    group = source[name]
    # JAX arrays, which from_numpyro leaves in place, cannot be indexed by numpy arrays.
    return (group.to_dataset() if hasattr(group, "to_dataset") else group).as_numpy()
