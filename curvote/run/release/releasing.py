"""A release of clients that are here: reserved, drawn, published, confirmed.

One rename publishes; it is the moment at which noise leaves. Before it a kill costs
nobody anything: the reservation is taken back. After it nothing is drawn again.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.client.ledger import Ledger
from curvote.durable import owner_folder, sync_folder
from curvote.errors import UserError
from curvote.privacy import Budget
from curvote.protocols.outside import crowd_of
from curvote.protocols.stages import released
from curvote.run.places import remote, temporary_of, there
from curvote.run.plan.fingerprint import of_file
from curvote.run.plan.step import Step
from curvote.run.project import Project
from curvote.run.release import caps, evidence, releases_log
from curvote.run.release.production import LOST, needed
from curvote.run.store.artifacts import (
    MANIFEST,
    Artifact,
    artifact,
    commit,
    show,
    write_json,
)
from curvote.task import Asked

Compute = Callable[[], Path]


def release(project: Project, step: Step, target: Path, compute: Compute) -> Artifact:
    """Return the artifact of a release, drawn now or before; the caller holds its lock.

    ``compute`` makes the finished temporary folder. UserError: the ledger is not the
    one that counted earlier releases, a client has no room (nothing is drawn), or the
    release is spent and its artifact is not there.
    """
    told = step.components["release"]
    witnesses = told["witnesses"]
    with (
        in_place(project),
        _opened(project, witnesses, told["population"]) as ledger,
        _copied(project, ledger, witnesses),
    ):
        settle(ledger, project, step, target)
        if there(target):
            return Artifact(target)
        temporary = temporary_of(project, target)
        temporary.mkdir(mode=0o700)  # what is not published is nobody's to read
        sync_folder(temporary.parent)
        try:
            _reserve(ledger, project, step)
            releases_log.catch_up(
                project, ledger, witnesses
            )  # before anything is drawn
            made = commit(_with_top(compute(), ledger), target)
        except BaseException:
            _take_back(ledger, step.key, target, temporary)
            raise
        _confirm(ledger, project, step.key, made)
    return made


def _opened(project: Project, named: Sequence[str], population: str) -> Ledger:
    evidence.refuse_other_ledger(project, named, {population})
    return Ledger(project.ledger)


@contextmanager
def in_place(project: Project, *, alone: bool = False) -> Iterator[None]:
    """Hold the ledger's file where it is; ``alone``: to put another in its place.

    UserError: a release is going on, so that nothing can take its ledger's place.
    """
    locks = owner_folder(project.state) / "locks"
    locks.mkdir(exist_ok=True)
    with (locks / "ledger").open("w") as handle:
        kind = fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH
        try:
            fcntl.flock(handle, kind)
        except BlockingIOError:
            raise UserError(
                "a release is going on, and its ledger stays where it is meanwhile."
                " Nothing was changed; give the command again when the run has ended."
            ) from None
        yield


@contextmanager
def _copied(project: Project, ledger: Ledger, named: Sequence[str]) -> Iterator[None]:
    """Keep all copies in step; one that cannot be written stops it all before."""
    releases_log.catch_up(project, ledger, named)
    try:
        yield
    finally:
        releases_log.catch_up(project, ledger, named)


def _with_top(folder: Path, ledger: Ledger) -> Path:
    """Let a finished manifest say what the ledger must know from now on."""
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    sequence, head = ledger.top()
    manifest["release"] |= {"head": head, "sequence": sequence}
    write_json(folder / MANIFEST, manifest)
    return folder


def settle(ledger: Ledger, project: Project, step: Step, target: Path) -> None:
    """Bring ledger and store together after whatever happened before.

    Published: confirm. Only a temporary folder: take the reservation back, then delete
    it; if it was finished for an object store, tables may be there already: the rest
    follows. Neither: nobody knows, so it counts as spent.
    """
    temporary = temporary_of(project, target)
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
        _confirm(ledger, project, step.key, Artifact(target))
    elif state == "reserved" and _leaving(temporary, target):
        made = commit(_with_top(temporary, ledger), target)
        _confirm(ledger, project, step.key, made)
    elif state == "reserved" and temporary.exists() and not target.exists():
        _take_back(ledger, step.key, target, temporary)
    else:
        if state == "reserved":
            ledger.spend(step.key, "neither published nor being made")
        raise UserError(f"{step.name}: {LOST}.")


def _take_back(ledger: Ledger, release_id: str, target: Path, temporary: Path) -> None:
    """Release a reservation whose noise never left; only then delete its traces."""
    if _leaving(temporary, target) or target.exists():
        return
    entry = ledger.entry(release_id)
    if entry and entry.state == "reserved":
        ledger.cancel(release_id)
    with suppress(FileNotFoundError):
        shutil.rmtree(temporary)


def _leaving(temporary: Path, target: Path) -> bool:
    """Say whether tables may be on an object store already, without their manifest."""
    return remote(target) and (temporary / MANIFEST).is_file()


def _confirm(ledger: Ledger, project: Project, release_id: str, made: Artifact) -> None:
    show(made.path)
    place = str(made.path.relative_to(project.root))
    ledger.confirm(release_id, place=place, digest=of_file(made.path / MANIFEST))


def _reserve(ledger: Ledger, project: Project, step: Step) -> None:
    facts, mine = step.components["release"], senders(project, step)
    task = asked(project, step)
    stated = Budget(**facts["cap"])
    caps.set_up(ledger, facts["population"], stated)
    ledger.reserve(
        step.key,
        mine,
        task.spends(),
        population=facts["population"],
        facts=named(step) | _facts(step, task, len(mine)),
        limit=stated,
    )


def senders(project: Project, step: Step) -> NDArray[np.int64]:
    """Return the ids (n,) of the clients who release in a step.

    No other column of theirs is read.
    """
    clients = artifact(project, *step.sources["ingest"])
    rows = released.senders(clients, step.params, (0,))
    parts = clients.shards("clients", (0,), ("client_id",))
    ids: NDArray[np.int64] = np.concatenate([part["client_id"] for part in parts])
    return ids[rows]


def asked(project: Project, step: Step) -> Asked:
    """Return the task that the clients of a step obey; reads its inputs."""
    inputs = {n: artifact(project, *at) for n, at in step.sources.items()}
    task: Asked = import_module(step.stage.module).task_of(inputs, step.params)
    return task


def named(step: Step) -> dict[str, Any]:
    """Return what the ledger says of a release that its step alone tells."""
    own = needed(step)
    return {
        "pipeline": step.components["release"]["pipeline"],
        "stage": step.stage.name,
        "message": own.message,
        "cohort": step.components["release"]["cohort"],
        "base": own.base,
        "number": own.number,
    }


def _facts(step: Step, task: Asked, n: int) -> dict[str, Any]:
    crowd = crowd_of(released.message(step.params), task, n)
    return {"task": task.digest(), "crowd": crowd}


def provenance(step: Step) -> dict[str, Any]:
    """Return what the manifest says of where the messages of a step came from."""
    if step.release is None:
        return {}
    if step.release.by_envelope:
        return {"round": {"id": step.release.id, "number": step.release.number}}
    return {"release": {"id": step.key, "number": step.release.number}}
