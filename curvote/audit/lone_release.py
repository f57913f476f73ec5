"""What `curvote client answer` makes of one person's curve: a subject of the audit."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from base64 import urlsafe_b64decode
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from curvote.audit import examples
from curvote.audit.leaving import Left, People, Release
from curvote.audit.tape import Tape
from curvote.chain.stage import Columns
from curvote.client.ledger import Ledger
from curvote.client.standing import POPULATION
from curvote.envelope import Invitation, issue
from curvote.errors import InternalError
from curvote.protocols.message import message_of
from curvote.signed import ServerKey
from curvote.task import Task
from curvote.validate import FloatArray

# Each answer takes a tenth of a second: a ledger is made, and written to the disk.
RUNS = 20
OUTBOX = "outbox"
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
        self._call(
            harness, self.people(1, np.random.default_rng(0)), child=False, **FREE
        )
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
            person = people.curves[0], int(people.labels[0])
            invited = self._invitations[about]
            argv = _argv(folder, self.task, invited, *person)
            said = harness(argv=argv, folder=name, **how)
            return _left(said, folder)

    def close(self) -> None:
        """End the process that made the answers."""
        self._harness.close()


def _argv(
    folder: Path, task: Task, invitation: Invitation, curve: FloatArray, label: int
) -> list[str]:
    """Write the client's files into ``folder`` and return the command's words."""
    files = {
        "task.json": _server().sign({"task": task.to_json(), "seal_to": None}).decode(),
        "invitation.json": json.dumps(invitation.to_json()),
        "curve.csv": "\n".join(repr(float(value)) for value in curve),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    with Ledger(folder / "ledger.sqlite") as ledger:  # the consent of this client
        ledger.set_up(POPULATION, task.budget)
    given: dict[str, Any] = {Path(name).stem: folder / name for name in files}
    given |= {"label": task.classes[label]}
    given |= {"ledger": folder / "ledger.sqlite", "outbox": folder / OUTBOX}
    words = [f"--{name}={value}" for name, value in given.items()]
    return ["client", "answer", "--yes", *words]


@cache
def _server() -> ServerKey:
    """Return one key for all calls: what is shown must not differ by the server."""
    return ServerKey(Ed25519PrivateKey.generate())


def _left(said: dict[str, Any], folder: Path) -> Left:
    files = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file()}
    sent = [p for p in (folder / OUTBOX).glob("*.json") if not p.name.startswith(".")]
    rows: Columns = {}
    facts: dict[str, Any] = {"exit code": said["exit"], "files": sorted(files)}
    words = {"words": said["out"], "complaints": said["err"]}
    if len(sent) == 1:
        data = sent[0].read_bytes()
        envelope = json.loads(data)
        message = _message(envelope["payload"])
        rows = {name: np.array([value]) for name, value in message.items()}
        facts |= {"envelope": _beside(envelope)}
        facts |= {"message": {k: _shape(v) for k, v in message.items()}}
        digest = hashlib.sha256(data).hexdigest()
        words = {k: v.replace(digest, "DIGEST") for k, v in words.items()}
    for name in (str(folder.resolve()), str(folder)):
        words = {k: v.replace(name, "") for k, v in words.items()}
    return Left(rows, facts | words, [bytes.fromhex(given) for given in said["asked"]])


def _message(payload: Any) -> dict[str, Any]:
    """Return the message in a payload: an object, or a JWS payload (RFC 7515)."""
    if isinstance(payload, str):
        text = urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        payload = json.loads(text)
    message: dict[str, Any] = payload.get("message", payload)
    return message


def _beside(envelope: dict[str, Any]) -> dict[str, Any]:
    """Return what an envelope says beside the message and its seal."""
    sealed = ("payload", "seal", "signature")
    rest = {name: value for name, value in envelope.items() if name not in sealed}
    return rest | {"names": sorted(envelope)}


def _shape(value: Any) -> str:
    return f"{len(value)} numbers" if isinstance(value, list) else type(value).__name__


def lone_release(name: str, epsilon: float) -> LoneRelease:
    """Return the answer ``client.<protocol>.<message>`` to a small task."""
    task = examples.named(name, epsilon)
    facts = task, message_of(task), name, {"clients": 1}, task.budget, (1,)
    return LoneRelease(*facts, ordered=True, runs=RUNS)
