"""Changes between two runs: settings, and the keys of their artifacts.

A record alone tells the former; the latter is read from the manifests, which
`curvote gc` may have taken since.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from curvote.chain.axis import Cell
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_one_line
from curvote.pipeline.plan.fingerprint import differences
from curvote.pipeline.store.artifacts import artifact
from curvote.pipeline.store.history import RunRecord

# What these say changes no number of a run.
_NEUTRAL_KEYS: Final = ("description", "schedule")
_MAX_REASONS: Final = 6
_INPUT_PREFIX: Final = "input "
MISSING_ARTIFACT: Final = (
    "unknown: the artifact of {which} is not there, or not any more"
)


@dataclass(frozen=True)
class SettingChange:
    """A dotted key of the configuration with its values in both runs."""

    path: str
    a: Any
    b: Any

    def __str__(self) -> str:
        return f"{self.path} {_format_setting(self.a)} -> {_format_setting(self.b)}"


@dataclass(frozen=True)
class KeyChange:
    """A cell of a stage whose key differs; None: that run has no such cell.

    ``reasons`` are all that differs between the two, in words.
    """

    stage: str
    cell: Cell
    a: str | None
    b: str | None
    reasons: tuple[str, ...]

    def row(self) -> dict[str, Any]:
        """Return the change as ``diff --json`` prints it."""
        cell, reasons = str(self.cell), list(self.reasons)
        values = {"stage": self.stage, "cell": cell, "a": self.a, "b": self.b}
        return values | {"reasons": reasons}


def changed_settings(first: RunRecord, second: RunRecord) -> list[SettingChange]:
    """Return each setting that differs; null and absent are equal."""
    before, after = (dict(_flat_settings(run.config)) for run in (first, second))
    paths = [*before, *(path for path in after if path not in before)]
    changes = (SettingChange(path, before.get(path), after.get(path)) for path in paths)
    return [change for change in changes if change.a != change.b]


def changed_keys(
    project: Project, first: RunRecord, second: RunRecord
) -> tuple[list[KeyChange], int]:
    """Return the cells whose key differs, and the number of other cells."""
    before, after = _step_keys(first), _step_keys(second)
    places = [*after, *(place for place in before if place not in after)]
    changes = [
        KeyChange(stage, cell, a, b, tuple(_key_reasons(project, stage, a, b)))
        for stage, cell in places
        for a, b in [(before.get((stage, cell)), after.get((stage, cell)))]
        if a != b
    ]
    return changes, len(places) - len(changes)


def group_key_changes(keys: Sequence[KeyChange]) -> list[tuple[str, str, str]]:
    """Return (stage, cell, reasons) rows; equal reasons of a stage are merged."""
    rows = []
    for (stage, why), group in groupby(
        keys, lambda change: (change.stage, change.reasons)
    ):
        cells = list(group)
        cell = str(cells[0].cell) if len(cells) == 1 else f"{len(cells)} cells"
        rows.append((stage, cell, "; ".join(why)))
    return rows


def describe_change(earlier: RunRecord | None, later: RunRecord) -> str:
    """Return the difference between a run and the one before, in words.

    Of two runs that were told the same the reasons of the plan are said, if it had any.
    """
    if earlier is None:
        return "the first"
    if not (earlier.config and later.config):
        return (
            f"{'this one' if earlier.config else 'the one before'} could not be planned"
        )
    descriptions = [str(change) for change in changed_settings(earlier, later)]
    if not descriptions and _step_keys(earlier) != _step_keys(later):
        anew = (s["reason"] for s in later.steps if s["action"] == "run")
        descriptions = [
            r for r in dict.fromkeys(anew) if not r.startswith(_INPUT_PREFIX)
        ]
    more = (
        [f"and {len(descriptions) - _MAX_REASONS} more"]
        if len(descriptions) > _MAX_REASONS
        else []
    )
    return ", ".join(descriptions[:_MAX_REASONS] + more) or "nothing"


def _step_keys(record: RunRecord) -> dict[tuple[str, Cell], str]:
    return {(s["stage"], Cell.from_mapping(s["cell"])): s["key"] for s in record.steps}


def _key_reasons(
    project: Project, stage: str, a: str | None, b: str | None
) -> Iterator[str]:
    """Yield the reasons for a changed key; changed inputs only if alone."""
    if a is None or b is None:
        yield "only in B" if a is None else "only in A"
        return
    missing = [
        which for which, key in (("A", a), ("B", b)) if _is_missing(project, stage, key)
    ]
    if missing:
        yield MISSING_ARTIFACT.format(which=" and ".join(missing))
        return
    old, new = (artifact(project, stage, k).manifest["components"] for k in (a, b))
    reasons = list(differences(old, new)) or ["the chain changed"]
    yield from [r for r in reasons if not r.startswith(_INPUT_PREFIX)] or reasons


def _is_missing(project: Project, stage: str, key: str) -> bool:
    return artifact(project, stage, key).problem(content=False) is not None


def _flat_settings(
    values: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if not above and key in _NEUTRAL_KEYS:
            continue
        if isinstance(value, Mapping) and value:
            yield from _flat_settings(value, f"{above}{key}.")
        elif value is not None:
            yield f"{above}{key}", value


def _format_setting(value: Any) -> str:
    return "nothing" if value is None else as_one_line(value)
