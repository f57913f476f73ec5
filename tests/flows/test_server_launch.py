"""How Prefect's server is started, and what is said of one that ended."""

import fcntl
import os
import socket
from datetime import timedelta
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.flows import environment
from curvote.flows.server.launch import (
    ServerLaunch,
    child_environment,
    notify_systemd,
    open_log,
    watchdog_seconds,
)
from curvote.flows.serving.service import serve_schedules
from curvote.pipeline.config.project import Project

HOUR = 3600


@pytest.mark.parametrize("kept", [HOUR, 90 * 24 * HOUR])
def test_prefect_takes_the_retention_that_it_is_given(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own service deletes old runs; an hour is just too short for it."""
    from prefect.settings.models.server.services import ServerServicesDBVacuumSettings

    for name, value in (
        ServerLaunch(Path(), "secret", keep_seconds=kept).retention().items()
    ):
        monkeypatch.setenv(name, value)
    settings = ServerServicesDBVacuumSettings()
    assert "flow_runs" in settings.enabled_vacuum_types
    off = settings.retention_period - timedelta(seconds=kept)
    assert timedelta() <= off <= timedelta(seconds=1)


def test_nothing_is_deleted_unasked() -> None:
    """Runs are kept for ever where the project's file says nothing."""
    assert ServerLaunch(Path(), "secret").retention() == {}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("OSError: [Errno 111] Connect call failed ('10.0.0.1', 5432)", "not answer"),
        ('FATAL: password authentication failed for user "me"', "refuses"),
        ("socket.gaierror: [Errno -2] Name or service not known", "not known"),
    ],
)
def test_a_database_elsewhere_is_said_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    """By its variable, without its address."""
    name = "PREFECT_API_DATABASE_CONNECTION_URL"
    monkeypatch.setenv(name, "postgresql+asyncpg://me:secret@10.0.0.1/none")
    launch = ServerLaunch(tmp_path / "data" / "state" / "prefect", "secret")
    with open_log(launch.log) as log:
        log.write(f"Traceback\n{line}\nmore\n".encode())
    assert name in launch.end_reason()
    assert said in launch.end_reason()
    assert "10.0.0.1" not in launch.end_reason()


def test_what_an_earlier_start_said_is_no_reason(tmp_path: Path) -> None:
    """The end of this one's output is."""
    launch = ServerLaunch(tmp_path / "data" / "state" / "prefect", "secret")
    assert launch.end_reason().endswith("says no more")
    with open_log(launch.log) as log:
        log.write(b"old trouble\n-- a server is started\n\n  new trouble\n\n")
    assert launch.end_reason().endswith("new trouble")


def test_of_two_serves_that_start_at_once_one_is_refused(tmp_path: Path) -> None:
    """Neither has named its server yet: a lock decides."""
    state = tmp_path / "data" / "state"
    state.mkdir(parents=True)
    with (state / "serve.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="served already; end that one first"):
            serve_schedules(Project(tmp_path), {"demo": {"interval": 60}}, port=0)
    assert not (state / "prefect" / "server.log").exists()


def test_the_folder_of_the_state_is_its_owners_alone(tmp_path: Path) -> None:
    """Whichever command comes first; one that is open to others is closed."""
    before = os.umask(0)
    try:
        assert environment.prepare_environment(tmp_path).stat().st_mode & 0o77 == 0
        (tmp_path / "data" / "state").chmod(0o755)
        assert environment.prepare_environment(tmp_path).stat().st_mode & 0o77 == 0
    finally:
        os.umask(before)


@pytest.mark.parametrize("kind", ["file", "abstract"])
def test_words_come_as_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Over a socket in the file system or an abstract one."""
    name = f"curvote-{os.getpid()}" if kind == "abstract" else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        door.bind(f"\0{name}" if kind == "abstract" else name)
        door.settimeout(10)
        said = f"@{name}" if kind == "abstract" else name
        monkeypatch.setenv("NOTIFY_SOCKET", said)
        notify_systemd("READY=1", "STATUS=2 pipelines scheduled")
        assert door.recv(4096) == b"READY=1\nSTATUS=2 pipelines scheduled"


def test_nobody_listening_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of systemd, and where its socket has gone."""
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify_systemd("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    notify_systemd("READY=1")


def test_the_watchdog_is_for_the_process_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Children are not given its variables at all."""
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    assert watchdog_seconds() == 30.0
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert watchdog_seconds() == 30.0
    assert (
        not {"WATCHDOG_USEC", "WATCHDOG_PID", "NOTIFY_SOCKET"}
        & child_environment({}).keys()
    )
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert watchdog_seconds() is None
    monkeypatch.delenv("WATCHDOG_USEC")
    assert watchdog_seconds() is None
