"""Child processes of `curvote serve`, restarted when they end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Protocol

from curvote.flows.server.launch import ServerLaunch, child_environment, open_log

FIRST_WAIT_SECONDS = 1.0
MAX_WAIT_SECONDS = 60.0
# Who has lived for so long has not fallen at once.
_STEADY_SECONDS = 120.0


class ProcessStarter(Protocol):
    """A function that starts the process of a child."""

    def __call__(self) -> subprocess.Popen[bytes]:
        """Return the process."""
        ...


class Child:
    """A process that is started again when it ends, after waits that double.

    Args:
        called: what lines call it.
        spawn: what starts it, with standard input a pipe: its end ends the process.
    """

    def __init__(self, called: str, spawn: ProcessStarter) -> None:
        self.called = called
        self.spawn = spawn
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.started = self.due = 0.0
        self._wait = FIRST_WAIT_SECONDS

    def start(self) -> None:
        """Start the process now."""
        self.process = self.spawn()
        self.started = time.monotonic()
        self.starts += 1

    def is_started(self) -> bool:
        """Return whether a process was started and not forgotten."""
        return self.process is not None

    def end_reason(self) -> str:
        """Return how the process ended, "" while it runs or is not started."""
        code = None if self.process is None else self.process.poll()
        if code is None:
            return ""
        if code >= 0:
            return f"ended with exit code {code}"
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
        return f"was ended by signal {-code}"

    def has_finished(self) -> bool:
        """Return whether the process ended by itself with exit code 0."""
        return self.process is not None and self.process.poll() == 0

    def schedule_restart(self) -> float:
        """Forget the process; return the seconds until its restart."""
        self.end(0.0)
        now = time.monotonic()
        if now - self.started > _STEADY_SECONDS:
            self._wait = FIRST_WAIT_SECONDS
        wait, self._wait = self._wait, min(2 * self._wait, MAX_WAIT_SECONDS)
        self.due = now + wait
        return wait

    def restart_now(self) -> None:
        """Forget the process, so that it may be restarted at once."""
        self.end(0.0)
        self.due = 0.0

    def send_message(self, message: dict[str, Any]) -> None:
        """Write a line of JSON to the process's standard input."""
        if self.process is not None and self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.write(f"{json.dumps(message)}\n".encode())
                self.process.stdin.flush()

    def end(self, seconds: float) -> None:
        """Close standard input, wait, then kill the process group."""
        process, self.process = self.process, None
        if process is None:
            return
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def server_child(launch: ServerLaunch, listening: int) -> Child:
    """Return Prefect's server as a child, on a socket that outlives it.

    Whoever asks while it is away waits until it is back.
    """
    return Child("Prefect's server", lambda: launch.spawn(listening))


def runner_child(home: Path, variables: dict[str, str]) -> Child:
    """Return the runner of schedules as a child."""

    def spawn_runner() -> subprocess.Popen[bytes]:
        with open_log(home / "runner.log") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "curvote.flows.serving.runner"],
                env=child_environment(variables),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    return Child("the runner of schedules", spawn_runner)
