"""One BLAS thread for small problems, where several are slower: much slower on a busy machine."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

LARGE = 100_000_000  # elements of the data beyond which threads pay


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def threads_for(elements: int) -> AbstractContextManager[Any]:
    """Limit BLAS to one thread inside the context, unless the data have very many elements."""
    if elements > LARGE or all(each.num_threads == 1 for each in _controller().lib_controllers):
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")
