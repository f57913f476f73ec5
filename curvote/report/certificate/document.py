"""The certificate of a run as JSON, signed, with the programs that check it.

It is made of what the server's side has: tasks, counts, the ledger's sums, the digests
of results. No table of the clients' side is opened, and no name of anybody is in it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np

from curvote.base.errors import InternalError, UserError
from curvote.base.privacy import Budget
from curvote.base.version import __version__
from curvote.chain import lookup
from curvote.intake.box import Intake
from curvote.intake.store import store_exists
from curvote.ledger.amounts import Entry
from curvote.ledger.book import Ledger, open_existing
from curvote.mechanisms.law import exact_text, state_laws
from curvote.messages.message import Message, message_of
from curvote.pipeline.config.project import Project, is_client_side
from curvote.pipeline.config.settings import labelled_parts
from curvote.pipeline.config.source import has_unpublished_records
from curvote.pipeline.plan.expand import final_stages
from curvote.pipeline.plan.step import json_digest
from curvote.pipeline.release.publication import server_key
from curvote.pipeline.release.windows import find_round, rounds_of_windows
from curvote.pipeline.run import audit_tasks, results
from curvote.pipeline.store.artifacts import artifact, stage_side, write_text
from curvote.pipeline.store.records import RunRecord
from curvote.report.certificate import verify
from curvote.wire.merkle import MerkleTree
from curvote.wire.task import AnyTask, Task

Json = dict[str, Any]

FILE: Final = "certificate.json"
CHECKERS: Final = ("verify.py", "verify.html")
PURPOSE: Final = verify.PREFIX.decode().strip()


@dataclass(frozen=True)
class CertifiedMessage:
    """One message of a run: its task, how many came, and about how many records.

    ``entry`` is the ledger's, of clients who are here; of others ``invited`` were
    asked. ``tree`` is the root and the count of leaves of what was accepted, if known.
    """

    task: AnyTask
    count: int = 0
    records: int = 0
    entry: Entry | None = None
    invited: int = 0
    tree: tuple[str, int] | None = None

    @property
    def kind(self) -> Message:
        """The kind of message that the task asks for."""
        return message_of(self.task)

    @property
    def budget(self) -> Budget:
        """The cost for each record; in a study that of as many as any."""
        if self.kind.per_table and not self.records:
            (noise,) = self.kind.mechanisms(self.task)
            return Budget(noise.epsilon, noise.delta)
        return self.task.cost(max(self.records, 1))

    def state(self) -> Json:
        """Return the message as the certificate states it."""
        mechanisms = self.kind.mechanisms(self.task, self.records or None)
        laws = [law for mechanism in mechanisms for law in state_laws(mechanism)]
        least = sum(
            (law["times"] * Fraction(law["least"]) for law in laws), Fraction(0)
        )
        return {
            "name": f"{self.task.protocol} {self.task.asks}",
            "task": {"digest": self.task.digest(), "text": task_text(self.task)},
            "law": laws,
            "epsilon": exact_text(self.budget.epsilon),
            "delta": exact_text(self.budget.delta),
            "least": exact_text(least),
            "sent": self.count,
            "records": self.records,
            "envelopes": self._state_tree(),
        }

    def _state_tree(self) -> Json:
        if not self.invited:
            return _tree(why="no envelope was sent")
        if self.tree is None:
            return _tree(why="the intake kept no tree of what it accepted")
        root, count = self.tree
        if count != self.count:
            return _tree(why=f"{count} envelopes were accepted, {self.count} are used")
        return _tree(root, count)


def _tree(root: str | None = None, count: int | None = None, why: str = "") -> Json:
    return {"root": root, "count": count, "why": why or None, "leaves": None}


def task_text(task: AnyTask) -> str:
    """Return the text whose SHA-256 is the digest of a task."""
    marks = (", ", ": ") if isinstance(task, Task) else (",", ":")
    text = json.dumps(task.to_json(), sort_keys=True, separators=marks)
    if hashlib.sha256(text.encode()).hexdigest() != task.digest():
        raise InternalError(f"the text of task {task.digest()} is another")
    return text


def accepted_roots(project: Project, pipeline: str) -> Mapping[str, tuple[str, int]]:
    """Return root and count of what closed rounds accepted, by the task's digest."""
    if not store_exists(project.intake):
        return {}
    with Intake(project.intake) as intake:
        return {task: (root, n) for task, root, n in intake.roots(pipeline)}


