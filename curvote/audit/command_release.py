"""What each command of `curvote client` lets out: subjects of the audit.

The installed command is called in a process of its own, with the files that its user
has; what counts is what then lies in the outbox, bit by bit. Nothing here calls the
functions by which the command draws.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from abc import abstractmethod
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from curvote.audit.leaving import Left, People, Release
from curvote.audit.tape import Tape
from curvote.chain.stage import Columns
from curvote.client.form import Form, settle
from curvote.client.ledger import Ledger
from curvote.client.standing import POPULATION
from curvote.envelope import Invitation, genuine, read
from curvote.errors import InternalError, UserError
from curvote.privacy import Budget
from curvote.signed import ServerKey

OUTBOX = "outbox"
# A fault of `curvote.audit.broken.commands`, by its name, and a seed.
Plant = tuple[str, int]
# Why a command refuses, and how it is brought to that (`CommandRelease.calls`).
Refusals = Mapping[str, Mapping[str, Any]]
REFUSALS: Refusals = {
    "a cap that is too small": {"share": 0.5},
    "an invitation to another task": {"stranger": True},
}
OF_TABLES = {"a form with another class": {"more": ("another",)}}


class Harness:
    """A child process that calls the command as often as it is asked to."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "curvote.audit.command_harness"],
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


@dataclass(frozen=True, eq=False, kw_only=True)
class CommandRelease(Release):
    """Envelopes in an outbox, made by ``command`` from files on a disk.

    ``plant`` returns the fault that is planted in the command's process for these
    people, by its name, and a seed: None in what is shipped.
    """

    command: str
    plant: Callable[[CommandRelease, People], Plant] | None = None

    shuffled: ClassVar[bool] = False

    @property
    def refusals(self) -> Refusals:
        """Why the command refuses, and how it is brought to that (`calls`)."""
        return REFUSALS

    @abstractmethod
    def invited(self, people: People) -> list[Invitation]:
        """Return the invitation of each message, in order."""

    @abstractmethod
    def files(
        self, people: People, invited: Sequence[Invitation]
    ) -> dict[str, tuple[str, str]]:
        """Return the files that the command reads: their name and text, by option."""

    @abstractmethod
    def options(self, people: People) -> dict[str, str]:
        """Return the command's other options."""

    @cached_property
    def _harness(self) -> Harness:
        harness = Harness()
        # Modules that keep a copy of what they import must not keep the tape.
        people = self.people(self.sizes[0], np.random.default_rng(0))
        self._calls(harness, [people], [Tape()])
        return harness

    def leave(self, people: People, tape: Tape, *, world: int = 0) -> Left:
        """Release once, as somebody who never did before."""
        return self.calls([people], [tape], world=world)[0]

    def forked(self, people: People, children: int) -> list[Left]:
        """Release in one process, then in children of its fork."""
        family = [False] + [True] * children
        return [self.calls([people], [Tape()], child=child)[0] for child in family]

    def calls(
        self, people: Sequence[People], tapes: Sequence[Tape], **how: Any
    ) -> list[Left]:
        """Return what lies in the outbox after each of several calls of one owner."""
        return self._calls(self._harness, people, tapes, **how)

    def _calls(
        self,
        harness: Harness,
        people: Sequence[People],
        tapes: Sequence[Tape],
        *,
        world: int = 0,
        child: bool = False,
        share: float = 1.0,
        stranger: bool = False,
        more: Sequence[str] = (),
        anew: bool = False,
    ) -> list[Left]:
        found: list[Left] = []
        with TemporaryDirectory() as name:
            folder = Path(name)
            stated = [*self.task.classes, *more]
            self._consent(folder, len(people[0]), share, stated)
            invited = self.invited(people[0])
            if stranger:
                invited = [replace(each, task="0" * 64) for each in invited]
            for those, tape in zip(people, tapes, strict=True):
                outbox, words = OUTBOX, []
                if anew and found:  # invited once more, with an outbox of its own
                    invited = replace(self).invited(people[0])
                    outbox, words = f"{OUTBOX} {len(found)}", ["--new-release"]
                planted = self.plant(self, those) if self.plant else None
                heard = harness(
                    argv=[*self._argv(folder, those, invited, outbox), *words],
                    folder=name,
                    seed=tape.seed,
                    word=tape.word,
                    world=world,
                    child=child,
                    planted=planted,
                )
                found.append(self._left(heard, folder, invited, outbox))
        return found

    def _consent(
        self, folder: Path, n: int, share: float, classes: Sequence[str]
    ) -> None:
        """Set the cap, what a ``share`` of one release costs each, and the form."""
        budget = self.task.spends(n)
        cap = Budget(share * budget.epsilon, max(1, share) * budget.delta)
        with Ledger(folder / "ledger.sqlite") as ledger:
            ledger.set_up(POPULATION, cap)
            if stated := self.form(classes):
                settle(ledger, stated)

    def form(self, classes: Sequence[str]) -> Form | None:
        """Return what the owner states of a table with such classes, if it has one."""
        del classes
        return None

    def _argv(
        self,
        folder: Path,
        people: People,
        invited: Sequence[Invitation],
        outbox: str,
    ) -> list[str]:
        """Write the owner's files into ``folder`` and return the command's words."""
        document = {"task": self.task.to_json(), "seal_to": None}
        files = {"task": ("task.json", server().sign(document).decode())}
        files |= self.files(people, invited)
        for name, text in files.values():
            (folder / name).write_text(text, encoding="utf-8")
        given = {option: str(folder / name) for option, (name, _) in files.items()}
        given |= self.options(people)
        given |= {"ledger": str(folder / "ledger.sqlite")}
        given |= {"outbox": str(folder / outbox)}
        words = [f"--{option}={value}" for option, value in given.items()]
        return ["client", self.command, "--yes", *words]

    def _left(
        self,
        heard: dict[str, Any],
        folder: Path,
        invited: Sequence[Invitation],
        outbox: str,
    ) -> Left:
        sent = {
            path.name: path.read_bytes()
            for path in sorted((folder / outbox).rglob("*"))
            if path.is_file() and path.stat().st_size
        }
        facts: dict[str, Any] = {
            "exit code": heard["exit"],
            "files": sorted(
                str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()
            ),
            "sizes": {name: len(data) for name, data in sent.items()},
            "form": strange(sent, invited, self.message.payload),
            **self.seen(heard, folder, sent),
        }
        rows: Columns = {}
        if set(sent) == {each.file_name for each in invited}:
            found = [_message(sent[each.file_name]) for each in invited]
            facts["message"] = [
                {name: _shape(value) for name, value in one.items()} for one in found
            ]
            rows = self.rows(found)
        asked = [bytes.fromhex(each) for each in heard["asked"]]
        return Left(rows, facts, asked, sent)

    def rows(self, found: Sequence[Mapping[str, Any]]) -> Columns:
        """Return the numbers of some messages, a row each, in the order of people."""
        return {name: np.array([one[name] for one in found]) for name in found[0]}

    def seen(
        self, heard: dict[str, Any], folder: Path, sent: Mapping[str, bytes]
    ) -> dict[str, Any]:
        """Return what the command's user reads, as far as it may not tell records.

        Nothing here: who holds a table is told about it.
        """
        del heard, folder, sent
        return {}

    def close(self) -> None:
        """End the process that made the calls."""
        self._harness.close()


