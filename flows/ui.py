"""MLflow's pages, where runs are compared."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from types import FrameType

from curvote.run.project import Project
from flows import tracking
from flows.environment import prepare

_STOP_TIMEOUT = 5.0


def open_ui(project: Project, port: int) -> None:
    """Serve MLflow's pages on this machine until Ctrl-C or SIGTERM.

    The first start makes the database. Returns when all its processes have ended.
    """
    prepare(project.root)
    tracking.initialise(project)
    print(f"MLflow: http://127.0.0.1:{port} (ready in some seconds; Ctrl-C ends it)")
    sys.stdout.flush()
    before = signal.signal(signal.SIGTERM, _interrupt)
    pages = _launch(port)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            pages.wait()
    finally:
        _end(pages)
        signal.signal(signal.SIGTERM, before)


def _launch(port: int) -> subprocess.Popen[bytes]:
    """Start it in a process group of its own, which can be ended as a whole."""
    store = os.environ["MLFLOW_TRACKING_URI"]
    command = [sys.executable, "-m", "mlflow", "ui", "--workers", "1"]
    return subprocess.Popen(
        [*command, "--backend-store-uri", store, "--port", str(port)],
        env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
        start_new_session=True,
    )


def _end(pages: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pages.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            pages.wait(_STOP_TIMEOUT)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
