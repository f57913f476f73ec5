"""Calls in a child of a fork."""

import os
import pickle
from collections.abc import Callable
from typing import TypeVar

from curvote.base.errors import InternalError

T = TypeVar("T")


def run_in_child(make: Callable[[], T]) -> T:
    """Return the result of ``make`` in a forked child process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(pickle.dumps(make()))
        finally:
            os._exit(0)  # no exit handlers: they are the parent's
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        pickled = stream.read()
    os.waitpid(child, 0)
    if not pickled:
        raise InternalError("a child of a fork ended without a word")
    result: T = pickle.loads(pickled)  # noqa: S301 - of our own child
    return result
