"""Dates in columns, as days since 1 January 1970."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from temperance.data import Array

ISO = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?( ?(Z|[+-]\d\d(:?\d\d)?))?)?", re.ASCII
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def days_of(value: Any) -> float:
    """Return a date, a time or text in ISO 8601 as days since 1970; nan for other values.

    Times without a zone are taken as UTC.

    Examples
    --------
    >>> days_of("1970-01-03T12:00"), days_of("1970-02-31"), days_of("tomorrow")
    (2.5, nan, nan)
    """
    if isinstance(value, str):
        text = value.strip()
        if not ISO.fullmatch(text):
            return np.nan
        try:
            value = datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", ""))
        except ValueError:
            return np.nan
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime) or value != value:  # NaT differs from itself
        return np.nan
    moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return (moment - EPOCH).total_seconds() / 86400


def all_days(levels: Iterable[Any]) -> Array | None:
    """Return the days of values if all are dates, otherwise None."""
    days = []
    for level in levels:
        day = days_of(level)
        if np.isnan(day):
            return None
        days.append(day)
    return np.array(days) if days else None
