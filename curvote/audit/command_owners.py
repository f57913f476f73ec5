"""Who calls which command of `curvote client`: a person, a registry, a hospital."""

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

from curvote.audit import examples
from curvote.audit.command_release import (
    OF_TABLES,
    REFUSALS,
    CommandRelease,
    Refusals,
    server,
    words_of,
)
from curvote.audit.leaving import People
from curvote.audit.servers import examples as servers
from curvote.audit.servers import neighbours
from curvote.audit.tape import Given
from curvote.chain.stage import Columns
from curvote.client.form import Column, Form
from curvote.client.outbox import BATCH
from curvote.entropy import Entropy
from curvote.envelope import Invitation, issue, issue_each
from curvote.privacy import Budget
from curvote.protocols.labels.messages import CODE, RECORD
from curvote.protocols.message import Known, message_of
from curvote.transfer.task import Level
from curvote.validate import FloatArray

# Each call takes a tenth of a second: a ledger is made, and written to the disk.
RUNS = 20
# Labels of a registry: one, a few, and more than go through a step together.
REGISTRY = (1, 17, BATCH + 3)
# So many more records have names than are asked about: a fault may ask for a name.
NAMES = 10
# Records of a hospital: a delta of n^-2 promises nothing to one.
HOSPITAL = (3, 17)


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
        return words_of(heard, folder, sent)


class LabelRelease(CommandRelease):
    """The code of one's own label, or of each of a registry: `client label`."""

    def people(self, n: int, rng: np.random.Generator) -> People:
        """Return ``n`` labels of any class, the first two furthest apart."""
        k = len(self.task.classes)
        labels = rng.integers(k, size=n).astype(np.float64)
        labels[:2] = [k - 1.0, 0.0][:n]
        records = rng.permutation(max(self.sizes) + NAMES)[:n]
        return People(np.empty((n, 0)), labels, records)

    @cached_property
    def _invitations(self) -> list[Invitation]:
        names = [f"record {i}" for i in range(max(self.sizes) + NAMES)]
        return issue_each(self.task, names, server().fingerprint)

    def invited(self, people: People) -> list[Invitation]:
        """Return the invitations of their records."""
        return [self._invitations[record] for record in people.judge]

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
        return drawn if self._registry else drawn | words_of(heard, folder, sent)


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
        return issue(self.task, 1, server().fingerprint, None, named)

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
        return Form(id="person", label="label", classes=tuple(classes), columns=columns)

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


def _one(invited: Sequence[Invitation]) -> tuple[str, str]:
    return "invitation.json", json.dumps(invited[0].to_json())


def _csv(header: list[str], rows: list[list[Any]]) -> str:
    text = StringIO()
    csv.writer(text).writerows([header, *rows])
    return text.getvalue()


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