def released_messages(
    project: Project, record: RunRecord, ledger: Ledger | None
) -> Iterator[CertifiedMessage]:
    """Yield what left clients in a run of production, in the order of its stages."""
    roots = accepted_roots(project, record.pipeline)
    for step in record.steps:
        stored = artifact(project, step["stage"], step["key"])
        if "task" not in stored.metadata:
            continue
        task = lookup.read_task(stored.metadata["task"])
        kind, origin = message_of(task), stored.manifest.get("round")
        if kind.stage != step["stage"]:
            continue  # it only tells what was asked before
        if origin is None:
            entry = ledger.entry(step["key"]) if ledger else None
            if entry is None:
                raise UserError(f"the ledger does not know release {step['key']}.")
            n = entry.n_clients
            yield CertifiedMessage(task, 1 if kind.per_table else n, n, entry)
            continue
        rounds = [find_round(project, origin["id"])]
        if kind.windows(record.config):
            rounds = [*rounds_of_windows(project, origin["id"])]
        for round_ in rounds:
            if round_ is None:
                raise UserError(f"the intake has no round {origin['id']} any more.")
            n = round_.folded
            if kind.per_table:
                n = int(np.sum(stored.columns(kind.table, (0,))["n"]))
            if round_.folded:
                came = round_.task, round_.folded, n, None, round_.issued
                yield CertifiedMessage(*came, roots.get(round_.digest))


def study_messages(
    project: Project, record: RunRecord
) -> tuple[list[CertifiedMessage], list[str]]:
    """Return what a study draws, and lines on forms that keep no promise."""
    messages, broken = [], dict[str, None]()
    for task in audit_tasks.run_tasks(project, record):
        try:
            message_of(task).check_task(task)
            messages.append(CertifiedMessage(task))
        except UserError as error:
            broken[str(error)] = None
    return messages, [*broken]


def _state_people(messages: Sequence[CertifiedMessage], ledger: Ledger | None) -> Json:
    """Return who sent what, by groups alike, and what that cost them."""
    entries = [m.entry for m in messages if m.entry]
    epsilons = [Fraction(m.budget.epsilon) for m in messages]
    deltas = [Fraction(m.budget.delta) for m in messages]
    units = np.eye(len(messages), dtype=int).tolist()
    groups = [(m.records, sends) for m, sends in zip(messages, units, strict=True)]
    largest = [sum(epsilons, Fraction(0)), sum(deltas, Fraction(0))]
    cap = total = None
    if ledger and entries:
        groups = _group_members([ledger.members(e.release) for e in entries])
        largest = [max(_dot(s, c) for _, s in groups) for c in (epsilons, deltas)]
        spent, limit = ledger.most_spent_in(entries[0].population), entries[0].cap
        # What is written 0.1 counts as 1/10 there, and is a hair above it here.
        tops = map(max, map(Fraction, (spent.epsilon, spent.delta)), largest)
        total = dict(zip(("epsilon", "delta"), map(exact_text, tops), strict=True))
        if limit:
            numbers = {"epsilon": limit.epsilon, "delta": limit.delta}
            cap = {n: exact_text(Fraction(repr(v))) for n, v in numbers.items()}
    people = sum(n for n, _ in groups)
    mean = sum((n * _dot(s, epsilons) for n, s in groups), Fraction(0)) / (people or 1)
    sums = {"mean": mean, "largest": largest[0], "delta": largest[1]}
    return {
        "cap": cap,
        "linked": bool(entries),
        "groups": [{"people": n, "sends": sends} for n, sends in groups],
        "spent": {"people": people} | {n: exact_text(v) for n, v in sums.items()},
        "total": total,
    }


def _dot(sends: Sequence[int], costs: Sequence[Fraction]) -> Fraction:
    return sum((n * c for n, c in zip(sends, costs, strict=True)), Fraction(0))


def _group_members(members: Sequence[Any]) -> list[tuple[int, list[int]]]:
    """Return how many people sent which of the messages, given those of each."""
    people, place = np.unique(np.concatenate(members), return_inverse=True)
    sends = np.zeros((len(people), len(members)), dtype=np.int64)
    ends = np.cumsum([len(ids) for ids in members])[:-1]
    for k, part in enumerate(np.split(place, ends)):
        sends[part, k] = 1
    patterns, counts = np.unique(sends, axis=0, return_counts=True)
    return [*zip(counts.tolist(), patterns.tolist(), strict=True)]


