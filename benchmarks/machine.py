"""What the numbers were measured with: processor, cores, versions; no names of hosts or paths."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

import numpy as np

PACKAGES = ("temperance", "numpy", "scipy", "scikit-learn")


def machine() -> dict[str, object]:
    """Describe the processor, and the library behind matrix products."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "blas": f"{blas['name']} {blas['version']}",
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages."""
    return {"python": platform.python_version()} | {
        name: metadata.version(name) for name in PACKAGES
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()
