"""Releases by commands of `curvote client` as subjects.

The installed command is called in a process of its own, with the files that its user
has; what counts is what then lies in the outbox, bit by bit. Nothing here calls the
functions by which the command draws. Who calls is a person, a registry or a hospital.
"""

import atexit
import csv
import hashlib
import json
import subprocess
import sys
from abc import abstractmethod
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from curvote.audit.release import IN_MEMORY, People, Release, ReleaseOutcome
from curvote.base.entropy import Entropy
from curvote.base.errors import InternalError, UserError
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns
from curvote.checks import examples
from curvote.checks.word_checks import ReplayedEntropy, Tape
from curvote.client.table import Column, Form, OwnerRecord, store_form
from curvote.curves.encoding import Encoding
from curvote.ledger.account import POPULATION
from curvote.ledger.book import Ledger
from curvote.ledger.session import BATCH
from curvote.messages.answer import client_inputs
from curvote.messages.message import ClientData, message_of
from curvote.systems.labels.messages import CODE, RECORD
from curvote.systems.monitor.questions import CALIBRATION, CLASS, VERSUS
from curvote.systems.transfer.audit import tables
from curvote.systems.transfer.method.task import Level
from curvote.wire import envelope
from curvote.wire.envelope import Invitation
from curvote.wire.signing import ServerKey
from curvote.wire.task import BESIDE

OUTBOX = "outbox"
Json = dict[str, Any]
Invited = Sequence[Invitation]
Envelopes = Mapping[str, bytes]
# The name and the content of a file, by the option that takes it.
Files = dict[str, tuple[str, str]]
# Why a command refuses, and how it is brought to that (`CommandRelease.calls`).
Refusals = Mapping[str, Mapping[str, Any]]
REFUSALS: Refusals = {
    "a cap that is too small": {"share": 0.5},
    "an invitation to another task": {"stranger": True},
}
OF_TABLES = {"a form with another class": {"more": ("another",)}}


class CommandHarness:
    """A child process that runs the command for each request."""

    def __init__(self, module: str = "curvote.audit.command_harness") -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, **request: Any) -> Json:
        """Return what one call did."""
        if self._child.stdin is None or self._child.stdout is None:
            raise InternalError("the harness has no pipes")
        print(json.dumps(request), file=self._child.stdin, flush=True)
        line = self._child.stdout.readline()
        if not line:
            raise InternalError("the process that calls the command ended")
        answer: Json = json.loads(line)
        return answer

    def close(self) -> None:
        """End the child."""
        self._child.communicate()


@cache
def shared_harness(*module: str) -> CommandHarness:
    """Return the one process in which all releases call commands: imports take long."""
    process = CommandHarness(*module)
    atexit.register(process.close)
    return process


