"""The processes that `curvote serve` keeps alive: Prefect's server and runner."""

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

from curvote.flows.server.launch import Launch, for_child, open_log

FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0
# Who has lived for so long has not fallen at once.
_STEADY = 120.0


class Spawn(Protocol):
    """Starts the process of a child."""

    def __call__(self) -> subprocess.Popen[bytes]:
        """Return the process."""
        ...


class Child:
    """A process that is started again when it ends, after waits that double.

    Args:
        called: what lines call it.
        spawn: what starts it, with standard input a pipe: its end ends the process.
    """

    def __init__(self, called: str, spawn: Spawn) -> None:
        self.called = called
        self.spawn = spawn
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.started = self.due = 0.0
        self._wait = FIRST_WAIT

    def start(self) -> None:
        """Start the process now."""
        self.process = self.spawn()
        self.started = time.monotonic()
        self.starts += 1

    def there(self) -> bool:
        """Whether a process was started and not forgotten."""
        return self.process is not None

    def ended(self) -> str:
        """Return how it ended, in words; nothing while it runs or is not started."""
        code = None if self.process is None else self.process.poll()
        if code is None:
            return ""
        if code >= 0:
            return f"ended with exit code {code}"
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
        return f"was ended by signal {-code}"

    def done(self) -> bool:
        """Whether it has ended of its own will."""
        return self.process is not None and self.process.poll() == 0

    def fell(self) -> float:
        """Forget the process; return in how many seconds it is to be started again."""
        self.end(0.0)
        now = time.monotonic()
        if now - self.started > _STEADY:
            self._wait = FIRST_WAIT
        wait, self._wait = self._wait, min(2 * self._wait, LONGEST_WAIT)
        self.due = now + wait
        return wait

    def again(self) -> None:
        """Let it be started at once: it has ended because it was asked to."""
        self.end(0.0)
        self.due = 0.0

    def tell(self, message: dict[str, Any]) -> None:
        """Write a line of JSON to its standard input, if it is there to hear it."""
        if self.process is not None and self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.write(f"{json.dumps(message)}\n".encode())
                self.process.stdin.flush()

    def end(self, seconds: float) -> None:
        """Close its standard input, wait so long, then kill it with all it started."""
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


def server_of(launch: Launch, listening: int) -> Child:
    """Return Prefect's server as a child, on a socket that outlives it.

    Whoever asks while it is away waits until it is back.
    """
    return Child("Prefect's server", lambda: launch.spawn(listening))


def runner_of(home: Path, variables: dict[str, str]) -> Child:
    """Return the runner of schedules as a child; it reads its order first."""

    def spawn() -> subprocess.Popen[bytes]:
        with open_log(home / "runner.log") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "curvote.flows.serving.runner_process"],
                env=for_child(variables),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    return Child("the runner of schedules", spawn)
