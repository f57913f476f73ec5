"""Owners who call commands of `curvote client`: a person, a registry, a hospital."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from curvote.audit.command_release import (
    OF_TABLES,
    REFUSALS,
    CommandRelease,
    Refusals,
    normalized_output,
    server_key,
)
from curvote.audit.release import People
from curvote.base.entropy import Entropy
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns
from curvote.checks import examples
from curvote.checks.tape import ReplayedEntropy
from curvote.client.table import Column, Form
from curvote.ledger.session import BATCH
from curvote.messages.message import ClientData, message_of
from curvote.systems.labels.messages import CODE, RECORD
from curvote.systems.transfer.audit import tables
from curvote.systems.transfer.method.task import Level
from curvote.wire.envelope import (
    Invitation,
    issue_invitations,
    issue_record_invitations,
)

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
        issued = issue_invitations(self.task, 1 if up is None else len(up.coef))
        return {invitation.about: invitation for invitation in issued}

    def invitations_for(self, people: People) -> list[Invitation]:
        """Return the invitation, with its candidate."""
        about = None if people.judge is None else int(people.judge[0])
        return [self._invitations[about]]

    def files(
        self, people: People, invited: Sequence[Invitation]
    ) -> dict[str, tuple[str, str]]:
        """Return the curve, and the invitation."""
        curve = "\n".join(repr(float(value)) for value in people.curves[0])
        return {"curve": ("curve.csv", curve), "invitation": _single(invited)}

    def options(self, people: People) -> dict[str, str]:
        """Return the label option."""
        return {"label": self.task.classes[int(people.labels[0])]}

    def visible_output(
        self, heard: dict[str, Any], folder: Path, envelopes: Mapping[str, bytes]
    ) -> dict[str, Any]:
        """Return the whole output, which bystanders may read."""
        return normalized_output(heard, folder, envelopes)


class LabelRelease(CommandRelease):
    """The code of one's own label, or of each of a registry: `client label`."""

    def people(self, n: int, rng: np.random.Generator) -> People:
        """Return ``n`` labels, the first two furthest apart."""
        k = len(self.task.classes)
        labels = rng.integers(k, size=n).astype(np.float64)
        labels[:2] = [k - 1.0, 0.0][:n]
        records = rng.permutation(max(self.sizes) + NAMES)[:n]
        return People(np.empty((n, 0)), labels, records)

    @cached_property
    def _invitations(self) -> list[Invitation]:
        names = [f"record {i}" for i in range(max(self.sizes) + NAMES)]
        return issue_record_invitations(self.task, names, server_key().fingerprint)

    def invitations_for(self, people: People) -> list[Invitation]:
        """Return the invitations of the people's records."""
        return [self._invitations[record] for record in people.judge]

    @property
    def _is_registry(self) -> bool:
        return max(self.sizes) > 1

    @property
    def refusals(self) -> Refusals:
        """The reasons of refusals, a registry's form included."""
        return {**REFUSALS, **OF_TABLES} if self._is_registry else REFUSALS

    def form(self, classes: Sequence[str]) -> Form | None:
        """Return the form of a registry's table."""
        form = Form(id=RECORD, label="label", classes=tuple(classes))
        return form if self._is_registry else None

    def files(
        self, people: People, invited: Sequence[Invitation]
    ) -> dict[str, tuple[str, str]]:
        """Return the invitation, or a table of labels and invitations."""
        if not self._is_registry:
            return {"invitation": _single(invited)}
        classes = self.task.classes
        named = zip(invited, people.labels, strict=True)
        rows = [[invitation.record, classes[int(at)]] for invitation, at in named]
        lines = "".join(json.dumps(one.to_json()) + "\n" for one in invited)
        table = _csv_text([RECORD, "label"], rows)
        return {"table": ("t.csv", table), "invitations": ("i.jsonl", lines)}

    def options(self, people: People) -> dict[str, str]:
        """Return the label option for one's own record."""
        if self._is_registry:
            return {}
        return {"label": self.task.classes[int(people.labels[0])]}

    def client_data(self, people: People) -> ClientData:
        """Return the labels alone: features are public."""
        return ClientData(people.curves, people.curves, people.labels)

    def rows(self, messages: Sequence[Mapping[str, Any]]) -> Columns:
        """Return the codes by record number."""
        return {
            CODE: np.array([message[CODE] for message in messages]),
            RECORD: np.arange(len(messages)),
        }

    def redraw(self, people: People, entropy: Entropy) -> Columns:
        """Return the codes, each a draw of its own, in the order of the table."""
        data, parts = self.client_data(people), []
        for i in range(len(people)):
            if i and i % BATCH == 0 and isinstance(entropy, ReplayedEntropy):
                entropy.skip(len(people) - i)  # names of the next batch's files
            one = data.subset(slice(i, i + 1))
            parts.append(self.message.draw(self.task, one, entropy)[CODE])
        return {CODE: np.concatenate(parts), RECORD: np.arange(len(people))}

    def neighbours(self) -> list[tuple[str, People, People]]:
        """Return pairs of labels of which one or all differ."""
        pairs = []
        for n in {self.sizes[0], self.sizes[min(1, len(self.sizes) - 1)]}:
            base = self.people(n, np.random.default_rng(1))
            changed = base.labels.copy()
            changed[-1] = len(self.task.classes) - 1 - changed[-1]
            for name, labels in (("label", changed), ("labels", np.zeros(n))):
                other = replace(base, labels=labels)
                pairs.append((f"another {name} of {n}", base, other))
        return pairs

    def visible_output(
        self, heard: dict[str, Any], folder: Path, envelopes: Mapping[str, bytes]
    ) -> dict[str, Any]:
        """Return the numbers of words, and for one label all output."""
        requests = {"requests": [len(answer) // 2 for answer in heard["asked"]]}
        if self.message.noise(self.task).name == "subset_selection":
            requests = {}  # which rejects, by words alone
        if self._is_registry:
            return requests
        return requests | normalized_output(heard, folder, envelopes)


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
        named = self.task.server
        return issue_invitations(self.task, 1, server_key().fingerprint, None, named)

    def invitations_for(self, people: People) -> list[Invitation]:
        """Return the hospital's one invitation."""
        del people
        return self._invitations

    def files(
        self, people: People, invited: Sequence[Invitation]
    ) -> dict[str, tuple[str, str]]:
        """Return the table, and the invitation."""
        header = [*(feature.name for feature in self.task.features), "label", "person"]
        records = enumerate(zip(people.curves, people.labels, strict=True))
        rows = [
            [*map(repr, map(float, values)), self.task.classes[int(at)], f"p{i}"]
            for i, (values, at) in records
        ]
        table = ("t.csv", _csv_text(header, rows))
        return {"table": table, "invitation": _single(invited)}

    def options(self, people: People) -> dict[str, str]:
        """Return no options: the form names the columns."""
        del people
        return {}

    @property
    def refusals(self) -> Refusals:
        """The reasons of refusals, the table's form included."""
        return {**REFUSALS, **OF_TABLES}

    def form(self, classes: Sequence[str]) -> Form:
        """Return the form of the table, with the task's bounds."""
        columns = {
            feature.name: Column(bounds=(feature.lower, feature.upper))
            for feature in self.task.features
        }
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


def _single(invited: Sequence[Invitation]) -> tuple[str, str]:
    return "invitation.json", json.dumps(invited[0].to_json())


def _csv_text(header: list[str], rows: list[list[Any]]) -> str:
    text = StringIO()
    csv.writer(text).writerows([header, *rows])
    return text.getvalue()


# A release by what its name begins with: its kind, the command, sizes.
KINDS: Mapping[str, tuple[type[CommandRelease], str, tuple[int, ...]]] = {
    "client": (PersonRelease, "answer", (1,)),
    "client_report": (PersonRelease, "report", (1,)),
    "client_vote": (PersonRelease, "vote", (1,)),
    "client_label": (LabelRelease, "label", (1,)),
    "client_labels": (LabelRelease, "label", REGISTRY),
    "client_release": (HospitalRelease, "release", HOSPITAL),
}


def command_names() -> list[str]:
    """Return each command with its messages.

    `client report` and `client vote` are `client answer` under other names: one
    protocol each.
    """
    every = [f"client.{name}" for name in examples.released_names()]
    every += ["client_report.mrma.report", "client_vote.mrma.vote"]
    labels = [f"labels.code@{k}" for k in (2, examples.MORE, 100)]
    every += [f"client_label.{name}".removesuffix("@2") for name in labels]
    every += [f"client_labels.{name}".removesuffix("@2") for name in labels]
    return [*every, *(f"client_release.{name}" for name in tables.example_names())]


def command_release(name: str, epsilon: float) -> CommandRelease:
    """Return the release ``COMMAND.<protocol>.<message>`` of a small task."""
    way, _, what = name.partition(".")
    kind, command, sizes = KINDS[way]
    if kind is HospitalRelease:
        task: Any = tables.example_task(what, Level(epsilon))
        budget = task.cost(sizes[-1])
    else:
        task = examples.task_named(what, epsilon)
        budget = Budget(task.epsilon)
    params = {"command": command, "sizes": sizes}
    facts = task, message_of(task), name, params, budget, sizes
    return kind(*facts, ordered=True, runs=RUNS, command=command)