def strange(
    sent: Mapping[str, bytes], invited: Sequence[Invitation], payload: Any
) -> list[str]:
    """Return what is wrong with envelopes whatever they say: their form and names.

    Each is the answer to one invitation, sealed by its key, with the declared fields
    and no others, in a file whose name the invitation alone makes.
    """
    known = {each.file_name: each for each in invited}
    found = [f"a file {name}" for name in sent if name not in known]
    for name, data in sent.items():
        if name not in known:
            continue
        mine = known[name]
        try:
            envelope = read(data)
        except UserError as error:
            found.append(f"an envelope that cannot be read: {error}")
            continue
        fields = set(payload.model_fields)
        if set(envelope.payload) != fields:
            odd = sorted(set(envelope.payload) ^ fields)
            found.append(f"{', '.join(odd)} beside or without what is declared")
        if (envelope.invitation, envelope.task) != (mine.id, mine.task):
            found.append("an answer to another invitation or task")
        if not genuine(envelope, mine.key):
            found.append("a seal that is not the invitation's")
        subject = envelope.payload.get("record", envelope.payload.get("server"))
        if subject not in {None, mine.record, mine.server}:
            found.append("an answer in another's name")
    return found


@cache
def server() -> ServerKey:
    """Return one key for all calls: what is shown must not differ by the server."""
    return ServerKey(Ed25519PrivateKey.generate())


def words_of(
    heard: dict[str, Any], folder: Path, sent: Mapping[str, bytes]
) -> dict[str, str]:
    """Return what the command says, but for what differs between any two calls."""
    words = {"words": heard["out"], "complaints": heard["err"]}
    for data in sent.values():
        digest = hashlib.sha256(data).hexdigest()
        words = {k: v.replace(digest, "DIGEST") for k, v in words.items()}
    for name in (str(folder.resolve()), str(folder)):
        words = {k: v.replace(name, "") for k, v in words.items()}
    return words


def _message(data: bytes) -> dict[str, Any]:
    """Return the message in an envelope: an object, or a JWS payload (RFC 7515)."""
    payload: Any = json.loads(data)["payload"]
    if isinstance(payload, str):
        text = urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        payload = json.loads(text)
    message: dict[str, Any] = payload.get("message", payload)
    return message


def _shape(value: Any) -> str:
    return f"{len(value)} numbers" if isinstance(value, list) else type(value).__name__
