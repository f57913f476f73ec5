"""What each command of `curvote client` lets out: subjects of the audit.

The installed command is called in a process of its own, with the files that its user
has; what counts is what then lies in the outbox, bit by bit. Nothing here calls the
functions by which the command draws.
"""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
from abc import abstractmethod
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from curvote.audit import examples
from curvote.audit.leaving import Left, People, Release
from curvote.audit.servers import examples as servers
from curvote.audit.servers import neighbours
from curvote.audit.tape import Given, Tape
from curvote.chain.stage import Columns
from curvote.client.form import Column, Form, settle
from curvote.client.ledger import Ledger
from curvote.client.outbox import BATCH
from curvote.client.standing import POPULATION
from curvote.entropy import Entropy
from curvote.envelope import Invitation, genuine, issue, issue_each, read
from curvote.errors import InternalError, UserError
from curvote.privacy import Budget
from curvote.protocols.labels.messages import CODE, RECORD
from curvote.protocols.message import Known, message_of
from curvote.signed import ServerKey
from curvote.transfer.task import Level
from curvote.validate import FloatArray

# Each call takes a tenth of a second: a ledger is made, and written to the disk.
RUNS = 20
OUTBOX = "outbox"
# Labels of a registry: one, a few, and more than go through a step together.
REGISTRY = (1, 17, BATCH + 3)
# Records of a hospital: a delta of n^-2 promises nothing to one.
HOSPITAL = (3, 17)
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
    ) -> list[Left]:
        invited = self.invited(people[0])
        if stranger:
            invited = [replace(each, task="0" * 64) for each in invited]
        found = []
        with TemporaryDirectory() as name:
            folder = Path(name)
            stated = [*self.task.classes, *more]
            self._consent(folder, len(people[0]), share, stated)
            for those, tape in zip(people, tapes, strict=True):
                planted = self.plant(self, those) if self.plant else None
                heard = harness(
                    argv=self._argv(folder, those, invited),
                    folder=name,
                    seed=tape.seed,
                    word=tape.word,
                    world=world,
                    child=child,
                    planted=planted,
                )
                found.append(self._left(heard, folder, invited))
        return found

    def _consent(
        self, folder: Path, n: int, share: float, classes: Sequence[str]
    ) -> None:
        """Set the cap, what a ``share`` of one release costs each, and the form."""
        budget = self.task.spends(n)
        cap = Budget(share * budget.epsilon, budget.delta)
        with Ledger(folder / "ledger.sqlite") as ledger:
            ledger.set_up(POPULATION, cap)
            if stated := self.form(classes):
                settle(ledger, stated)

    def form(self, classes: Sequence[str]) -> Form | None:
        """Return what the owner states of a table with such classes, if it has one."""
        del classes
        return None

    def _argv(
        self, folder: Path, people: People, invited: Sequence[Invitation]
    ) -> list[str]:
        """Write the owner's files into ``folder`` and return the command's words."""
        document = {"task": self.task.to_json(), "seal_to": None}
        files = {"task": ("task.json", _server().sign(document).decode())}
        files |= self.files(people, invited)
        for name, text in files.values():
            (folder / name).write_text(text, encoding="utf-8")
        given = {option: str(folder / name) for option, (name, _) in files.items()}
        given |= self.options(people)
        given |= {"ledger": str(folder / "ledger.sqlite")}
        given |= {"outbox": str(folder / OUTBOX)}
        words = [f"--{option}={value}" for option, value in given.items()]
        return ["client", self.command, "--yes", *words]

    def _left(
        self, heard: dict[str, Any], folder: Path, invited: Sequence[Invitation]
    ) -> Left:
        sent = {
            path.name: path.read_bytes()
            for path in sorted((folder / OUTBOX).rglob("*"))
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


class LoneRelease(CommandRelease):
    """One client's envelope: `client answer`, `client report`, `client vote`."""

    @cached_property
    def _invitations(self) -> dict[int | None, Invitation]:
        up = self.task.candidates
        issued = issue(self.task, 1 if up is None else len(up.coef))
        return {invitation.about: invitation for invitation in issued}

    def invited(self, people: People) -> list[Invitation]:
        """Return the invitation, to tell of the candidate that is asked about."""
        about = None if people.judge is None else int(people.judge[0])
        return [self._invitations[about]]

    def files(
        self, people: People, invited: Sequence[Invitation]
    ) -> dict[str, tuple[str, str]]:
        """Return the curve, and the invitation."""
        curve = "\n".join(repr(float(value)) for value in people.curves[0])
        return {"curve": ("curve.csv", curve), "invitation": _one(invited)}

    def options(self, people: People) -> dict[str, str]:
        """Return the label."""
        return {"label": self.task.classes[int(people.labels[0])]}

    def seen(
        self, heard: dict[str, Any], folder: Path, sent: Mapping[str, bytes]
    ) -> dict[str, Any]:
        """Return all words: who stands beside a client may read them."""
        return _words(heard, folder, sent)


class LabelRelease(CommandRelease):
    """The code of one's own label, or of each of a registry: `client label`."""

    def people(self, n: int, rng: np.random.Generator) -> People:
        """Return ``n`` labels of any class, the first two furthest apart."""
        k = len(self.task.classes)
        labels = rng.integers(k, size=n).astype(np.float64)
        labels[:2] = [k - 1.0, 0.0][:n]
        return People(np.empty((n, 0)), labels)

    @cached_property
    def _invitations(self) -> list[Invitation]:
        names = [f"record {i}" for i in range(max(self.sizes))]
        return issue_each(self.task, names, _server().fingerprint)

    def invited(self, people: People) -> list[Invitation]:
        """Return the invitations of the first records."""
        return self._invitations[: len(people)]

    @property
    def _registry(self) -> bool:
        return max(self.sizes) > 1

    @property
    def refusals(self) -> Refusals:
        """Why the command refuses: a registry's form, too."""
        return {**REFUSALS, **OF_TABLES} if self._registry else REFUSALS

    def form(self, classes: Sequence[str]) -> Form | None:
        """Return the form of a registry's table."""
        stated = Form(id=RECORD, label="label", classes=tuple(classes))
        return stated if self._registry else None

    def files(
        self, people: People, invited: Sequence[Invitation]
    ) -> dict[str, tuple[str, str]]:
        """Return the invitation; or a table of labels, and the invitations."""
        if not self._registry:
            return {"invitation": _one(invited)}
        named = zip(invited, people.labels, strict=True)
        rows = [[each.record, self.task.classes[int(at)]] for each, at in named]
        lines = "".join(json.dumps(each.to_json()) + "\n" for each in invited)
        table = _csv([RECORD, "label"], rows)
        return {"table": ("t.csv", table), "invitations": ("i.jsonl", lines)}

    def options(self, people: People) -> dict[str, str]:
        """Return the label of one's own record."""
        if self._registry:
            return {}
        return {"label": self.task.classes[int(people.labels[0])]}

    def known(self, people: People) -> Known:
        """Return labels, and nothing else: features are public."""
        return Known(people.curves, people.curves, people.labels)

    def rows(self, found: Sequence[Mapping[str, Any]]) -> Columns:
        """Return the codes, and whose they are: by number, as each has its own."""
        return {
            CODE: np.array([one[CODE] for one in found]),
            RECORD: np.arange(len(found)),
        }

    def redrawn(self, people: People, entropy: Entropy) -> Columns:
        """Return the codes, each a draw of its own, in the order of the table."""
        known, each = self.known(people), []
        for i in range(len(people)):
            if i and i % BATCH == 0 and isinstance(entropy, Given):
                entropy.skip(len(people) - i)  # names of the next batch's files
            drawn = self.message.draw(self.task, known.of(slice(i, i + 1)), entropy)
            each.append(drawn[CODE])
        return {CODE: np.concatenate(each), RECORD: np.arange(len(people))}

    def neighbours(self) -> list[tuple[str, People, People]]:
        """Return labels of which one differs, or all do, at the largest and least n."""
        found = []
        for n in {self.sizes[0], self.sizes[min(1, len(self.sizes) - 1)]}:
            base = self.people(n, np.random.default_rng(1))
            one = base.labels.copy()
            one[-1] = len(self.task.classes) - 1 - one[-1]
            for name, labels in (("label", one), ("labels", np.zeros(n))):
                other = replace(base, labels=labels)
                found.append((f"another {name} of {n}", base, other))
        return found

    def seen(
        self, heard: dict[str, Any], folder: Path, sent: Mapping[str, bytes]
    ) -> dict[str, Any]:
        """Return how much was drawn; of one's own label all words, too."""
        drawn = {"requests": [len(each) // 2 for each in heard["asked"]]}
        if self.message.noise(self.task).name == "subset_selection":
            drawn = {}  # which rejects, by words alone
        return drawn if self._registry else drawn | _words(heard, folder, sent)


class HospitalRelease(CommandRelease):
    """The one noised object about a hospital's table: `client release`."""

    def people(self, n: int, rng: np.random.Generator) -> People:
        """Return ``n`` records from everywhere in the bounds, the first beyond."""
        k = len(self.task.classes)
        cube = rng.random((n, self.task.d))
        cube[0] = 1.5
        labels = rng.integers(k, size=n).astype(np.float64)
        return self._of(cube, labels)

    def _of(self, cube: FloatArray, labels: FloatArray) -> People:
        return People(neighbours.known(self.task, cube, labels).z, labels)

    @cached_property
    def _invitations(self) -> list[Invitation]:
        named = self.task.server
        return issue(self.task, 1, _server().fingerprint, None, named)

    def invited(self, people: People) -> list[Invitation]:
        """Return the hospital's one invitation."""
        del people
        return self._invitations

    def files(
        self, people: People, invited: Sequence[Invitation]
    ) -> dict[str, tuple[str, str]]:
        """Return the table, and the invitation."""
        header = [*(each.name for each in self.task.features), "label", "person"]
        rows = [
            [*map(repr, map(float, values)), self.task.classes[int(at)], f"p{i}"]
            for i, (values, at) in enumerate(
                zip(people.curves, people.labels, strict=True)
            )
        ]
        return {"table": ("t.csv", _csv(header, rows)), "invitation": _one(invited)}

    def options(self, people: People) -> dict[str, str]:
        """Return nothing: the form says which columns hold classes and names."""
        del people
        return {}

    @property
    def refusals(self) -> Refusals:
        """Why the command refuses: the table's form, too."""
        return {**REFUSALS, **OF_TABLES}

    def form(self, classes: Sequence[str]) -> Form:
        """Return the form of the table: the task's bounds are the owner's."""
        columns = {
            each.name: Column(bounds=(each.lower, each.upper))
            for each in self.task.features
        }
        given = {"id": "person", "label": "label", "columns": columns}
        return Form(classes=tuple(classes), **given)

    def known(self, people: People) -> Known:
        """Return the whole table, of which there is one message."""
        return Known(people.curves, people.curves, people.labels)

    def rows(self, found: Sequence[Mapping[str, Any]]) -> Columns:
        """Return the release as a table of one row."""
        return self.table(super().rows(found))

    def table(self, drawn: Columns) -> Columns:
        """Return a release with its server's name as text."""
        return drawn | {"server": drawn["server"].astype(str)}

    def neighbours(self) -> list[tuple[str, People, People]]:
        """Return tables of which one record differs: its class, place, or both."""
        n, rng = self.sizes[-1], np.random.default_rng(1)
        base = self._of(rng.random((n, self.task.d)), (np.arange(n) % 2).astype(float))
        labels, curves = base.labels.copy(), base.curves.copy()
        labels[0] = len(self.task.classes) - 1 - labels[0]
        curves[0] = 1e6
        return [
            ("another class", base, replace(base, labels=labels)),
            ("another record", base, replace(base, labels=labels, curves=curves)),
            ("one class for all", base, replace(base, labels=np.zeros(n))),
            ("all beyond the bounds", base, replace(base, curves=base.curves + 1e6)),
        ]


@cache
def _server() -> ServerKey:
    """Return one key for all calls: what is shown must not differ by the server."""
    return ServerKey(Ed25519PrivateKey.generate())


def _one(invited: Sequence[Invitation]) -> tuple[str, str]:
    return "invitation.json", json.dumps(invited[0].to_json())


def _csv(header: list[str], rows: list[list[Any]]) -> str:
    text = StringIO()
    csv.writer(text).writerows([header, *rows])
    return text.getvalue()


def _words(
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


# A release by what its name begins with: its kind, the command, sizes.
KINDS: Mapping[str, tuple[type[CommandRelease], str, tuple[int, ...]]] = {
    "client": (LoneRelease, "answer", (1,)),
    "client_report": (LoneRelease, "report", (1,)),
    "client_vote": (LoneRelease, "vote", (1,)),
    "client_label": (LabelRelease, "label", (1,)),
    "client_labels": (LabelRelease, "label", REGISTRY),
    "client_release": (HospitalRelease, "release", HOSPITAL),
}


def names() -> list[str]:
    """Return each command with the messages that it lets out.

    `client report` and `client vote` are `client answer` under other names: one
    protocol each.
    """
    every = [f"client.{name}" for name in examples.released()]
    every += ["client_report.mrma.report", "client_vote.mrma.vote"]
    labels = [f"labels.code@{k}" for k in (2, examples.MORE, 100)]
    every += [f"client_label.{name}".removesuffix("@2") for name in labels]
    every += [f"client_labels.{name}".removesuffix("@2") for name in labels]
    return [*every, *(f"client_release.{name}" for name in servers.names())]


def command_release(name: str, epsilon: float) -> CommandRelease:
    """Return the release ``COMMAND.<protocol>.<message>`` of a small task."""
    way, _, what = name.partition(".")
    made, command, sizes = KINDS[way]
    if made is HospitalRelease:
        task: Any = servers.task(what, Level(epsilon))
        budget = task.spends(sizes[-1])
    else:
        task = examples.named(what, epsilon)
        budget = Budget(task.epsilon)
    params = {"command": command, "sizes": sizes}
    facts = task, message_of(task), name, params, budget, sizes
    return made(*facts, ordered=True, runs=RUNS, command=command)
