"""What a service of the intake has around it: its log, and a folder to count in."""

import io
import logging
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from curvote.flows.intake import processes as intake_serving


class Full(io.StringIO):
    """A log on a disk without room."""

    def flush(self) -> None:
        """Fail as the disk does."""
        raise OSError(28, "No space left on device")


def test_a_log_that_cannot_be_written_stops_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread that takes envelopes in is among those who write it."""
    monkeypatch.setattr(sys, "stderr", Full())
    intake_serving.log_line("the disk is full")


def test_a_librarys_warning_is_one_line_without_values(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Neither what follows, such as a connection, nor what an exception says."""
    try:
        raise ValueError("203.0.113.77")
    except ValueError:
        told = sys.exc_info()
    words = "Fatal error: it failed.\ntransport: <203.0.113.77>"
    record = logging.LogRecord("asyncio", 40, "", 0, words, None, told)
    intake_serving._PlainHandler().emit(record)
    assert capsys.readouterr().err == (
        "curvote intake: Fatal error: it failed. (ValueError)\n"
    )


def test_one_that_begins_takes_no_other_ones_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making it and locking it, another one would have to wait."""
    made = tempfile.TemporaryDirectory
    alone = []

    def making(**given: Any) -> Any:
        with intake_serving._folder_locked(tmp_path) as nobody:
            alone.append(not nobody)
        return made(**given)

    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    monkeypatch.setattr(tempfile, "TemporaryDirectory", making)
    with intake_serving._counts_folder(tmp_path, 2):
        (folder,) = tmp_path.iterdir()
        with intake_serving._counts_folder(tmp_path, 1):
            assert folder.exists()
    assert alone == [True]
    assert not [*tmp_path.iterdir()]
