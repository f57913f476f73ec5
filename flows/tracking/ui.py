"""MLflow's pages, where runs are compared, behind a gate with a cookie.

MLflow asks nobody for anything: another user of the machine could read and delete runs.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from curvote.base.errors import UserError
from curvote.flows.environment import new_secret, prepare_environment, write_secret
from curvote.flows.server.launch import LOOPBACK, listen
from curvote.flows.server.process import CookieGate
from curvote.flows.tracking import log as tracking
from curvote.flows.tracking.log import page_fragment as page_of
from curvote.pipeline.config.project import Project

if TYPE_CHECKING:
    from starlette.types import ASGIApp


SECRET_FILE = "mlflow-ui.secret"

_STOP_TIMEOUT = 5.0
# What the process of the pages is given; never on a command line, which all can read.
_ADDRESS, _SECRET = "CURVOTE_UI_ADDRESS", "CURVOTE_UI_SECRET"
_TICKET, _PAGE = "CURVOTE_UI_TICKET", "CURVOTE_UI_PAGE"
_ARTIFACTS = "mlflow-artifacts:/"


def serve_ui(project: Project, port: int) -> None:
    """Serve MLflow's pages on this machine until Ctrl-C or SIGTERM.

    The first start makes the database. Returns when all its processes have ended.

    Raises:
        UserError: the port is taken, or MLflow ended by itself; holds its last lines.
    """
    state = prepare_environment(project.root)
    with listen(port) as free:
        port = free.getsockname()[1]
    if not (state / "mlflow.db").exists():
        tracking.make_database(project)
    log, ticket = state / "mlflow-ui.log", secrets.token_urlsafe(32)
    address, secret = f"http://{LOOPBACK}:{port}", new_secret()
    write_secret(state / SECRET_FILE, secret)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    page = f"/{page_of(project)}"
    page_variables = {_ADDRESS: address, _SECRET: secret, _TICKET: ticket, _PAGE: page}
    page_variables["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
    command = [sys.executable, "-m", "uvicorn", "--factory", f"{__name__}:pages"]
    where = ["--host", LOOPBACK, "--port", str(port), "--no-access-log"]
    with log.open("wb") as file:
        pages = subprocess.Popen(
            [*command, *where],
            env=os.environ | page_variables,
            stdout=file,
            stderr=file,
            start_new_session=True,  # a process group of their own
        )
    try:
        print(f"MLflow: {address}/enter/{ticket}")
        print("(opens once, in some seconds; Ctrl-C ends the pages)")
        sys.stdout.flush()
        pages.wait()
        end = log.read_text(errors="replace").splitlines()[-5:]
        raise UserError("\n".join([f"MLflow has ended; {log} says:", *end]))
    except KeyboardInterrupt:
        pass
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pages.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                pages.wait(_STOP_TIMEOUT)
        signal.signal(signal.SIGTERM, before)


def pages() -> ASGIApp:
    """Return MLflow's application behind its gate.

    `mlflow ui` would take the port itself: here it is told what that tells its app.
    """
    from mlflow.server import constants

    os.environ[constants.BACKEND_STORE_URI_ENV_VAR] = os.environ["MLFLOW_TRACKING_URI"]
    os.environ[constants.ARTIFACT_ROOT_ENV_VAR] = _ARTIFACTS
    os.environ[constants.SERVE_ARTIFACTS_ENV_VAR] = "true"
    address, secret, ticket, page = (
        os.environ.pop(name) for name in (_ADDRESS, _SECRET, _TICKET, _PAGE)
    )
    from mlflow.server.fastapi_app import app

    return CookieGate(app, address, secret, ticket, page)
