"""What systemd hears."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from curvote.flows.server.launch import (
    child_environment,
    notify_systemd,
    watchdog_seconds,
)


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
