"""Private Prefect server for one command, restarted when it dies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from curvote.flows.output import lines
from curvote.flows.serving.children import Child

_POLL_SECONDS = 0.5
# A server that cannot be kept alive is given up; the run then says why.
_MAX_STARTS = 4


@contextmanager
def kept_alive(child: Child) -> Iterator[None]:
    """Restart ``child`` whenever it ends, three times at most."""
    over = threading.Event()
    thread = threading.Thread(target=_keep_alive, args=(child, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _keep_alive(child: Child, over: threading.Event) -> None:
    while not over.wait(_POLL_SECONDS):
        how = child.end_reason()
        if not how:
            continue
        if child.starts == _MAX_STARTS:
            lines.write_line(f"{child.called} {how} and is given up", "error")
            return
        wait = child.schedule_restart()
        lines.write_line(f"{child.called} {how}; it is started again", "warning")
        if over.wait(wait):
            return
        try:
            child.start()
        except OSError as error:  # no space for its log, or no more processes
            lines.write_line(f"{child.called} is given up: {error.strerror}", "error")
            return
