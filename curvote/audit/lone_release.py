"""What `curvote client answer` makes of one person's curve: a subject of the audit."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from curvote.audit import examples, lone_command
from curvote.audit.leaving import Left, People, Release
from curvote.audit.tape import Tape
from curvote.chain.stage import Columns
from curvote.envelope import Invitation, issue
from curvote.errors import InternalError
from curvote.protocols.message import messages

PREFIX = "client."
# Each answer takes a tenth of a second: a ledger is made, and written to the disk.
RUNS = 20
# A call that nothing is changed for.
FREE: dict[str, Any] = {"seed": None, "word": None, "world": 0}


class Harness:
    """A child process that calls the command as often as it is asked to."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "curvote.audit.lone_harness"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, **asked: Any) -> dict[str, Any]:
        """Return what one call did."""
        if self._child.stdin is None or self._child.stdout is None:
            raise InternalError("the harness has no pipes")
        print(json.dumps(asked), file=self._child.stdin, flush=True)
        line = self._child.stdout.readline()
        if not line:
            raise InternalError("the process that calls the command ended")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """End the child."""
        self._child.communicate()


class LoneRelease(Release):
    """One client's envelope, from the files on their disk to their outbox."""

    @cached_property
    def _invitations(self) -> dict[int | None, Invitation]:
        up = self.task.candidates
        issued = issue(self.task, 1 if up is None else len(up.coef))
        return {invitation.about: invitation for invitation in issued}

    @cached_property
    def _harness(self) -> Harness:
        harness = Harness()
        # Modules that keep a copy of what they import must not keep the tape.
        self._call(harness, self.people(1, _rng()), child=False, **FREE)
        return harness

    def leave(self, people: People, tape: Tape, *, world: int = 0) -> Left:
        """Answer once, as a client who never did before."""
        how = {"seed": tape.seed, "word": tape.word, "world": world}
        return self._call(self._harness, people, child=False, **how)

    def forked(self, people: People, children: int) -> list[Left]:
        """Answer in one process, then in children of its fork."""
        return [
            self._call(self._harness, people, child=child, **FREE)
            for child in [False] + [True] * children
        ]

    def _call(self, harness: Harness, people: People, **how: Any) -> Left:
        about = None if people.judge is None else int(people.judge[0])
        with TemporaryDirectory() as name:
            folder = Path(name)
            person = people.curves[0], float(people.labels[0])
            invited = self._invitations[about]
            argv = lone_command.argv(folder, self.task, invited, *person)
            said = harness(argv=argv, folder=name, **how)
            return _left(said, folder)

    def close(self) -> None:
        """End the process that made the answers."""
        self._harness.close()


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _left(said: dict[str, Any], folder: Path) -> Left:
    outbox = folder / lone_command.OUTBOX
    files = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file()}
    sent = [p for p in outbox.glob("*.json") if not p.name.startswith(".")]
    rows: Columns = {}
    facts: dict[str, Any] = {"exit code": said["exit"], "files": sorted(files)}
    words = {"words": said["out"], "complaints": said["err"]}
    if len(sent) == 1:
        data = sent[0].read_bytes()
        message = lone_command.payload(data)
        rows = lone_command.columns(message)
        facts |= {"envelope": lone_command.beside(data)}
        facts |= {"message": {k: _shape(v) for k, v in message.items()}}
        digest = hashlib.sha256(data).hexdigest()
        words = {k: v.replace(digest, "DIGEST") for k, v in words.items()}
    for name in (str(folder.resolve()), str(folder)):
        words = {k: v.replace(name, "") for k, v in words.items()}
    return Left(rows, facts | words, [bytes.fromhex(given) for given in said["asked"]])


def _shape(value: Any) -> str:
    return f"{len(value)} numbers" if isinstance(value, list) else type(value).__name__


def sent_alone() -> list[str]:
    """Return ``client.<protocol>.<message>`` for all that a lone client may send."""
    return [f"{PREFIX}{protocol}.{name}" for protocol, name in examples.asked()]


def lone_release(name: str, epsilon: float) -> LoneRelease:
    """Return the answer ``client.<protocol>.<message>`` to a small task."""
    _, protocol, asks = name.split(".")
    task = examples.task(protocol, asks, epsilon)
    message, params = messages(protocol)[asks], {"clients": 1}
    facts = task, message, name, params, task.budget, (1,)
    return LoneRelease(*facts, ordered=True, runs=RUNS)
