"""Warnings, each with what to do about it."""

from __future__ import annotations


class TemperanceWarning(UserWarning):
    """Something in a result deserves a second look."""


class BoundWarning(TemperanceWarning):
    """The estimated risk is smallest at a bound of beta."""


class FlatCurveWarning(TemperanceWarning):
    """The estimated risk does not depend on beta."""


class ConvergenceWarning(TemperanceWarning):
    """An iteration stopped before it reached its tolerance."""