def _state_ledger(ledger: Ledger | None, entry: Entry | None) -> Json:
    """Return the tree of the ledger's movements about a release's population.

    Its leaves are the links of the ledger's chain, which are codes under a key that
    never leaves it: without that they tell nothing.
    """
    if ledger is None or entry is None:
        return _tree(why="nothing is counted here: whoever sends does it at home")
    moves = [m for m in ledger.movements() if m.population == entry.population]
    tree = MerkleTree(bytes.fromhex(move.head) for move in moves)
    return _tree(tree.root.hex(), len(moves))


def _state_report(project: Project, record: RunRecord) -> list[Json]:
    """Return the numbers of a run's report, as JSON has them."""
    rows = results.mean_scores(project, record)
    models = results.reputations(project, record)
    if not rows and models:
        rows = [cell.to_json() | m.document() for cell, m in models.items()]
    elif not rows:
        outcomes = results.production_outcomes(project, record).items()
        rows = [cell.to_json() | outcome for cell, outcome in outcomes]
    return [_plain(row) for row in rows]


def _plain(value: Any) -> Any:
    """Return a value as JSON; what is no finite number is null."""
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _state_digests(project: Project, record: RunRecord, report: Any) -> Json:
    """Return digests of code, report and model; no table of clients has a part."""
    parts = labelled_parts(record.config)
    last = {name for _, part in parts for name in final_stages(part.settings)}
    codes, tables = dict[str, Any](), dict[str, Any]()
    for step in record.steps:
        manifest = artifact(project, step["stage"], step["key"]).manifest
        codes[step["stage"]] = manifest["components"]["code"]
        if step["stage"] in last and not is_client_side(stage_side(step["stage"])):
            sums = {n: entry["sha256"] for n, entry in manifest["tables"].items()}
            tables[f"{step['stage']} {step['key']}"] = sums
    model = json_digest(tables) if tables else None
    return {"code": json_digest(codes), "results": json_digest(report), "model": model}


def _list_public(
    messages: Sequence[CertifiedMessage], config: Mapping[str, Any]
) -> list[str]:
    """Return what is known of whom without any noise, a line each."""
    kinds = [m.kind for m in messages]
    volunteers = (config.get("clients") or {}).get("public")
    lines = {
        "the tasks: all that stands in their texts here": True,
        "who was invited, and that an invitation was used": messages[0].invited,
        "to whoever holds the records: records, and who took part": messages[0].entry,
        "which public record a message is about, and its features": any(
            kind.per_record for kind in kinds
        ),
        "which server sent what, about how many records": any(
            kind.per_table for kind in kinds
        ),
        "which candidate or public group a message is about": any(
            m.task.subject_count for m in messages
        ),
        f"the records of {volunteers} volunteers, published for good": volunteers,
    }
    return [line for line, holds in lines.items() if holds]


def make_certificate(project: Project, record: RunRecord) -> Json:
    """Return the certificate of a completed run, unsigned.

    UserError: nothing is sent in it, a plug-in noises it, its round or its entry in the
    ledger is gone, or it is a study of records that nobody published: such a study's
    numbers have no noise, and neither has any digest of them.
    """
    study, broken = record.config.get("mode") != "production", list[str]()
    parts = [part.settings for _, part in labelled_parts(record.config)]
    if study and any(map(has_unpublished_records, parts)):
        raise UserError(
            f"{record.pipeline} is a study of records that nobody published: its"
            " numbers are about them as they are, so that it has no certificate."
        )
    with open_existing(project.ledger) or nullcontext() as ledger:
        if study:
            messages, broken = study_messages(project, record)
        else:
            messages = [*released_messages(project, record, ledger)]
        if not messages:
            raise UserError(f"in run {record.id} nobody sends anything to certify.")
        entry = messages[0].entry
        people = None if study else _state_people(messages, ledger)
        account = _state_ledger(ledger, entry)
    invited = sum(m.invited for m in messages)
    senders = "nobody: messages are simulated"
    if not study:
        senders = f"whoever holds one of {invited} invitations, once with each"
        if entry:
            senders = "clients whose records one house holds, once with each message"
    central = any(m.kind.per_table for m in messages)
    report = _state_report(project, record)
    certificate = {
        "format": 1,
        "kind": "study" if study else "release",
        "about": {
            "made_by": f"curvote {__version__}",
            "pipeline": record.pipeline,
            "run": record.id,
            "started": record.started,
            "finished": record.finished,
        },
        "protects": {
            "unit": "record of a server's table" if central else "record of a client",
            "adjacency": "replace-one",
            "model": "nobody" if study else "central" if central else "local",
            "senders": senders,
        },
        "messages": [m.state() for m in messages],
        "people": people,
        "ledger": account,
        "report": report,
        "digests": _state_digests(project, record, report),
        "not_private": _list_public(messages, record.config) + broken,
    }
    return certificate | _fill_forms(certificate)


