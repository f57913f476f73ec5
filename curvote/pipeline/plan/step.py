"""Steps of a plan, their releases, and what names a step.

A study's key holds code and library versions, so that a change recomputes. In
production that would release again; there the steps up to the last message are named by
(what the pipeline asks, cohort, release number) and are computed once.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from curvote.base.durable import create_empty_file, private_folder
from curvote.chain.axis import REPLICATE, Cell
from curvote.chain.stage import SHARED, Place, Stage, StageContext
from curvote.messages import stages
from curvote.messages.message import messages_of
from curvote.messages.roles import JUDGES, ROLES, publisher_test_mask, split_roles
from curvote.pipeline.config.file import ConfiguredPipeline
from curvote.pipeline.config.project import Project, is_client_side
from curvote.pipeline.config.schema import Pipeline
from curvote.pipeline.config.source import RawInput
from curvote.pipeline.config.yaml_document import as_one_line

Numbers = Callable[[], NDArray[np.int64]]
# Of a long list, as text at once.
_NUMBERS: Final = 1 << 16
LIBRARIES = ("numpy", "scipy", "scikit-learn")


def json_digest(values: Any) -> str:
    """Return the SHA-256 of plain JSON values, whatever the order of their keys."""
    text = json.dumps(values, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def step_key(components: Mapping[str, Any]) -> str:
    """Return the key of a step: the start of its components' digest."""
    return json_digest(components)[:32]


def lists_digest(texts: Mapping[str, str], lists: Mapping[str, Numbers]) -> str:
    """Return the `of_json` digest of texts and long lists, without a copy."""
    total = hashlib.sha256(b"{")
    for place, name in enumerate(sorted([*texts, *lists])):
        total.update(f"{',' * bool(place)}{json.dumps(name)}:".encode())
        parts = _parts(lists[name]()) if name in lists else [json.dumps(texts[name])]
        for part in parts:
            total.update(part.encode())
    total.update(b"}")
    return total.hexdigest()


