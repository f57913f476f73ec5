"""Releases by commands of `curvote client` as subjects.

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

from curvote.audit.release import People, Release, ReleaseOutcome
from curvote.base.errors import InternalError, UserError
from curvote.base.privacy import Budget
from curvote.chain.stage import Columns
from curvote.checks.tape import Tape
from curvote.client.table import Form, store_form
from curvote.ledger.account import POPULATION
from curvote.ledger.book import Ledger
from curvote.wire.envelope import Invitation, is_genuine, read_envelope
from curvote.wire.signing import ServerKey

OUTBOX = "outbox"
# A fault of `curvote.audit.twins.releases`, by its name, and a seed.
Plant = tuple[str, int]
# Why a command refuses, and how it is brought to that (`CommandRelease.calls`).
Refusals = Mapping[str, Mapping[str, Any]]
REFUSALS: Refusals = {
    "a cap that is too small": {"share": 0.5},
    "an invitation to another task": {"stranger": True},
}
OF_TABLES = {"a form with another class": {"more": ("another",)}}


class CommandHarness:
    """A child process that runs the command for each request."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "curvote.audit.command_harness"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, **request: Any) -> dict[str, Any]:
        """Return what one call did."""
        if self._child.stdin is None or self._child.stdout is None:
            raise InternalError("the harness has no pipes")
        print(json.dumps(request), file=self._child.stdin, flush=True)
        line = self._child.stdout.readline()
        if not line:
            raise InternalError("the process that calls the command ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

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
        """The reasons of refusals, and the calls that cause them."""
        return REFUSALS

    @abstractmethod
    def invitations_for(self, people: People) -> list[Invitation]:
        """Return the invitation of each message, in order."""

    @abstractmethod
    def files(
        self, people: People, invited: Sequence[Invitation]
    ) -> dict[str, tuple[str, str]]:
        """Return the command's input files, by option."""

    @abstractmethod
    def options(self, people: People) -> dict[str, str]:
        """Return the command's other options."""

    @cached_property
    def _start_harness(self) -> CommandHarness:
        harness = CommandHarness()
        # Modules that keep a copy of what they import must not keep the tape.
        people = self.people(self.sizes[0], np.random.default_rng(0))
        self._calls(harness, [people], [Tape()])
        return harness

    def leave(self, people: People, tape: Tape, *, world: int = 0) -> ReleaseOutcome:
        """Release once, as a first-time owner."""
        return self.calls([people], [tape], world=world)[0]

    def leave_forked(self, people: People, children: int) -> list[ReleaseOutcome]:
        """Release in one process, then in children of its fork."""
        family = [False] + [True] * children
        return [self.calls([people], [Tape()], child=child)[0] for child in family]

    def calls(
        self, people: Sequence[People], tapes: Sequence[Tape], **how: Any
    ) -> list[ReleaseOutcome]:
        """Return the outcome of each of several calls of one owner."""
        return self._calls(self._start_harness, people, tapes, **how)

    def _calls(
        self,
        harness: CommandHarness,
        people: Sequence[People],
        tapes: Sequence[Tape],
        *,
        world: int = 0,
        child: bool = False,
        share: float = 1.0,
        stranger: bool = False,
        more: Sequence[str] = (),
        anew: bool = False,
    ) -> list[ReleaseOutcome]:
        outcomes: list[ReleaseOutcome] = []
        with TemporaryDirectory() as name:
            folder = Path(name)
            class_names = [*self.task.classes, *more]
            n = len(people[0])
            budget = self.task.cost(n)
            cap = Budget(share * budget.epsilon, max(1, share) * budget.delta)
            with Ledger(folder / "ledger.sqlite") as ledger:
                ledger.set_cap(POPULATION, cap)
                if form := self.form(class_names):
                    store_form(ledger, form)
            invited = self.invitations_for(people[0])
            if stranger:
                invited = [replace(invitation, task="0" * 64) for invitation in invited]
            for those, tape in zip(people, tapes, strict=True):
                outbox, words = OUTBOX, []
                if anew and outcomes:  # invited once more, with an outbox of its own
                    invited = replace(self).invitations_for(people[0])
                    outbox, words = f"{OUTBOX} {len(outcomes)}", ["--new-release"]
                document = {"task": self.task.to_json(), "seal_to": None}
                files = {"task": ("task.json", server_key().sign(document).decode())}
                files |= self.files(those, invited)
                for file_name, text in files.values():
                    (folder / file_name).write_text(text, encoding="utf-8")
                options = {k: str(folder / file) for k, (file, _) in files.items()}
                options |= self.options(those)
                options |= {"ledger": str(folder / "ledger.sqlite")}
                options |= {"outbox": str(folder / outbox)}
                given = [f"--{option}={value}" for option, value in options.items()]
                planted = self.plant(self, those) if self.plant else None
                heard = harness(
                    argv=["client", self.command, "--yes", *given, *words],
                    folder=name,
                    seed=tape.seed,
                    word=tape.word,
                    world=world,
                    child=child,
                    planted=planted,
                )
                outcomes.append(self._read_outcome(heard, folder, invited, outbox))
        return outcomes

    def _read_outcome(
        self,
        heard: dict[str, Any],
        folder: Path,
        invited: Sequence[Invitation],
        outbox: str,
    ) -> ReleaseOutcome:
        """Return the outcome of a call: messages, files, answers."""
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        envelopes = {
            path.name: path.read_bytes()
            for path in files
            if path.is_relative_to(folder / outbox) and path.stat().st_size
        }
        facts: dict[str, Any] = {
            "exit code": heard["exit"],
            "files": sorted(str(path.relative_to(folder)) for path in files),
            "sizes": {name: len(data) for name, data in envelopes.items()},
            "form": envelope_faults(envelopes, invited, self.message.payload),
            **self.visible_output(heard, folder, envelopes),
        }
        rows: Columns = {}
        if set(envelopes) == {invitation.file_name for invitation in invited}:
            messages: list[dict[str, Any]] = []
            for invitation in invited:
                payload: Any = json.loads(envelopes[invitation.file_name])["payload"]
                if isinstance(payload, str):  # a JWS payload (RFC 7515)
                    text = urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
                    payload = json.loads(text)
                messages.append(payload.get("message", payload))
            facts["message"] = [
                {
                    name: (
                        f"{len(value)} numbers"
                        if isinstance(value, list)
                        else type(value).__name__
                    )
                    for name, value in message.items()
                }
                for message in messages
            ]
            rows = self.rows(messages)
        answers = [bytes.fromhex(answer) for answer in heard["asked"]]
        return ReleaseOutcome(rows, facts, answers, envelopes)

    def form(self, classes: Sequence[str]) -> Form | None:
        """Return the owner's form of a table with such classes."""
        del classes
        return None

    def rows(self, messages: Sequence[Mapping[str, Any]]) -> Columns:
        """Return the numbers of messages, a row each."""
        return {
            name: np.array([message[name] for message in messages])
            for name in messages[0]
        }

    def visible_output(
        self, heard: dict[str, Any], folder: Path, envelopes: Mapping[str, bytes]
    ) -> dict[str, Any]:
        """Return the output that may not tell records apart.

        Nothing here: who holds a table is told about it.
        """
        del heard, folder, envelopes
        return {}

    def close(self) -> None:
        """End the process that made the calls."""
        self._start_harness.close()


def envelope_faults(
    envelopes: Mapping[str, bytes], invited: Sequence[Invitation], payload: Any
) -> list[str]:
    """Return the faults of envelopes' form and names.

    Each is the answer to one invitation, sealed by its key, with the declared fields
    and no others, in a file whose name the invitation alone makes.
    """
    invitation_of = {invitation.file_name: invitation for invitation in invited}
    faults = [f"a file {name}" for name in envelopes if name not in invitation_of]
    for name, data in envelopes.items():
        invitation = invitation_of.get(name)
        if invitation is None:
            continue
        try:
            envelope = read_envelope(data)
        except UserError as error:
            faults.append(f"an envelope that cannot be read: {error}")
            continue
        fields = set(payload.model_fields)
        if set(envelope.payload) != fields:
            odd = sorted(set(envelope.payload) ^ fields)
            faults.append(f"{', '.join(odd)} beside or without what is declared")
        if (envelope.invitation, envelope.task) != (invitation.id, invitation.task):
            faults.append("an answer to another invitation or task")
        if not is_genuine(envelope, invitation.key):
            faults.append("a seal that is not the invitation's")
        subject = envelope.payload.get("record", envelope.payload.get("server"))
        if subject not in {None, invitation.record, invitation.server}:
            faults.append("an answer in another's name")
    return faults


@cache
def server_key() -> ServerKey:
    """Return one server key for all calls."""
    return ServerKey(Ed25519PrivateKey.generate())


def normalized_output(
    heard: dict[str, Any], folder: Path, envelopes: Mapping[str, bytes]
) -> dict[str, str]:
    """Return the command's output without what differs by call."""
    words = {"words": heard["out"], "complaints": heard["err"]}
    for data in envelopes.values():
        digest = hashlib.sha256(data).hexdigest()
        words = {k: v.replace(digest, "DIGEST") for k, v in words.items()}
    for name in (str(folder.resolve()), str(folder)):
        words = {k: v.replace(name, "") for k, v in words.items()}
    return words