def _fill_forms(certificate: Json) -> Json:
    """Return the fields of NIST SP 800-226 and of the registry of deployments.

    What only whoever deploys can say is null.
    """
    about, protects = certificate["about"], certificate["protects"]
    unit, model = protects["unit"], protects["model"]
    spent = (certificate["people"] or {}).get("spent") or {}
    exact = {"epsilon": spent.get("largest"), "delta": spent.get("delta")}
    laws = sorted({law["kind"] for m in certificate["messages"] for law in m["law"]})
    exposure = "; ".join(certificate["not_private"])
    composition = "sequential: what one unit spends is the sum over its messages"
    random = "the operating system" if spent else "a seed, which removes the noise"
    variant = "Pure DP" if exact["delta"] == "0" else "Approximate DP"
    guide = exact | {
        "unit_of_privacy": unit,
        "adjacency": protects["adjacency"],
        "variant": variant if spent else None,
        "trust_model": model,
        "mechanisms": laws,
        "correctness": "integer samplers; each law's loss can be computed anew",
        "composition": composition,
        "utility": "see report",
        "bias": None,
        "data_collection": exposure,
        "access_control": protects["senders"],
        "side_channels": f"randomness from {random}; outputs on grids of whole steps",
    }
    unknown = "data_curators description intended_use data_product_region"
    date = str(about["finished"] or about["started"])[:10]
    numbers = {n: float(Fraction(text)) if text else None for n, text in exact.items()}
    deployment = {
        "basic": dict.fromkeys([*unknown.split(), "data_product_sector"])
        | {"name": about["pipeline"], "publication_date": date}
        | {"data_product_type": "Machine learning model"},
        "dp_variant": {
            "variant_name": guide["variant"],
            "data_domain": None,
            "unprotected_quantities": exposure,
        },
        "privacy_loss": {
            "privacy_unit": unit,
            "privacy_unit_details": f"adjacency: {protects['adjacency']}",
            "privacy_parameters": numbers,
            "privacy_parameters_details": composition,
        },
        "deployment_model": {
            "model_name": model.capitalize() if spent else None,
            "release_type": "One release",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "implementation": {"mechanisms": ", ".join(laws), "justification": None},
        "administrative": {"evidence_sources": FILE, "status": "Draft"},
    }
    return {"sp800_226": guide, "registry": {"deployment": deployment}}


def sign_certificate(
    certificate: Json, sign: Callable[[str, bytes], tuple[str, str]]
) -> str:
    """Return the text of a certificate's file; ``sign`` returns key and signature."""
    plain = json.dumps(certificate, allow_nan=False, separators=(",", ":"))
    key, signature = sign(PURPOSE, plain.encode("ascii"))
    whole_file = {"certificate": certificate, "key": key, "signature": signature}
    return json.dumps(whole_file, indent=1) + "\n"


def write_certificate(project: Project, record: RunRecord, folder: Path) -> list[str]:
    """Write a run's certificate and what checks it; return what that says, by line."""
    key = server_key(project)
    text = sign_certificate(make_certificate(project, record), key.sign_octets)
    try:
        lines = verify.check(text.encode(), key.fingerprint)
    except verify.RefusedError as error:
        raise InternalError(f"the certificate does not hold: {error}") from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in CHECKERS:
            program = files(__package__ or "") / name
            write_text(folder / name, program.read_text("utf-8"))
        write_text(folder / FILE, text)
    except OSError as error:
        raise UserError(f"--out {folder}: {error.strerror or error}.") from None
    return [f"{folder / FILE}: {lines[1]}", f"signer {key.fingerprint}"]
