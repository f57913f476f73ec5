"""Release sessions for clients on this machine: reserve, draw, publish, confirm.

One rename publishes; it is the moment at which noise leaves. Before it a kill costs
nobody anything: the reservation is taken back. After it nothing is drawn again.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.durable import private_folder, sync_folder
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.chain.stage import stage_functions
from curvote.ledger.book import Ledger
from curvote.messages import stages
from curvote.messages.amplification import task_crowd_size
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import Step, file_digest
from curvote.pipeline.release import evidence, production
from curvote.pipeline.release.production import LOST_ARTIFACT, release_of
from curvote.pipeline.store import locations
from curvote.pipeline.store.artifacts import (
    MANIFEST,
    Artifact,
    artifact,
    commit,
    open_to_readers,
    write_json,
)
from curvote.wire.task import AnyTask

Compute = Callable[[], Path]


def release_step(
    project: Project, step: Step, target: Path, compute: Compute
) -> Artifact:
    """Return the artifact of a release, which is drawn at most once.

    ``compute`` makes the finished temporary folder. UserError: the ledger is not the
    one that counted earlier releases, a client has no room (nothing is drawn), or the
    release is spent and its artifact is not there.
    """
    release_facts = step.components["release"]
    witnesses = release_facts["witnesses"]
    with (
        hold_ledger(project),
        _open_ledger(project, witnesses, release_facts["population"]) as ledger,
        _copies_updated(project, ledger, witnesses),
    ):
        settle_release(ledger, project, step, target)
        if locations.artifact_exists(target):
            return Artifact(target)
        temporary = locations.temporary_folder(project, target)
        temporary.mkdir(mode=0o700)  # what is not published is nobody's to read
        sync_folder(temporary.parent)
        try:
            _reserve_release(ledger, project, step)
            # Before anything is drawn.
            evidence.update_copies(project, ledger, witnesses)
            artifact = commit(_with_chain_head(compute(), ledger), target)
        except BaseException:
            _cancel_reservation(ledger, step.key, target, temporary)
            raise
        _confirm_release(ledger, project, step.key, artifact)
    return artifact


def _open_ledger(project: Project, witnesses: Sequence[str], population: str) -> Ledger:
    evidence.refuse_incomplete_ledger(project, witnesses, {population})
    return Ledger(project.ledger)


@contextmanager
def hold_ledger(project: Project, *, exclusive: bool = False) -> Iterator[None]:
    """Hold the lock of the ledger's file; ``alone``: to replace the file.

    UserError: a release is going on, so that nothing can take its ledger's place.
    """
    locks = private_folder(project.state) / "locks"
    locks.mkdir(exist_ok=True)
    with (locks / "ledger").open("w") as handle:
        kind = fcntl.LOCK_EX | fcntl.LOCK_NB if exclusive else fcntl.LOCK_SH
        try:
            fcntl.flock(handle, kind)
        except BlockingIOError:
            raise UserError(
                "a release is going on, and its ledger stays where it is meanwhile."
                " Nothing was changed; give the command again when the run has ended."
            ) from None
        yield


@contextmanager
def _copies_updated(
    project: Project, ledger: Ledger, witnesses: Sequence[str]
) -> Iterator[None]:
    """Update all copies before and after; one that is not writable stops it."""
    evidence.update_copies(project, ledger, witnesses)
    try:
        yield
    finally:
        evidence.update_copies(project, ledger, witnesses)


def _with_chain_head(folder: Path, ledger: Ledger) -> Path:
    """Add the head of the ledger's chain to a finished manifest."""
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    sequence, head = ledger.top()
    manifest["release"] |= {"head": head, "sequence": sequence}
    write_json(folder / MANIFEST, manifest)
    return folder


