"""Which processes work on a project, and waiting for something to happen."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path


def processes_of(root: Path) -> list[int]:
    """Return the processes that work on the project ``root``, ourselves left out."""
    mark = f"PREFECT_HOME={root / 'data' / 'state' / 'prefect'}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            ours = mark in (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if ours and state != "Z" and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


def until(happened: Callable[[], bool], seconds: float) -> bool:
    """Wait until something has happened, for a time; say whether it has."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happened():
            return True
        time.sleep(0.1)
    return happened()


def in_child(work: Callable[[], object]) -> int:
    """Do ``work`` in a forked child; return its id. It ends with 1 if work raises.

    A fork needs no second to import what this process has imported already, and
    nothing of this process is finished or flushed a second time when it ends.
    """
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001 - the child must end here, whatever happens
        traceback.print_exc()
    finally:
        os._exit(status)
