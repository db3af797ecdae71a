"""Runs PyStan in a separate process: one request per line on standard input, one answer each.

PyStan forks to sample and needs an event loop.  Both conflict with the threads of other libraries
and with a notebook's event loop, so it runs alone here.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np


def run(request: dict[str, Any]) -> None:
    """Build the program, sample, and save every parameter as (chains, draws, ...)."""
    import stan

    keep_fits_in(Path(request["out"]).parent)
    program = stan.build(request["program_code"], data=request["data"], random_seed=request["seed"])
    chains, draws = request["chains"], request["draws"]
    given = {} if request["init"] is None else {"init": request["init"]}
    fit = program.sample(
        num_chains=chains, num_samples=draws, num_warmup=request["warmup"], **given
    )
    found = {"divergent__": np.asarray(fit["divergent__"]).sum()}
    for name, shape in zip(fit.param_names, fit.dims, strict=True):
        # PyStan's arrays have shape (..., draws x chains).
        flat = np.asarray(fit[name]).reshape(*shape, draws, chains)
        found[name] = np.moveaxis(flat, (-1, -2), (0, 1))
    np.savez(request["out"], **found)


def keep_fits_in(folder: Path) -> None:
    """Store fits in a temporary folder; PyStan would keep those with a seed for ever.

    A ladder makes hundreds of fits that are not needed again.  Compiled programs are kept.
    """
    from httpstan import cache

    cache.fit_path = lambda name: folder / f"{name.rpartition('/')[2]}.jsonlines.gz"


def main() -> None:
    """Answer requests until standard input ends."""
    warnings.simplefilter("ignore")
    answers = sys.stdout
    for line in sys.stdin:
        printed = io.StringIO()
        answer = {"error": ""}
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                run(json.loads(line))
            except Exception as error:
                message = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", printed.getvalue()).split())
                answer["error"] = f"{error} {message[-500:]}".strip()
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