@dataclass(frozen=True, eq=False, kw_only=True)
class CommandRelease(Release):
    """Envelopes in an outbox, made by ``command`` from files on a disk."""

    command: str

    shuffled: ClassVar[bool] = False

    @property
    def refusals(self) -> Refusals:
        """The reasons of refusals, and the calls that cause them; a form's, too."""
        return {**REFUSALS, **(OF_TABLES if self.form(self.task.classes) else {})}

    @abstractmethod
    def invitations_for(self, people: People) -> list[Invitation]:
        """Return the invitation of each message, in order."""

    @abstractmethod
    def files(self, people: People, invited: Invited) -> Files:
        """Return the command's input files, by option."""

    @property
    def is_alone(self) -> bool:
        """Whether one person answers about one record, without a table."""
        return max(self.sizes) == 1

    def options(self, people: People) -> dict[str, str]:
        """Return the label of whoever answers alone."""
        if not self.is_alone:
            return {}
        return {"label": self.task.classes[int(people.labels[0])]}

    def harness(self) -> CommandHarness:
        """Return the process in which the command is called."""
        return shared_harness()

    def call(self, people: People, **request: Any) -> Json:
        """Return what the command does when it is called for these people."""
        del people
        answer: Json = vars(self)["_harness"](**request)
        return answer

    def leave(self, people: People, tape: Tape, *, world: int = 0) -> ReleaseOutcome:
        """Release once, as a first-time owner."""
        return self.calls([people], [tape], world=world)[0]

    def leave_forked(self, people: People, children: int) -> list[ReleaseOutcome]:
        """Release in one process, then in children of its fork."""
        family = [False] + [True] * children
        return [self.calls([people], [Tape()], child=child)[0] for child in family]

    def calls(
        self,
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
        """Return the outcome of each of several calls of one owner.

        ``share`` of the budget is the cap, a ``stranger`` is invited to another task,
        the form has ``more`` classes; ``anew`` asks for a release each time.
        """
        if "_harness" not in vars(self):
            vars(self)["_harness"] = self.harness()
            # Modules that keep a copy of what they import must not keep the tape.
            first = self.people(self.sizes[0], np.random.default_rng(0))
            self.calls([first], [Tape()])
        outcomes: list[ReleaseOutcome] = []
        with TemporaryDirectory(dir=IN_MEMORY) as name:
            folder = Path(name)
            budget = self.task.cost(len(people[0]))
            cap = Budget(share * budget.epsilon, max(1, share) * budget.delta)
            with Ledger(folder / "ledger.sqlite") as ledger:
                ledger.set_cap(POPULATION, cap)
                if form := self.form([*self.task.classes, *more]):
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
                options["ledger"] = str(folder / "ledger.sqlite")
                options["outbox"] = str(folder / outbox)
                option_words = [f"--{key}={value}" for key, value in options.items()]
                heard = self.call(
                    those,
                    argv=["client", self.command, "--yes", *option_words, *words],
                    folder=name,
                    seed=tape.seed,
                    word=tape.word,
                    world=world,
                    child=child,
                )
                outcomes.append(self._read_outcome(heard, folder, invited, outbox))
        return outcomes

    def _read_outcome(
        self, heard: Json, folder: Path, invited: Invited, outbox: str
    ) -> ReleaseOutcome:
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        envelopes = {
            path.name: path.read_bytes()
            for path in files
            if path.is_relative_to(folder / outbox) and path.stat().st_size
        }
        facts: Json = {
            "exit code": heard["exit"],
            "files": sorted(str(path.relative_to(folder)) for path in files),
            "sizes": {name: len(data) for name, data in envelopes.items()},
            "form": envelope_faults(envelopes, invited, self.message.payload),
            **self.visible_output(heard, folder, envelopes),
        }
        rows: Columns = {}
        if set(envelopes) == {invitation.file_name for invitation in invited}:
            messages: list[Json] = []
            for invitation in invited:
                payload: Any = json.loads(envelopes[invitation.file_name])["payload"]
                if isinstance(payload, str):  # a JWS payload (RFC 7515)
                    text = urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
                    payload = json.loads(text)
                messages.append(payload.get("message", payload))
            facts["message"] = [
                {name: _value_shape(v) for name, v in m.items()} for m in messages
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
        return {name: np.array([m[name] for m in messages]) for name in messages[0]}

    def visible_output(self, heard: Json, folder: Path, envelopes: Envelopes) -> Json:
        """Return the output that may not tell records apart: bystanders read it.

        Nothing of whoever holds a table, and is told about it.
        """
        return normalized_output(heard, folder, envelopes) if self.is_alone else {}


def _value_shape(value: Any) -> str:
    return f"{len(value)} numbers" if isinstance(value, list) else type(value).__name__


def envelope_faults(envelopes: Envelopes, invited: Invited, payload: Any) -> list[str]:
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
            content = envelope.read_envelope(data)
        except UserError as error:
            faults.append(f"an envelope that cannot be read: {error}")
            continue
        fields = set(payload.model_fields)
        if set(content.payload) != fields:
            odd = sorted(set(content.payload) ^ fields)
            faults.append(f"{', '.join(odd)} beside or without what is declared")
        if (content.invitation, content.task) != (invitation.id, invitation.task):
            faults.append("an answer to another invitation or task")
        if not envelope.is_genuine(content, invitation.key):
            faults.append("a seal that is not the invitation's")
        subject = content.payload.get("record", content.payload.get("server"))
        if subject not in {None, invitation.record, invitation.server}:
            faults.append("an answer in another's name")
    return faults


@cache
def server_key() -> ServerKey:
    """Return one server key for all calls."""
    return ServerKey(Ed25519PrivateKey.generate())


def normalized_output(
    heard: Json, folder: Path, envelopes: Envelopes
) -> dict[str, str]:
    """Return the command's output without what differs by call."""
    words = {"words": heard["out"], "complaints": heard["err"]}
    for data in envelopes.values():
        digest = hashlib.sha256(data).hexdigest()
        words = {k: v.replace(digest, "DIGEST") for k, v in words.items()}
    for name in (str(folder.resolve()), str(folder)):
        words = {k: v.replace(name, "") for k, v in words.items()}
    return words


# Each call takes a tenth of a second: a ledger is made, and written to the disk.
RUNS = 20
# Labels of a registry: one, a few, and more than go through a step together.
REGISTRY = (1, 17, BATCH + 3)
# So many more records have names than are asked about: a fault may ask for a name.
NAMES = 10
# Records of a hospital: a delta of n^-2 promises nothing to one.
HOSPITAL = (3, 17)


class PersonRelease(CommandRelease):
    """One client's envelope by `client answer`, `report` or `vote`."""

    @cached_property
    def _invitations(self) -> dict[int | None, Invitation]:
        up = self.task.candidates
        count = 1 if up is None else len(up.coef)
        issued = envelope.issue_invitations(self.task, count)
        return {invitation.about: invitation for invitation in issued}

    def invitations_for(self, people: People) -> list[Invitation]:
        """Return the invitation, with its candidate."""
        about = None if people.judge is None else int(people.judge[0])
        return [self._invitations[about]]

    def files(self, people: People, invited: Invited) -> Files:
        """Return the curve, and the invitation."""
        curve = "\n".join(repr(float(value)) for value in people.curves[0])
        return {"curve": ("curve.csv", curve), "invitation": _single(invited)}


class IrregularRelease(PersonRelease):
    """One client's envelope about two channels at times of the record's own."""

    def measured(self, people: People) -> OwnerRecord:
        """Return the first person's measurements: how many there are is private."""
        onto = self.task.encoding.projection
        values = people.curves[0].reshape(len(onto.channels), -1).T
        count = 1 + int(1e3 * np.abs(values).sum()) % len(values)
        return OwnerRecord(values[:count], int(people.labels[0]), onto.grid[:count])

    def client_data(self, people: People) -> ClientData:
        """Return what the client makes of the measurements."""
        about = None if people.judge is None else int(people.judge[0])
        return client_inputs(self.task, self.measured(people), about)

    def files(self, people: People, invited: Invited) -> Files:
        """Return the table of measurements, and the invitation."""
        points, channels = self.measured(people), self.task.encoding.projection.channels
        rows = np.column_stack([np.asarray(points.times), points.values]).tolist()
        table = _csv_text(["time", *channels], rows)
        return {"curve": ("curve.csv", table), "invitation": _single(invited)}


class LabelRelease(CommandRelease):
    """The code of one's own label, or of each of a registry: `client label`."""

    def people(self, n: int, rng: np.random.Generator) -> People:
        """Return ``n`` labels, the first two furthest apart."""
        k = self.task.label_count
        labels = rng.integers(k, size=n).astype(np.float64)
        labels[:2] = [k - 1.0, 0.0][:n]
        records = rng.permutation(max(self.sizes) + NAMES)[:n]
        return People(np.empty((n, 0)), labels, records)

    @cached_property
    def _invitations(self) -> list[Invitation]:
        names = [f"record {i}" for i in range(max(self.sizes) + NAMES)]
        signer = server_key().fingerprint
        return envelope.issue_record_invitations(self.task, names, signer)

    def invitations_for(self, people: People) -> list[Invitation]:
        """Return the invitations of the people's records."""
        return [self._invitations[record] for record in people.judge]

    def form(self, classes: Sequence[str]) -> Form | None:
        """Return the form of a registry's table."""
        if self.is_alone:
            return None
        return Form(id=RECORD, label="label", classes=tuple(classes))

    def files(self, people: People, invited: Invited) -> Files:
        """Return the invitation, or a table of labels and invitations."""
        if self.is_alone:
            return {"invitation": _single(invited)}
        named = zip(invited, people.labels, strict=True)
        rows = [[i.record, self.task.classes[int(at)]] for i, at in named]
        if words := [*self.task.words]:  # in columns of their own
            rows = [[i, *joint.split(BESIDE)] for i, joint in rows]
        lines = "".join(json.dumps(i.to_json()) + "\n" for i in invited)
        table = _csv_text([RECORD, "label", *words], rows)
        return {"table": ("t.csv", table), "invitations": ("i.jsonl", lines)}

    def client_data(self, people: People) -> ClientData:
        """Return the labels alone: features are public."""
        return ClientData(people.curves, people.curves, people.labels)

    def rows(self, messages: Sequence[Mapping[str, Any]]) -> Columns:
        """Return the codes by record number."""
        codes = np.array([message[CODE] for message in messages])
        return {CODE: codes, RECORD: np.arange(len(messages))}

    def redraw(self, people: People, entropy: Entropy) -> Columns:
        """Return the codes, each a draw of its own, in the order of the table."""
        data, parts = self.client_data(people), []
        for i in range(len(people)):
            if i and i % BATCH == 0 and isinstance(entropy, ReplayedEntropy):
                entropy.skip(len(people) - i)  # names of the next batch's files
            label_data = data.subset(slice(i, i + 1))
            parts.append(self.message.draw(self.task, label_data, entropy)[CODE])
        return {CODE: np.concatenate(parts), RECORD: np.arange(len(people))}

    def neighbours(self) -> list[tuple[str, People, People]]:
        """Return pairs of labels of which one or all differ."""
        pairs = []
        for n in {self.sizes[0], self.sizes[min(1, len(self.sizes) - 1)]}:
            base = self.people(n, np.random.default_rng(1))
            changed = base.labels.copy()
            changed[-1] = self.task.label_count - 1 - changed[-1]
            for name, labels in (("label", changed), ("labels", np.zeros(n))):
                other = replace(base, labels=labels)
                pairs.append((f"another {name} of {n}", base, other))
        return pairs

    def visible_output(self, heard: Json, folder: Path, envelopes: Envelopes) -> Json:
        """Return the numbers of words, and for one label all output."""
        output = super().visible_output(heard, folder, envelopes)
        if self.message.noise(self.task).name == "subset_selection":
            return output  # which rejects, by words alone
        return {"requests": [len(answer) // 2 for answer in heard["asked"]], **output}


class OutcomeRelease(LabelRelease):
    """The answer about a model of whoever says what it said and what is true."""

    @cached_property
    def _invitations(self) -> list[Invitation]:
        count = max(self.sizes) + NAMES
        return envelope.issue_invitations(self.task, count, server_key().fingerprint)

    def options(self, people: People) -> dict[str, str]:
        """Return the texts that stand for the word of whoever answers alone."""
        word, classes = int(people.labels[0]), self.task.classes
        right, text = "yes", {True: "yes", False: "no"}
        question = self.task.question
        if question == CLASS:
            answer, truth = divmod(word, len(classes))
            return {"answered": classes[answer], "truth": classes[truth]}
        answered = text[word % 2 == 1]
        if question == VERSUS:
            answered = f"{answered},{text[word > 1]}"
        options = {"answered": answered, "truth": right}
        if question == CALIBRATION:
            bins = self.task.label_count // 2
            options["probability"] = f"{(word // 2 + 0.5) / bins}"
        return options

    def rows(self, messages: Sequence[Mapping[str, Any]]) -> Columns:
        """Return the codes alone."""
        return {CODE: super().rows(messages)[CODE]}

    def redraw(self, people: People, entropy: Entropy) -> Columns:
        """Return the codes, each a draw of its own."""
        return {CODE: super().redraw(people, entropy)[CODE]}


class HospitalRelease(CommandRelease):
    """The noised object about a hospital's table: `client release`."""

    def people(self, n: int, rng: np.random.Generator) -> People:
        """Return ``n`` records in the bounds, the first beyond."""
        k = len(self.task.classes)
        cube = rng.random((n, self.task.d))
        cube[0] = 1.5
        labels = rng.integers(k, size=n).astype(np.float64)
        return self._people_of(cube, labels)

    def _people_of(self, cube: FloatArray, labels: FloatArray) -> People:
        return People(tables.make_table(self.task, cube, labels).z, labels)

    @cached_property
    def _invitations(self) -> list[Invitation]:
        named, signer = self.task.server, server_key().fingerprint
        return envelope.issue_invitations(self.task, 1, signer, None, named)

    def invitations_for(self, people: People) -> list[Invitation]:
        """Return the hospital's one invitation."""
        del people
        return self._invitations

    def files(self, people: People, invited: Invited) -> Files:
        """Return the table, and the invitation."""
        header = [*(feature.name for feature in self.task.features), "label", "person"]
        labels = [self.task.classes[int(at)] for at in people.labels]
        records = enumerate(zip(people.curves.tolist(), labels, strict=True))
        rows = [[*map(repr, values), label, f"p{i}"] for i, (values, label) in records]
        table = ("t.csv", _csv_text(header, rows))
        return {"table": table, "invitation": _single(invited)}

    def form(self, classes: Sequence[str]) -> Form:
        """Return the form of the table, with the task's bounds."""
        features = self.task.features
        columns = {f.name: Column(bounds=(f.lower, f.upper)) for f in features}
        return Form(id="person", label="label", classes=tuple(classes), columns=columns)

    def client_data(self, people: People) -> ClientData:
        """Return the whole table, about which there is one message."""
        return ClientData(people.curves, people.curves, people.labels)

    def rows(self, messages: Sequence[Mapping[str, Any]]) -> Columns:
        """Return the release as a table of one row."""
        return self.to_table(super().rows(messages))

    def to_table(self, columns: Columns) -> Columns:
        """Return a release with its server's name as text."""
        return columns | {"server": columns["server"].astype(str)}

    def neighbours(self) -> list[tuple[str, People, People]]:
        """Return pairs of tables of which one record differs."""
        n, rng = self.sizes[-1], np.random.default_rng(1)
        by_turns = (np.arange(n) % 2).astype(float)
        base = self._people_of(rng.random((n, self.task.d)), by_turns)
        labels, curves = base.labels.copy(), base.curves.copy()
        labels[0] = len(self.task.classes) - 1 - labels[0]
        curves[0] = 1e6
        return [
            ("another class", base, replace(base, labels=labels)),
            ("another record", base, replace(base, labels=labels, curves=curves)),
            ("one class for all", base, replace(base, labels=np.zeros(n))),
            ("all beyond the bounds", base, replace(base, curves=base.curves + 1e6)),
        ]


def _single(invited: Invited) -> tuple[str, str]:
    return "invitation.json", json.dumps(invited[0].to_json())


def _csv_text(header: list[str], rows: list[list[Any]]) -> str:
    text = StringIO()
    csv.writer(text).writerows([header, *rows])
    return text.getvalue()


# A release by what its name begins with: its kind, the command, sizes.
KINDS: Mapping[str, tuple[type[CommandRelease], str, tuple[int, ...]]] = {
    "client": (PersonRelease, "answer", (1,)),
    "client_irregular": (IrregularRelease, "answer", (1,)),
    "client_report": (PersonRelease, "report", (1,)),
    "client_vote": (PersonRelease, "vote", (1,)),
    "client_label": (LabelRelease, "label", (1,)),
    "client_labels": (LabelRelease, "label", REGISTRY),
    "client_outcome": (OutcomeRelease, "answer", (1,)),
    "client_release": (HospitalRelease, "release", HOSPITAL),
}


# Words of questions of class and of calibration; of the others there are 2 and 4.
QUESTION_SIZES = (9, 26)


def command_names() -> list[str]:
    """Return each command with its messages.

    `client report` and `client vote` are `client answer` under other names: one
    protocol each.
    """
    codes = ["labels.code", *(f"labels.code@{k}" for k in (examples.MORE, 100))]
    codes.append(examples.WORDED)
    outcomes = examples.outcome_names()
    more_questions = [
        n for n in examples.outcome_names(QUESTION_SIZES) if n not in outcomes
    ]
    messages = {
        "client": [n for n in examples.released_names() if n not in outcomes],
        "client_irregular": ["mrma.report"],
        "client_report": ["mrma.report"],
        "client_vote": ["mrma.vote"],
        "client_label": codes,
        "client_labels": codes,
        "client_outcome": [*outcomes, *more_questions],
        "client_release": tables.example_names(),
    }
    return [f"{way}.{name}" for way, names in messages.items() for name in names]


def command_release(name: str, epsilon: float) -> CommandRelease:
    """Return the release ``COMMAND.<protocol>.<message>`` of a small task."""
    way, _, what = name.partition(".")
    kind, command, sizes = KINDS[way]
    if kind is HospitalRelease:
        task: Any = tables.example_task(what, Level(epsilon))
    else:
        task = examples.task_named(what, epsilon)
    if kind is IrregularRelease:
        onto = task.encoding.projection.stacked(("x", "y"))
        constants = {"centre": np.zeros(1), "scale": np.ones(1)}
        encoding = Encoding(onto, "tanh", constants, smooth=True)
        task = replace(task, encoding=encoding)
    params = {"command": command, "sizes": sizes}
    facts = task, message_of(task), name, params, task.cost(sizes[-1]), sizes
    return kind(*facts, ordered=True, runs=RUNS, command=command)
