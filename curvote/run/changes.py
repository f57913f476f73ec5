"""What differs between two runs: what they were told, and what names their artifacts.

A record alone tells the former; the latter is read from the manifests, which
`curvote gc` may have taken since.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from curvote.chain.axis import Cell
from curvote.run.config.yaml_lines import in_line
from curvote.run.history import RunRecord
from curvote.run.plan.reasons import differences
from curvote.run.project import Project
from curvote.run.store.artifacts import artifact

# What these say changes no number of a run.
_WORDS: Final = ("description", "schedule")
_TOLD: Final = 6
_FOLLOWS: Final = "input "
GONE: Final = "unknown: the artifact of {which} is not there, or not any more"


@dataclass(frozen=True)
class Setting:
    """A dotted key of the configuration with its values in both runs, None: absent."""

    path: str
    a: Any
    b: Any

    def __str__(self) -> str:
        return f"{self.path} {_shown(self.a)} -> {_shown(self.b)}"


@dataclass(frozen=True)
class Renamed:
    """A cell of a stage whose key differs; None: that run has no such cell.

    ``reasons`` are all that differs between the two, in words.
    """

    stage: str
    cell: Cell
    a: str | None
    b: str | None
    reasons: tuple[str, ...]

    def row(self) -> dict[str, Any]:
        """Return it as ``diff --json`` prints it."""
        cell, reasons = str(self.cell), list(self.reasons)
        own = {"stage": self.stage, "cell": cell, "a": self.a, "b": self.b}
        return own | {"reasons": reasons}


def settings_changed(one: RunRecord, other: RunRecord) -> list[Setting]:
    """Return each setting that differs; what is null and what is absent are alike."""
    before, after = (dict(_leaves(run.config)) for run in (one, other))
    paths = [*before, *(path for path in after if path not in before)]
    found = (Setting(path, before.get(path), after.get(path)) for path in paths)
    return [each for each in found if each.a != each.b]


def keys_changed(
    project: Project, one: RunRecord, other: RunRecord
) -> tuple[list[Renamed], int]:
    """Return the cells whose key differs, in the order of the run; and how many not."""
    before, after = _keys(one), _keys(other)
    places = [*after, *(place for place in before if place not in after)]
    found = [
        Renamed(stage, cell, a, b, tuple(_reasons(project, stage, a, b)))
        for stage, cell in places
        for a, b in [(before.get((stage, cell)), after.get((stage, cell)))]
        if a != b
    ]
    return found, len(places) - len(found)


def grouped(keys: Sequence[Renamed]) -> list[tuple[str, str, str]]:
    """Return (stage, cell, reasons), a row for all cells of a stage with one reason."""
    rows = []
    for (stage, why), group in groupby(keys, lambda one: (one.stage, one.reasons)):
        own = list(group)
        cell = str(own[0].cell) if len(own) == 1 else f"{len(own)} cells"
        rows.append((stage, cell, "; ".join(why)))
    return rows


def from_before(one: RunRecord | None, other: RunRecord) -> str:
    """Return in words what differs between a run and the one before, by records.

    Of two runs that were told the same the reasons of the plan are said, if it had any.
    """
    if one is None:
        return "the first"
    if not (one.config and other.config):
        return f"{'this one' if one.config else 'the one before'} could not be planned"
    told = [str(each) for each in settings_changed(one, other)]
    if not told and _keys(one) != _keys(other):
        anew = (s["reason"] for s in other.steps if s["action"] == "run")
        told = [r for r in dict.fromkeys(anew) if not r.startswith(_FOLLOWS)]
    more = [f"and {len(told) - _TOLD} more"] if len(told) > _TOLD else []
    return ", ".join(told[:_TOLD] + more) or "nothing"


def _keys(record: RunRecord) -> dict[tuple[str, Cell], str]:
    return {(s["stage"], Cell.of(s["cell"])): s["key"] for s in record.steps}


def _reasons(
    project: Project, stage: str, a: str | None, b: str | None
) -> Iterator[str]:
    """Yield the reasons of a cell's own first; what only follows stands alone."""
    if a is None or b is None:
        yield "only in B" if a is None else "only in A"
        return
    gone = [which for which, key in (("A", a), ("B", b)) if _gone(project, stage, key)]
    if gone:
        yield GONE.format(which=" and ".join(gone))
        return
    old, new = (artifact(project, stage, k).manifest["components"] for k in (a, b))
    found = list(differences(old, new)) or ["the chain changed"]
    yield from [r for r in found if not r.startswith(_FOLLOWS)] or found


def _gone(project: Project, stage: str, key: str) -> bool:
    return artifact(project, stage, key).problem(content=False) is not None


def _leaves(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if not above and key in _WORDS:
            continue
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{above}{key}.")
        elif value is not None:
            yield f"{above}{key}", value


def _shown(value: Any) -> str:
    return "nothing" if value is None else in_line(value)
