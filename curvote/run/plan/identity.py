"""What names a step of production: what was asked and who, never who computed it.

A study's key holds code and library versions, so that a change recomputes. In
production that would release again; there the steps up to the last message are named by
(what the pipeline asks, cohort, release number) and are computed once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Here
from curvote.durable import new_file, owner_folder
from curvote.protocols.message import messages
from curvote.protocols.roles import ROLES, set_aside, split
from curvote.protocols.stages import ingest
from curvote.run.config.file import Configured
from curvote.run.config.schema import Pipeline
from curvote.run.config.source import Raw
from curvote.run.plan import fingerprint
from curvote.run.project import Project

Ids = NDArray[np.int64]


def asked(pipeline: Pipeline) -> dict[str, Any]:
    """Return what the pipeline says, without what it leaves to defaults.

    A later version may bring new settings: their defaults must not rename what was
    released before them.
    """
    return pipeline.model_dump(mode="json", exclude_defaults=True)


@dataclass(frozen=True)
class People:
    """The clients of a pipeline, whatever their curves look like.

    ``cohort`` is the digest of who plays which role, ``senders`` the ids of those who
    release something, ``everybody`` all ids of the source. Ids are read when they are
    asked for, by ``read``.
    """

    cohort: str
    read: Callable[[], Who]

    @property
    def senders(self) -> Ids:
        """The ids of those who release something."""
        return self.read().senders

    @property
    def everybody(self) -> Ids:
        """All ids of the source."""
        return self.read().ids


@dataclass(frozen=True, eq=False)
class Who:
    """All ids of a source (n,), the digest of their roles, and who releases (n,)."""

    ids: Ids
    cohort: str
    sending: NDArray[np.bool_]

    @property
    def senders(self) -> Ids:
        """The ids of those who release something."""
        return self.ids[self.sending]


def people(project: Project, configured: Configured, raw: Sequence[Raw]) -> People:
    """Return who takes part: ids are read once for each content of the raw files.

    The digest of roles is kept on the clients' side, under the keyed digest of the
    files and of what else decides it.
    """
    pipeline = configured.pipeline
    read = cache(partial(_read, pipeline, {file.name: file.path for file in raw}))
    if not raw:
        return People(read().cohort, read)
    place = _kept(project, pipeline, raw)
    known = _cohort_in(place)
    if known is None:
        known = read().cohort
        with suppress(OSError):  # it is read again then
            _keep(place, known)
    return People(known, read)


def _kept(project: Project, pipeline: Pipeline, raw: Sequence[Raw]) -> Path:
    """Return where the digest of a cohort is kept, by what decides it."""
    asked = {"population": pipeline.population, "seed": pipeline.seed}
    asked |= {"source": pipeline.source, "clients": pipeline.clients.model_dump()}
    files = {file.name: file.told for file in raw}
    name = fingerprint.of_json({"asked": asked, "files": files})
    return project.clients / "cohorts" / f"{name}.json"


def _keep(place: Path, cohort: str) -> None:
    owner_folder(place.parents[1])
    owner_folder(place.parent)
    aside = new_file(place.with_name(f".{place.name}.{uuid4().hex}"))
    aside.write_text(json.dumps({"cohort": cohort}), encoding="utf-8")
    aside.replace(place)


def _cohort_in(place: Path) -> str | None:
    try:
        found = json.loads(place.read_text(encoding="utf-8"))["cohort"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def _read(pipeline: Pipeline, paths: Mapping[str, str]) -> Who:
    """Read the source's ids, not its curves, and deal the roles."""
    sizes: dict[str, int] = pipeline.clients.model_dump()
    params = {"source": pipeline.source, "clients": sizes, "seed": pipeline.seed}
    params["raw.paths"] = paths
    who = _who(params, grouped=bool(pipeline.source.get("groups")))
    ids, groups = who["client_id"], who.get("group")
    roles = split(pipeline.seed, 0, len(ids), sizes, groups, aside=set_aside(who))
    members = {role: partial(_sorted, ids, roles[role]) for role in ROLES}
    cohort = fingerprint.of_lists({"population": pipeline.population}, members)
    sending = np.zeros(len(ids), dtype=bool)
    for message in messages(pipeline.protocol).values():
        sending[message.senders.rows(roles)] = True
    return Who(ids, cohort, sending)


def _sorted(ids: Ids, rows: NDArray[np.int64]) -> Ids:
    mine = ids[rows]
    mine.sort()
    return mine


def _who(params: Mapping[str, Any], *, grouped: bool) -> Columns:
    """Return what decides who plays which role, without holding all curves."""
    wanted = ["client_id", "part", *["group"] * grouped]
    if ingest.is_simulated(params):
        here = Here("ingest", (0,), (1,), {}, params, {})
        parts = [ingest.one(here)["clients"]]
    else:
        parts = [
            {name: own for name, own in part.items() if name in wanted}
            for part in ingest.members(params)
        ]
    names = [name for name in wanted if name in parts[0]]
    return {name: _joined(parts, name) for name in names}


def _joined(parts: list[Columns], name: str) -> NDArray[Any]:
    """Take a column out of all parts, so that it is held once."""
    return np.concatenate([part.pop(name) for part in parts])
