"""Environment variables set before Prefect, MLflow or numpy is imported; secrets."""

import contextlib
import gc
import os
import secrets
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
    if "?" in str(state):
        raise UserError(
            f"{state} has a ? in its name, where the addresses of databases end:"
            " Prefect and MLflow would write elsewhere. Rename the folder."
        )
    try:
        private_folder(state)
        probe = state / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UserError(
            f"{state} cannot be written ({error.strerror}); curvote keeps its state"
            " there: make the folder writable or choose another --project."
        ) from error
    before = os.environ.get(_PREPARED_VARIABLE)
    ours = _state_variables(Path(before)) if before else {}
    for name, value in _state_variables(state).items():
        if os.environ.get(name) in (None, ours.get(name)):
            os.environ[name] = value
    os.environ[_PREPARED_VARIABLE] = str(state)
    os.environ["PREFECT_SERVER_ALLOW_EPHEMERAL_MODE"] = "false"
    for name in ("NO_PROXY", "no_proxy"):  # this machine is behind no proxy
        hosts = os.environ.get(name, "")
        if _LOOPBACK not in hosts:
            os.environ[name] = f"{hosts},{_LOOPBACK}".lstrip(",")
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
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
        # Sums are done in one order, so that equal runs give equal bytes.
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
    }


# What the server's process is given, and what its clients are.
SERVER_VARIABLE = "PREFECT_SERVER_API_AUTH_STRING"
# Where a server that waits for further runs says its address.
WARM_SERVER = "warm.json"
CLIENT_VARIABLE = "PREFECT_API_AUTH_STRING"
_RESTART_HINT = "End `curvote serve` and start it again: that makes a new one."


def new_secret() -> str:
    """Return a fresh ``user:password`` with 256 random bits."""
    return f"curvote:{secrets.token_urlsafe(32)}"


def write_secret(path: Path, secret: str) -> None:
    """Write the secret into a new file of mode 0600."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{secret}\n")


def read_secret(path: Path) -> str:
    """Return the secret that `write_secret` wrote.

    UserError: it is gone, or not this user's, or others may have read it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        words = f"{path} cannot be read ({error.strerror}). {_RESTART_HINT}"
        raise UserError(words) from None
    with os.fdopen(descriptor) as file:
        about = os.fstat(descriptor)
        if about.st_mode & 0o077 or about.st_uid != os.getuid():
            raise UserError(f"{path} is open to others. {_RESTART_HINT}")
        return file.read().strip()
