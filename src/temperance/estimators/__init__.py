"""scikit-learn estimators that calibrate their posterior in ``fit``."""

try:
    import sklearn  # noqa: F401
except ImportError:
    raise ImportError(
        "the estimators need scikit-learn: pip install 'temperance[sklearn]'"
    ) from None

from temperance.estimators.classifier import GibbsClassifier
from temperance.estimators.regressor import GibbsRegressor

__all__ = ["GibbsClassifier", "GibbsRegressor"]
