"""A process that is started again, and again."""

import errno
import subprocess
import sys

import pytest

from curvote.flows.server.launch import FIRST_WAIT_SECONDS, MAX_WAIT_SECONDS, Child
from curvote.flows.server.private import kept_alive
from tests.processes import until


def sleeper() -> subprocess.Popen[bytes]:
    """Start a process that does not end with its standard input."""
    command = [sys.executable, "-S", "-c", "import time; time.sleep(300)"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def test_waits_double_to_a_minute() -> None:
    """And begin anew once a child has lived for a while."""
    child = Child("it", sleeper)
    waits = []
    for _ in range(8):
        child.start()
        waits.append(child.schedule_restart())
    assert waits[:4] == [FIRST_WAIT_SECONDS, 2, 4, 8]
    assert waits[-1] == MAX_WAIT_SECONDS == 60
    child.start()
    child.started -= 1000
    assert child.schedule_restart() == FIRST_WAIT_SECONDS


def test_one_that_does_not_end_is_killed() -> None:
    """With all that it started; whoever asks twice does no harm."""
    child = Child("it", sleeper)
    assert not child.is_started()
    child.start()
    process = child.process
    assert process is not None
    assert child.end_reason() == ""
    child.end(0.1)
    child.end(0.1)
    assert process.returncode == -9
    assert not child.is_started()


def test_how_it_ended_is_said_in_words() -> None:
    """By a signal, or by itself."""
    child = Child("it", sleeper)
    child.start()
    assert child.process is not None
    child.process.terminate()
    child.process.wait()
    assert child.end_reason() == "was ended by SIGTERM"
    assert not child.has_finished()
    child.end(0.0)
    child.spawn = lambda: subprocess.Popen([sys.executable, "-S", "-c", ""])
    child.start()
    assert child.process is not None
    child.process.wait()
    assert child.end_reason() == "ended with exit code 0"
    assert child.has_finished()


def test_a_guarded_one_that_cannot_be_started_is_given_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A full disk takes its log: a line, no traceback, and the run says why."""

    def full() -> subprocess.Popen[bytes]:
        raise OSError(errno.ENOSPC, "No space left on device")

    child = Child("it", sleeper)
    child.start()
    child.spawn = full
    said = ""
    with kept_alive(child):
        assert child.process is not None
        child.process.kill()

        def given_up() -> bool:
            nonlocal said
            said += capsys.readouterr().err
            return "it is given up: No space left on device" in said

        assert until(given_up, 30.0)
    assert "Traceback" not in said
    assert not child.is_started()
