"""MLflow's pages, where runs are compared."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from curvote.errors import UserError
from curvote.flows.environment import prepare
from curvote.flows.server.launch import listen
from curvote.flows.tracking import log as tracking
from curvote.flows.tracking.view import address
from curvote.run.project import Project

_STOP_TIMEOUT = 5.0


def open_ui(project: Project, port: int) -> None:
    """Serve MLflow's pages on this machine until Ctrl-C or SIGTERM.

    The first start makes the database. Returns when all its processes have ended.

    Raises:
        UserError: the port is taken, or MLflow ended by itself; holds its last lines.
    """
    state = prepare(project.root)
    listen(port).close()
    if not (state / "mlflow.db").exists():
        tracking.initialise(project)
    log = state / "mlflow-ui.log"
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    pages = _launch(port, log)
    try:
        place = f"http://127.0.0.1:{port}/{address(project)}"
        print(f"MLflow: {place} (up in some seconds; Ctrl-C ends it)")
        sys.stdout.flush()
        pages.wait()
        end = log.read_text(errors="replace").splitlines()[-5:]
        raise UserError("\n".join([f"MLflow has ended; {log} says:", *end]))
    except KeyboardInterrupt:
        pass
    finally:
        _end(pages)
        signal.signal(signal.SIGTERM, before)


def _launch(port: int, log: Path) -> subprocess.Popen[bytes]:
    """Start it in a process group of its own, which can be ended as a whole."""
    store = os.environ["MLFLOW_TRACKING_URI"]
    command = [sys.executable, "-m", "mlflow", "ui", "--workers", "1"]
    with log.open("wb") as file:
        return subprocess.Popen(
            [*command, "--backend-store-uri", store, "--port", str(port)],
            env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
            stdout=file,
            stderr=file,
            start_new_session=True,
        )


def _end(pages: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pages.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            pages.wait(_STOP_TIMEOUT)
