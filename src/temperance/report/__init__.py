"""A self-contained page on one calibration."""

from temperance.report.compute import compute
from temperance.report.page import render

__all__ = ["compute", "render"]
