r"""The Gaussian whose covariance is the sandwich J^-1 I J^-1 / n."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from temperance.checks import one_of
from temperance.data import Data
from temperance.posteriors.covariance_root import CovarianceRoot
from temperance.posteriors.gaussian import GaussianPosterior
from temperance.protocols import HasDesign, HasInformation, Model, MovesDraws
from temperance.uncertainty.information import (
    CORRECTIONS,
    Correction,
    Units,
    as_groups,
    sandwich_root,
)


def sandwich_posterior(
    model: Model,
    data: Data,
    posterior: Any,
    groups: ArrayLike | None,
    correction: Correction = "HC0",
) -> Any:
    """Return N(minimiser, J^-1 I J^-1 / n), in the class of a Gaussian posterior of the model.

    Of a sampled model, the draws of its posterior, moved so that they have this covariance.
    """
    one_of("correction", correction, CORRECTIONS)
    labels = as_groups(groups, len(data))
    if isinstance(model, MovesDraws):
        if correction != "HC0":
            raise ValueError(f"correction must be 'HC0' for sampled models, got {correction!r}")
        return model.moved_draws(posterior, data, labels)
    if not isinstance(model, HasInformation) or not isinstance(model, HasDesign):
        raise ValueError(
            "the sandwich needs a model with information(data) and design(X), got "
            f"{type(model).__name__}"
        )
    information = model.information(data)
    root = CovarianceRoot(sandwich_root(information, Units(data, labels), correction))
    if isinstance(posterior, GaussianPosterior):
        return replace(posterior, mean=information.minimiser, root=root)
    return GaussianPosterior(information.minimiser, root, model.design)
