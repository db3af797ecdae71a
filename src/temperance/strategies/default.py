r"""The strategy that is taken where none is named."""

from __future__ import annotations

from temperance.strategies.k_fold import KFold
from temperance.strategies.reference_risk import ReferenceRisk
from temperance.types import Risk, Strategy, Transfer


def default_strategy(model: object, risk: Risk = "gibbs", transfer: Transfer = "beta") -> Strategy:
    """Return reference risk where it was measured to earn that, and ten folds elsewhere.

    A model whose attribute ``reference_by_default`` is true takes :class:`ReferenceRisk` for the
    Gibbs risk; of those in :mod:`temperance.models` the linear ones with known variance have it.
    ``docs/how-to-choose.md`` has the measurements and what they must reach.  Only folds can hold
    alpha.

    Examples
    --------
    >>> from temperance import models
    >>> default_strategy(models.GaussianLinear())
    ReferenceRisk(veto=2.0, duplicates='auto')
    >>> default_strategy(models.GaussianLinear(), risk="predictive")
    KFold(n_folds=10, transfer='beta', duplicates='auto')
    """
    earned = risk == "gibbs" and getattr(model, "reference_by_default", False)
    return ReferenceRisk() if earned and transfer == "beta" else KFold(transfer=transfer)
