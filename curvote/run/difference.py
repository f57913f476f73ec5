"""All that differs between two runs, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curvote.errors import UserError
from curvote.run.changes import Renamed, Setting, keys_changed, settings_changed
from curvote.run.history import RunRecord
from curvote.run.loaded import find, need_plan, need_scores
from curvote.run.pages import page_of
from curvote.run.project import Project
from curvote.run.score_changes import ALPHA, Change, score_changes, share_replicates


@dataclass(frozen=True)
class Difference:
    """What differs between runs ``a`` and ``b``.

    ``same`` counts the cells of equal keys; ``notes`` say what could not be compared
    and how scores were.
    """

    a: RunRecord
    b: RunRecord
    settings: list[Setting]
    keys: list[Renamed]
    same: int
    scores: list[Change]
    notes: list[str]
    pages: tuple[Path | None, Path | None]

    @property
    def beyond(self) -> list[Change]:
        """The scores that changed beyond chance."""
        return [change for change in self.scores if change.beyond]

    @property
    def count(self) -> str:
        """How many changed, in words; of none that did, the one that came closest."""
        told = f"{len(self.beyond)} of {len(self.scores)} changed beyond chance"
        known = [change for change in self.scores if change.p is not None]
        if self.beyond or not known:
            return told
        near = min(known, key=lambda change: change.p or 0.0)
        where = ", ".join(filter(None, (near.where["method"], str(near.cell))))
        return f"{told}; the closest has z {near.z:+.1f} ({where})"

    def document(self) -> dict[str, Any]:
        """Return what ``diff --json`` prints."""
        settings = [{"path": s.path, "a": s.a, "b": s.b} for s in self.settings]
        return {
            "a": _told(self.a),
            "b": _told(self.b),
            "configuration": settings,
            "keys": [renamed.row() for renamed in self.keys],
            "keys_equal": self.same,
            "scores": [change.row() for change in self.scores],
            "notes": self.notes,
            "figures": [str(page) if page else None for page in self.pages],
        }


def difference(project: Project, a: str, b: str) -> Difference:
    """Compare two runs, each named by its id or by its pipeline (`loaded.find`).

    UserError: there is no such run, or it could not even be planned.
    """
    one, other = find(project, a), find(project, b)
    for run in (one, other):
        need_plan(run)
    keys, same = keys_changed(project, one, other)
    scores, notes = _scores(project, one, other)
    return Difference(
        a=one,
        b=other,
        settings=settings_changed(one, other),
        keys=keys,
        same=same,
        scores=scores,
        notes=notes,
        pages=(page_of(project, one), page_of(project, other)),
    )


def _scores(
    project: Project, one: RunRecord, other: RunRecord
) -> tuple[list[Change], list[str]]:
    """Return the scores of both, and what is to be said of the comparison."""
    modes = {run.config.get("mode") for run in (one, other)}
    if "production" in modes:
        return [], ["no scores: the truth of a release is not known."]
    unfinished = [r.id for r in (one, other) if r.status != "completed"]
    if unfinished:
        return [], [f"no scores: {', '.join(unfinished)} did not end."]
    try:
        for run in (one, other):
            need_scores(project, run)
        found = score_changes(project, one, other)
    except UserError as error:
        return [], [f"no scores: {error}"]
    return found, [_how(one, other, found)] if found else ["no score is in both."]


def _how(one: RunRecord, other: RunRecord, found: list[Change]) -> str:
    """Say how scores were compared, and what a change beyond chance is."""
    n = found[0].n
    if share_replicates(one, other) and len(n) == 1:
        test = f"paired, {n[0]} shared replicates (same seed and source)"
    else:
        test = f"Welch, {' and '.join(map(str, n))} independent replicates"
    tested = sum(change.p is not None for change in found)
    if not tested:
        return f"{test}."
    return (
        f"{test}. Beyond chance: by Student's law, with Holm's correction for the"
        f" {tested} that can be tested; if none had changed, any would be called so in"
        f" at most {100 * ALPHA:g} % of comparisons."
    )


def _told(record: RunRecord) -> dict[str, Any]:
    names = ("id", "pipeline", "started", "status", "overrides")
    return {name: getattr(record, name) for name in names}
