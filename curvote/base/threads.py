"""Limit of the threads of numerical libraries, for results and for speed."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

_changing = threading.Lock()
_inside: list[Any] = []


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread, as reductions depend on it.

    Several threads of a process may be inside at once. BLAS has one limit for all of
    them, so that the last to leave restores it; OpenMP has one for each.
    """
    with _changing:
        _inside.append(_thread_pools(len(sys.modules)).limit(limits=1))
    try:
        yield
    finally:
        with _changing:
            limits = _inside.pop()  # the limits that were found last are restored first
            limits.restore_original_limits()


@lru_cache(maxsize=1)
def _thread_pools(_modules: int) -> ThreadpoolController:
    """Return the controller of the loaded libraries that have threads.

    To look for them takes longer than a small block.
    """
    return ThreadpoolController()