def _parts(numbers: NDArray[np.int64]) -> Iterator[str]:
    yield "["
    for start in range(0, len(numbers), _NUMBERS):
        part = numbers[start : start + _NUMBERS].tolist()
        yield "," * bool(start) + json.dumps(part, separators=(",", ":"))[1:-1]
    yield "]"


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def library_versions(more: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of Python and of the libraries numbers depend on."""
    names = (*LIBRARIES, *more)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"python": python} | {name: _version(name) for name in names}


_version = cache(version)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield all that differs between the components of two keys, most telling first."""
    for name, before, now in _changed_values(old["params"], new["params"]):
        for path, was, will in _nested_changes(name, before, now):
            yield f"parameter {path} {as_one_line(was)} -> {as_one_line(will)}"
    if old.get("raw") != new.get("raw"):
        keyed = any(isinstance(entry, dict) for entry in new.get("raw", {}).values())
        yield "the raw file changed" + ", or data/state/digest.key" * keyed
    if any(isinstance(code, dict) for code in old["code"].values()):
        differing = list(_changed_values(_flat(old["code"]), _flat(new["code"])))
        # What only one of them reaches is no reason but where it differs alone: it
        # follows from a parameter, or from what is common to both.
        common = [name for name, before, now in differing if before and now]
        alone = old["params"] == new["params"]
        for name in common or [name for name, _, _ in differing if alone]:
            yield f"code {name} changed"
    else:
        yield "an earlier curvote stored it under another kind of key"
    for name, before, now in _changed_values(old["versions"], new["versions"]):
        yield f"library {name} {before} -> {now}"
    for name, _, _ in _changed_values(old["inputs"], new["inputs"]):
        yield f"input {name} changed"
    if old["contract"] != new["contract"]:
        yield f"contract {old['contract']} -> {new['contract']}"


def _flat(code: Mapping[str, Any]) -> dict[str, str]:
    """Return digests by whole names; an entry of a registry stands for itself."""
    return {
        f"{place}.{name}".strip("."): digest
        for place, part in code.items()
        for name, digest in (part if isinstance(part, dict) else {"": part}).items()
    }


def _changed_values(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield name, old.get(name), new.get(name)


def _nested_changes(name: str, before: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key, was, will in _changed_values(before, now):
            yield from _nested_changes(f"{name}.{key}", was, will)
    else:
        yield name, before, now


# The form in which tables are stored: part of every key.
VERSION: Final = 4


@dataclass(frozen=True)
class Release:
    """A message that leaves clients in a production step, and its number.

    ``base`` names (what is asked, cohort); ``number`` counts its releases from 1.
    """

    message: str
    base: str
    number: int
    by_envelope: bool

    @property
    def id(self) -> str:
        """The name of this release: its base and number."""
        return f"{self.base}-{self.number}"


@dataclass(frozen=True)
class ReleaseState:
    """The state of releases before a plan: cohort, release numbers, envelopes.

    ``number`` is the release number of a base, ``accepted`` the digest of a round's
    accepted envelopes, None while it is not complete. ``witnesses`` are the paths of
    the files outside the project to which a release here is written.
    """

    cohort: str
    number: Callable[[str], int]
    accepted: Callable[[str], str | None]
    witnesses: tuple[str, ...] = ()


@dataclass(frozen=True)
class EarlierArtifact:
    """An artifact of the same step with another number of replicates.

    The first ``reused_count`` of them are taken over, none of which is computed again.
    """

    key: str
    count: int
    reused_count: int


@dataclass(frozen=True)
class Step:
    """One artifact of a plan: its stage, key, inputs, action and reasons.

    Its tables repeat over ``index``, of these ``sizes``, at ``places``. ``private``
    says that its noise is nobody's to remove: real releases, not a study, whose noise
    comes from its seed. ``unpublished`` says that records stand behind it which nobody
    published. ``frozen`` means that it is made once, whatever code or libraries become,
    because a release was or will be made from it. ``also`` are more reasons to run it;
    what ``earlier`` names is taken over.
    """

    stage: Stage
    cell: Cell
    key: str
    components: dict[str, Any]
    inputs: dict[str, str]
    index: tuple[str, ...]
    sizes: Place
    places: tuple[Place, ...]
    raw: tuple[RawInput, ...] = ()
    action: str = "run"
    reason: str = ""
    also: tuple[str, ...] = ()
    forced: bool = False
    release: Release | None = None
    frozen: bool = False
    private: bool = False
    unpublished: bool = False
    earlier: EarlierArtifact | None = None

    @property
    def id(self) -> tuple[str, str]:
        """The stage and the key, shared by cells that are computed alike."""
        return self.stage.name, self.key

    @property
    def reported_action(self) -> str:
        """The action as plans and records report it; "copy" if nothing is computed.

        So it is where all replicates are taken over from a longer study.
        """
        earlier = self.earlier
        all_reused = earlier is not None and earlier.reused_count == self.sizes[0]
        return "copy" if all_reused and self.action == "run" else self.action

    @property
    def sensitivity(self) -> str:
        """The content of the tables: "raw", "noised" or "public".

        All is public in a study of simulated people or of a published file.
        """
        if not self.unpublished:
            return "public"
        return "raw" if is_client_side(self.stage.side) else "noised"

    @property
    def owner_only(self) -> bool:
        """Whether only the project's owner may read the tables.

        So it is on the clients' side, and where a seed removes the noise of records
        that nobody published.
        """
        removable = self.unpublished and not self.private
        return removable or is_client_side(self.stage.side)

    @property
    def sources(self) -> dict[str, tuple[str, str]]:
        """The (stage, key) of each input, by the input's name."""
        return {n: (n.partition("@")[0], key) for n, key in self.inputs.items()}

    @property
    def name(self) -> str:
        """The stage, with its cell if it has one."""
        return f"{self.stage.name} {self.cell}".strip()

    @property
    def params(self) -> dict[str, Any]:
        """The resolved parameters of the stage's functions."""
        params: dict[str, Any] = self.components["params"]
        return params

    def row(self) -> dict[str, Any]:
        """Return the step as ``plan --json`` prints it, with all ``reasons``.

        ``part`` tells apart what one stage computes in several ways: the folder and the
        name of its function, such as ``mrma.score`` and ``mrma.baseline``.
        """
        module, _, function = self.stage.module.partition(":")
        folder = module.split(".")[-2]
        return {
            "stage": self.stage.name,
            "part": f"{folder}.{function}",
            "cell": str(self.cell),
            "key": self.key,
            "action": self.reported_action,
            "reason": self.reason,
            "reasons": [self.reason, *self.also],
        }


Ids = NDArray[np.int64]


def stated_settings(pipeline: Pipeline) -> dict[str, Any]:
    """Return the settings that a pipeline states, without its defaults.

    A later version may bring new settings: their defaults must not rename what was
    released before them.
    """
    return pipeline.model_dump(mode="json", exclude_defaults=True)


@dataclass(frozen=True)
class Population:
    """The clients of a pipeline, whatever their curves look like.

    ``cohort`` is the digest of who plays which role, ``senders`` the ids of those who
    release something, ``everybody`` all ids of the source. Ids are read when they are
    asked for, by ``read``.
    """

    cohort: str
    read: Callable[[], tuple[str, Ids, NDArray[np.bool_]]]

    @property
    def senders(self) -> Ids:
        """The ids of those who release something."""
        _, ids, sending = self.read()
        return ids[sending]

    @property
    def everybody(self) -> Ids:
        """All ids of the source."""
        return self.read()[1]


def find_people(
    project: Project, configured: ConfiguredPipeline, raw: Sequence[RawInput]
) -> Population:
    """Return the clients of a pipeline; ids are read once for each raw file.

    The digest of roles is kept on the clients' side, under the keyed digest of the
    files and of what else decides it.
    """
    pipeline = configured.pipeline
    paths = {file.name: file.path for file in raw}
    read = cache(partial(_assign_cohort, pipeline, paths))
    if not raw:
        return Population(read()[0], read)
    settings = {"population": pipeline.population, "seed": pipeline.seed}
    settings |= {"source": pipeline.source, "clients": pipeline.clients.model_dump()}
    files = {file.name: file.public_digest for file in raw}
    name = json_digest({"asked": settings, "files": files})
    place, cohort = project.clients / "cohorts" / f"{name}.json", None
    with suppress(OSError, ValueError, KeyError, TypeError):
        cohort = json.loads(place.read_text(encoding="utf-8"))["cohort"]
    if not isinstance(cohort, str):
        cohort = read()[0]
        with suppress(OSError):  # it is read again then
            private_folder(place.parents[1])
            private_folder(place.parent)
            aside = create_empty_file(place.with_name(f".{place.name}.{uuid4().hex}"))
            aside.write_text(json.dumps({"cohort": cohort}), encoding="utf-8")
            aside.replace(place)
    return Population(cohort, read)


def _assign_cohort(
    pipeline: Pipeline, paths: Mapping[str, str]
) -> tuple[str, Ids, NDArray[np.bool_]]:
    """Return the digest of the roles, all ids (n,) and who sends (n,).

    The source's ids are read for it, and not its curves.
    """
    sizes: dict[str, int] = pipeline.clients.model_dump()
    params = {"source": pipeline.source, "clients": sizes, "seed": pipeline.seed}
    params["raw.paths"] = paths
    grouped = bool(pipeline.source.get("groups"))
    wanted = ["client_id", "part", *["group"] * grouped]
    if stages.is_simulated(params):
        context = StageContext("ingest", (0,), (1,), {}, params, {})
        parts = [stages.ingest(context)["clients"]]
    else:
        parts = [
            {name: values for name, values in part.items() if name in wanted}
            for part in stages.client_groups(params)
        ]
    names = [name for name in wanted if name in parts[0]]
    who = {name: np.concatenate([part.pop(name) for part in parts]) for name in names}
    ids, groups = who["client_id"], who.get("group")
    roles = split_roles(
        pipeline.seed, 0, len(ids), sizes, groups, test_mask=publisher_test_mask(who)
    )
    # A cohort without judges is named as it was before there were any.
    there = (r for r in ROLES if r not in JUDGES.roles or len(roles[r]))
    members = {role: partial(_sorted_ids, ids, roles[role]) for role in there}
    cohort = lists_digest({"population": pipeline.population}, members)
    sending = np.zeros(len(ids), dtype=bool)
    for message in messages_of(pipeline.protocol).values():
        sending[message.senders.rows(roles)] = True
    return cohort, ids, sending


def _sorted_ids(ids: Ids, rows: NDArray[np.int64]) -> Ids:
    selected = ids[rows]
    selected.sort()
    return selected


StepId = tuple[str, str]
# How often a study repeats itself, as stages with that index would read it.
REPLICATES_KEY = f"{REPLICATE.name}s"


@dataclass(frozen=True)
class Sibling:
    """The key of a step with ``count`` replicates; ``same``: rows are equal.

    They are not where a stage looks over all replicates, or reads what such a one made.
    """

    key: str
    count: int
    same: bool


def has_replicates(step: Step) -> bool:
    """Return whether each replicate of a study's step has rows of its own."""
    replicated = step.index[:1] == (REPLICATE.name,) and step.places[:1] != (SHARED,)
    return replicated and not step.private


def sibling_steps(steps: Sequence[Step], count: int) -> dict[StepId, Sibling]:
    """Return the siblings of a plan's steps with ``count`` replicates.

    ``steps`` are all of a plan: inputs come before what reads them.
    """
    by_step: dict[StepId, Sibling] = {}
    for step in steps:
        siblings = {name: by_step[source] for name, source in step.sources.items()}
        inputs = {name: sibling.key for name, sibling in siblings.items()}
        counted = {REPLICATES_KEY: count} if REPLICATES_KEY in step.params else {}
        params = step.params | counted
        unchanged = inputs == step.inputs and params == step.params
        components = step.components | {"params": params, "inputs": inputs}
        key = step.key if unchanged else step_key(components)
        same = unchanged or has_replicates(step)
        same = same and all(sibling.same for sibling in siblings.values())
        by_step[step.id] = Sibling(key, count, same)
    return by_step
