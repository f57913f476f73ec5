"""Environment variables that are set before Prefect, MLflow or numpy is imported."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator
from pathlib import Path

from curvote.base.durable import private_folder
from curvote.base.errors import UserError

_LOOPBACK = "127.0.0.1,localhost"
# Names the state folder that the variables were set for, to this process and to those
# it starts: what was set for one project is no wish of the user for another.
_PREPARED_VARIABLE = "CURVOTE_STATE"
# Set for the runs of `curvote serve`: the one project that it serves.
SERVED_VARIABLE = "CURVOTE_SERVED"
# Its runner of schedules: a scheduled run ends when that has gone.
RUNNER_VARIABLE = "CURVOTE_RUNNER"


def prepare_environment(project_root: Path) -> Path:
    """Set the variables for ``project_root``; return its state folder.

    To be called before any of them is imported. A variable that the user has set is
    left as it is, except that Prefect's ephemeral server is always off. Creates
    ``data/state``.

    Raises:
        UserError: the folder cannot be created or written.
    """
    state = project_root.resolve() / "data" / "state"
    _make_writable(state)
    before = os.environ.get(_PREPARED_VARIABLE)
    ours = _state_variables(Path(before)) if before else {}
    for name, value in _state_variables(state).items():
        if os.environ.get(name) in (None, ours.get(name)):
            os.environ[name] = value
    os.environ[_PREPARED_VARIABLE] = str(state)
    os.environ["PREFECT_SERVER_ALLOW_EPHEMERAL_MODE"] = "false"
    _bypass_proxy()
    return state


def process_tag(pid: int | None = None) -> str:
    """Return ``pid:<n>@<start>`` for a process, or ``pid:<n>``.

    The start time (clock ticks since boot) tells a process from a later one that
    was given the same number.
    """
    pid = os.getpid() if pid is None else pid
    with contextlib.suppress(OSError):
        # The name in parentheses may hold spaces; field 22 is counted after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return f"pid:{pid}@{fields[19]}"
    return f"pid:{pid}"


def is_alive(tag: str) -> bool:
    """Return whether the process of a `process_tag` still runs.

    What is no such name, in a file or a database that others may write, names none.
    """
    try:
        pid = int(tag.removeprefix("pid:").partition("@")[0])
        os.kill(pid, 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        pass
    return tag in (f"pid:{pid}", process_tag(pid))


@contextlib.contextmanager
def file_locked(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``, waiting for it."""
    import fcntl

    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def variable_set(name: str, value: str) -> Iterator[None]:
    """Set an environment variable temporarily, for children too."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before


@contextlib.contextmanager
def fast_imports() -> Iterator[None]:
    """Import without the garbage collector, which would take 40 % of the time.

    It would go through all that there is again and again; what is imported stays.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def workers_ended() -> Iterator[None]:
    """End the stages' idle workers at the end, for which schedules would wait.

    They would idle for another five minutes, and so would the schedule.
    """
    try:
        yield
    finally:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _state_variables(state: Path) -> dict[str, str]:
    return {
        "PREFECT_HOME": str(state / "prefect"),
        "PREFECT_RESULTS_LOCAL_STORAGE_PATH": str(state / "prefect" / "results"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "90",
        # A run shows our own lines only; the flow reports what went wrong.
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_INTERNAL_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
        "PREFECT_CLI_COLORS": "false",
        "DO_NOT_TRACK": "1",
        "MLFLOW_TRACKING_URI": f"sqlite:///{state / 'mlflow.db'}",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_LOGGING_LEVEL": "ERROR",
        # Sums are done in one order, so that equal runs give equal bytes.
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
    }


def _make_writable(folder: Path) -> None:
    if "?" in str(folder):
        raise UserError(
            f"{folder} has a ? in its name, where the addresses of databases end:"
            " Prefect and MLflow would write elsewhere. Rename the folder."
        )
    try:
        private_folder(folder)
        probe = folder / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UserError(
            f"{folder} cannot be written ({error.strerror}); curvote keeps its state"
            " there: make the folder writable or choose another --project."
        ) from error


def _bypass_proxy() -> None:
    """Exempt this machine's addresses from a proxy."""
    for name in ("NO_PROXY", "no_proxy"):
        hosts = os.environ.get(name, "")
        if _LOOPBACK not in hosts:
            os.environ[name] = f"{hosts},{_LOOPBACK}".lstrip(",")
