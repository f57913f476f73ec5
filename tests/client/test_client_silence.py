"""The real command: what leaves a client, and what it says, for records of all kinds.

The harness of many tasks is `tests/client/test_silence.py`; here the process is the
same as an owner's, so that exit code, both streams, folder and ledger are those of
the product.
"""

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from curvote.ledger.book import Ledger
from curvote.messages.message import parse_message
from curvote.wire import envelope
from curvote.wire.envelope import Invitation
from curvote.wire.signing import ServerKey
from curvote.wire.task import Task
from tests.fuzzing import invited, shape
from tests.processes import run_command
from tests.valid_tasks import document, tasks

RECORDS = ("0.5", "-1e999", "nan", "1e308", "9" * 400)


@dataclass(frozen=True)
class Shown:
    """Everything that somebody may see of one call."""

    code: int
    out: str
    err: str
    files: tuple[tuple[str, int], ...]
    ledger: tuple[Any, ...]
    form: str


def publish(folder: Path, text: Any, invitation: Invitation) -> list[str]:
    """Write what the server sent, and return the options that name it."""
    key = ServerKey.at(folder.parent / "server.key")
    (folder / "task").write_bytes(key.sign({"task": text, "seal_to": None}))
    (folder / "invitation").write_text(json.dumps(invitation.to_json()))
    return ["--yes", "--task", "task", "--invitation", "invitation"]


def show(folder: Path, text: Any, invitation: Invitation, cell: str, task: Task) -> Any:
    """Answer a task about a record of one repeated value in a folder of its own."""
    folder.mkdir()
    points = task.encoding.projection.matrix.shape[1]
    (folder / "curve.csv").write_text("\n".join([cell] * points) + "\n")
    own = ["--curve", "curve.csv", "--label", "yes", "--outbox", "outbox"]
    words = ["answer", *publish(folder, text, invitation), *own]
    state = {"XDG_STATE_HOME": str(folder / "state")}
    how: dict[str, Any] = {"env": os.environ | state, "stdin": subprocess.DEVNULL}
    done = run_command("client", *words, cwd=folder, **how)
    sealed = [*folder.glob("outbox/*.json")]
    forms = [_form(path.read_bytes(), task, invitation) for path in sealed]
    out, err = (_plain(text, folder) for text in (done.stdout, done.stderr))
    files = tuple((path.name, path.stat().st_size) for path in sealed)
    entries = _entries(folder / "state" / "curvote" / "ledger.sqlite")
    return Shown(done.returncode, out, err, files, entries, str(forms))


def _form(data: bytes, task: Task, invitation: Invitation) -> Any:
    payload = envelope.read_envelope(data).payload
    parse_message(task, invitation.about, payload)
    return shape(payload)


def _plain(text: str, folder: Path) -> str:
    """Leave out what is the folder's name, or the digest of the noised payload."""
    return re.sub(r"[0-9a-f]{64}", "DIGEST", text).replace(str(folder), "HOME")


def _entries(path: Path) -> tuple[Any, ...]:
    if not path.exists():
        return ()
    with Ledger(path) as ledger:
        found = ledger.entries()
    return tuple((e.release, e.state, e.budget, e.facts["task"]) for e in found)


@pytest.mark.parametrize("n", [2, pytest.param(len(RECORDS), marks=pytest.mark.faults)])
@pytest.mark.parametrize("name", ["mrma-report-0", "direct_two-refinement-7"])
def test_the_command_shows_the_same_for_every_record(tmp_path, name, n):
    """One envelope each, no warning, the same words; only the noise differs."""
    task = tasks()[name]
    invitation = invited(task, 1)
    seen = [
        show(tmp_path / str(i), document(task), invitation, cell, task)
        for i, cell in enumerate(RECORDS[:n])
    ]
    assert (seen[0].code, len(seen[0].files)) == (0, 1)
    assert all(each == seen[0] for each in seen)


@pytest.mark.parametrize(
    "kind",
    [
        "threshold",
        *(
            pytest.param(kind, marks=pytest.mark.faults)
            for kind in ("free matrix", "huge", "classes")
        ),
    ],
)
def test_the_command_refuses_a_bad_task_before_the_record(tmp_path, kind):
    """Exit 2, one sentence, no ledger: although the record's file is nonsense."""
    task = tasks()["mrma-report-0"]
    bent = document(task)
    if kind == "threshold":
        bent["encoding"] |= {"rescale": "standard"}
        bent["encoding"]["constants"] = {"centre": 1.7e308, "scale": 1.0}
    elif kind == "free matrix":
        bent["encoding"]["matrix"][0][0] += 1
    elif kind == "huge":
        bent["epsilon"] = 10**400
    else:
        bent["classes"] = ["yes, certainly", "no"]
    seen = {
        show(tmp_path / str(i), bent, invited(task, None), cell, task)
        for i, cell in enumerate(("0.5", "no number"))
    }
    (one,) = seen
    assert (one.code, one.out, one.ledger) == (2, "", ())
    assert one.err.startswith("curvote: task: ")
    assert "Traceback" not in one.err
