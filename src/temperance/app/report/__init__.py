"""A self-contained page on one calibration."""

from temperance.app.report.compute import compute
from temperance.app.report.page import render

__all__ = ["compute", "render"]
