"""ArviZ objects: write draws of a tempered posterior as one, read those of other libraries.

What is written is what the installed ArviZ takes: the InferenceData of ArviZ 0, which PyMC 5 comes
with, otherwise the tree of ArviZ 1.  Both are read.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array
from temperance.models.sampled.draws import Draws

SAMPLE_DIMS = ("chain", "draw")


def arviz_tree(draws: Draws, observed: Mapping[str, Array], attrs: Mapping[str, Any]) -> Any:
    """Return draws as an ArviZ object, for its summaries, diagnostics and plots.

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
    name = next(iter(observed))
    rows = {key: (f"{name}_row",) for key in observed} | dict(draws.dims)
    log_likelihood = -np.asarray(draws.losses)
    # A parameter may have the name of the observed variable; in ArviZ groups have separate names.
    groups = {
        "posterior": _dataset(draws.theta, draws.dims, draws.coords, SAMPLE_DIMS),
        "log_likelihood": _dataset(
            {name: log_likelihood}, {name: rows[name][:1]}, draws.coords, SAMPLE_DIMS
        ),
        "observed_data": _dataset(observed, rows, draws.coords),
    }
    about = {**attrs, "divergences": int(draws.divergent)}
    groups["posterior"] = groups["posterior"].assign_attrs(about)
    return as_arviz(groups, about)


def as_arviz(groups: Mapping[str, Any], attrs: Mapping[str, Any]) -> Any:
    """Return datasets by name as the kind of object that the installed ArviZ takes."""
    if _takes_trees():
        import xarray

        tree = xarray.DataTree.from_dict({f"/{name}": group for name, group in groups.items()})
        tree.attrs.update(attrs)
        return tree
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what ArviZ 0 says of its successor on import
        from arviz import InferenceData
    return InferenceData(attrs=dict(attrs), **groups)


def groups_of(source: Any) -> dict[str, Any]:
    """Return the groups of an ArviZ object as datasets by name."""
    names = source.groups() if callable(source.groups) else source.children
    return {str(name): _group(source, str(name)) for name in names}


def require_arviz() -> None:
    """Refuse to begin where the posterior could not be given to ArviZ in the end."""
    if find_spec("xarray") is None:
        raise ImportError("posteriors of draws need ArviZ: pip install 'temperance[arviz]'")


def _takes_trees() -> bool:
    try:
        return int(version("arviz").partition(".")[0]) >= 1
    except PackageNotFoundError:
        return True


def _dataset(
    arrays: Mapping[str, Array],
    dims: Mapping[str, Sequence[str]],
    coords: Mapping[str, Array],
    first: tuple[str, ...] = (),
) -> Any:
    """Return arrays as a dataset whose dimensions all have coordinates."""
    import xarray

    variables, labels = {}, {}
    for name, array in arrays.items():
        values = np.asarray(array)
        rest = values.ndim - len(first)
        named = list(dims.get(name, ()))[:rest]
        named += [f"{name}_dim_{k}" for k in range(len(named), rest)]
        for dim, size in zip((*first, *named), values.shape, strict=True):
            given = coords.get(dim)
            labels[dim] = np.arange(size) if given is None or len(given) != size else given
        variables[name] = ((*first, *named), values)
    return xarray.Dataset(variables, labels)


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
            groups[name] = taken.assign_coords(labels).assign_attrs(attrs)
    if "posterior" not in groups:
        raise ValueError("to_arviz needs an ArviZ object with a group 'posterior', got none")
    for name in ("observed_data", "constant_data"):
        group = _group(source, name)
        if group is not None:
            groups[name] = group
    return as_arviz(groups, attrs)


def _group(source: Any, name: str) -> Any:
    """Return a group as a dataset, or None."""
    if name not in source:
        return None
    group = source[name]
    # JAX arrays, which from_numpyro leaves in place, cannot be indexed by numpy arrays.
    return (group.to_dataset() if hasattr(group, "to_dataset") else group).as_numpy()