def settle_release(ledger: Ledger, project: Project, step: Step, target: Path) -> None:
    """Make ledger and store consistent after an interrupted release.

    Published: confirm. Only a temporary folder: take the reservation back, then delete
    it; if it was finished for an object store, tables may be there already: the rest
    follows. Neither: nobody knows, so it counts as spent.
    """
    temporary = locations.temporary_folder(project, target)
    entry = ledger.entry(step.key)
    state = entry.state if entry else "cancelled"
    published = Artifact(target).problem(content=True)
    if state == "cancelled":
        if target.exists():
            raise UserError(f"{target} holds a release that the ledger does not know.")
        shutil.rmtree(temporary, ignore_errors=True)
    elif published is None and state == "spent":
        return  # a restored ledger was told of it, and it is there
    elif published is None:
        _confirm_release(ledger, project, step.key, Artifact(target))
    elif state == "reserved" and _may_be_uploaded(temporary, target):
        artifact = commit(_with_chain_head(temporary, ledger), target)
        _confirm_release(ledger, project, step.key, artifact)
    elif state == "reserved" and temporary.exists() and not target.exists():
        _cancel_reservation(ledger, step.key, target, temporary)
    else:
        if state == "reserved":
            ledger.mark_spent(step.key, "neither published nor being made")
        raise UserError(f"{step.name}: {LOST_ARTIFACT}.")


def _cancel_reservation(
    ledger: Ledger, release_id: str, target: Path, temporary: Path
) -> None:
    """Cancel a reservation whose noise never left; then delete its traces."""
    if _may_be_uploaded(temporary, target) or target.exists():
        return
    entry = ledger.entry(release_id)
    if entry and entry.state == "reserved":
        ledger.cancel(release_id)
    with suppress(FileNotFoundError):
        shutil.rmtree(temporary)


def _may_be_uploaded(temporary: Path, target: Path) -> bool:
    """Return whether tables may be on an object store without their manifest."""
    return locations.is_remote(target) and (temporary / MANIFEST).is_file()


def _confirm_release(
    ledger: Ledger, project: Project, release_id: str, artifact: Artifact
) -> None:
    open_to_readers(artifact.path)
    place = str(artifact.path.relative_to(project.root))
    digest = file_digest(artifact.path / MANIFEST)
    ledger.confirm(release_id, place=place, digest=digest)


def _reserve_release(ledger: Ledger, project: Project, step: Step) -> None:
    facts, client_ids = step.components["release"], sender_ids(project, step)
    task = task_of_step(project, step)
    cap = Budget(**facts["cap"])
    production.set_up_cap(ledger, facts["population"], cap)
    n = len(client_ids)
    crowd = task_crowd_size(stages.stage_message(step.params), task, n)
    ledger.reserve(
        step.key,
        client_ids,
        task.cost(),
        population=facts["population"],
        facts=release_facts(step) | {"task": task.digest(), "crowd": crowd},
        limit=cap,
    )


def sender_ids(project: Project, step: Step) -> NDArray[np.int64]:
    """Return the ids (n,) of the clients who send in a step.

    No other column of theirs is read.
    """
    clients = artifact(project, *step.sources["ingest"])
    rows = stages.stored_sending_rows(clients, step.params, (0,))
    parts = clients.shards("clients", (0,), ("client_id",))
    ids: NDArray[np.int64] = np.concatenate([part["client_id"] for part in parts])
    return ids[rows]


def task_of_step(project: Project, step: Step) -> AnyTask:
    """Return the task of a releasing step, made from its inputs."""
    inputs = {n: artifact(project, *at) for n, at in step.sources.items()}
    task: AnyTask = stage_functions(step.stage.module).task(inputs, step.params)
    return task


def release_facts(step: Step) -> dict[str, Any]:
    """Return the ledger's facts of a release that follow from its step alone."""
    step_release = release_of(step)
    return {
        "pipeline": step.components["release"]["pipeline"],
        "stage": step.stage.name,
        "message": step_release.message,
        "cohort": step.components["release"]["cohort"],
        "base": step_release.base,
        "number": step_release.number,
    }


def provenance(step: Step) -> dict[str, Any]:
    """Return the manifest's entry about the origin of a step's messages."""
    if step.release is None:
        return {}
    if step.release.by_envelope:
        return {"round": {"id": step.release.id, "number": step.release.number}}
    return {"release": {"id": step.key, "number": step.release.number}}
