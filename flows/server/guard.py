"""The server of one run, started again when it dies: the run waits, and goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from curvote.flows.output import lines
from curvote.flows.serving.children import Child

_LOOK_EVERY = 0.5
# A server that cannot be kept alive is given up; the run then says why.
_MOST_STARTS = 4


@contextmanager
def guarded(child: Child) -> Iterator[None]:
    """Start ``child`` again whenever it ends meanwhile, three times at most."""
    over = threading.Event()
    thread = threading.Thread(target=_guard, args=(child, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _guard(child: Child, over: threading.Event) -> None:
    while not over.wait(_LOOK_EVERY):
        how = child.ended()
        if not how:
            continue
        if child.starts == _MOST_STARTS:
            lines.say(f"{child.called} {how} and is given up", "error")
            return
        wait = child.fell()
        lines.say(f"{child.called} {how}; it is started again", "warning")
        if over.wait(wait):
            return
        try:
            child.start()
        except OSError as error:  # no space for its log, or no more processes
            lines.say(f"{child.called} is given up: {error.strerror}", "error")
            return
