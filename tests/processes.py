"""Which processes work on a project, and waiting for something to happen."""

import os
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from curvote.pipeline.store.parquet import clear_cache


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


def end_workers() -> None:
    """Use two worker processes, which idle for minutes where nothing ends them."""
    from joblib import Parallel, delayed

    from curvote.flows.environment import workers_ended

    with workers_ended():
        Parallel(n_jobs=2)(delayed(abs)(number) for number in range(4))


def start_fork(
    work: Callable[[], object], *, env: Mapping[str, str] | None = None, **how: Any
) -> subprocess.Popen[str]:
    """Start a fork of this process, which has imported all that ``work`` needs.

    Streams, exit code and signals are those of a process; ``how`` is as of Popen.
    """
    given = dict(os.environ if env is None else env)

    def child() -> None:
        clear_cache()  # else a table of the parent's is closed later, by its number
        tracker: Any = resource_tracker.getfd.__self__  # the parent's has its own pipe
        tracker._fd = tracker._pid = None
        os.closerange(3, 65536)  # by the first of them the parent learns of the start
        warnings.simplefilter("ignore")
        os.environ.clear()
        os.environ.update(given)
        sys.stdin = os.fdopen(0)
        sys.stdout, sys.stderr = (os.fdopen(n, "w", buffering=1) for n in (1, 2))
        status: Any = 1
        try:
            work()
            status = 0
        except SystemExit as end:
            status = end.code
        except BaseException:  # noqa: BLE001 - the child must end here
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status or 0)

    return subprocess.Popen(["fork"], preexec_fn=child, text=True, **how)  # noqa: PLW1509


def start_command(*words: str, **how: Any) -> subprocess.Popen[str]:
    """Start ``curvote`` in a fork of this process."""
    from typer.main import get_command

    from curvote.cli import app

    get_command(app.app)  # which forks share

    def work() -> None:
        sys.argv = ["curvote", *words]
        app.main()

    return start_fork(work, **how)


def run_command(*words: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run ``curvote`` in a fork of this process; return its exit code and streams."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
    with start_command(*words, **how) as process:
        out, err = process.communicate(timeout=170)
    return subprocess.CompletedProcess(words, process.returncode, out, err)
