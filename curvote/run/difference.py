"""Differences between two runs as one value, which the command line and page show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curvote.errors import UserError
from curvote.run.changes import KeyChange, SettingChange, changed_keys, changed_settings
from curvote.run.history import RunRecord
from curvote.run.loaded import find_run, require_plan, require_scores
from curvote.run.pages import find_page
from curvote.run.project import Project
from curvote.run.score_changes import (
    ALPHA,
    ScoreChange,
    compare_scores,
    share_replicates,
)


@dataclass(frozen=True)
class RunComparison:
    """The differences between runs ``a`` and ``b``.

    ``same`` counts the cells of equal keys; ``notes`` say what could not be compared
    and how scores were.
    """

    a: RunRecord
    b: RunRecord
    settings: list[SettingChange]
    keys: list[KeyChange]
    same: int
    scores: list[ScoreChange]
    notes: list[str]
    pages: tuple[Path | None, Path | None]

    @property
    def significant(self) -> list[ScoreChange]:
        """The scores that changed beyond chance."""
        return [change for change in self.scores if change.significant]

    @property
    def describe_count(self) -> str:
        """The number of changed scores in words, and the closest if none did."""
        summary = f"{len(self.significant)} of {len(self.scores)} changed beyond chance"
        tested = [change for change in self.scores if change.p is not None]
        if self.significant or not tested:
            return summary
        near = min(tested, key=lambda change: change.p or 0.0)
        where = ", ".join(filter(None, (near.where["method"], str(near.cell))))
        return f"{summary}; the closest has z {near.z:+.1f} ({where})"

    def to_document(self) -> dict[str, Any]:
        """Return the document that ``diff --json`` prints."""
        settings = [{"path": s.path, "a": s.a, "b": s.b} for s in self.settings]
        return {
            "a": _record_values(self.a),
            "b": _record_values(self.b),
            "configuration": settings,
            "keys": [renamed.row() for renamed in self.keys],
            "keys_equal": self.same,
            "scores": [change.row() for change in self.scores],
            "notes": self.notes,
            "figures": [str(page) if page else None for page in self.pages],
        }


def compare_runs(project: Project, a: str, b: str) -> RunComparison:
    """Compare two runs, each named by its id or by its pipeline.

    UserError: there is no such run, or it could not even be planned.
    """
    first, second = find_run(project, a), find_run(project, b)
    for run in (first, second):
        require_plan(run)
    keys, same = changed_keys(project, first, second)
    scores, notes = _compare_scores(project, first, second)
    return RunComparison(
        a=first,
        b=second,
        settings=changed_settings(first, second),
        keys=keys,
        same=same,
        scores=scores,
        notes=notes,
        pages=(find_page(project, first), find_page(project, second)),
    )


def _compare_scores(
    project: Project, first: RunRecord, second: RunRecord
) -> tuple[list[ScoreChange], list[str]]:
    """Return the score changes of two runs, and notes on the comparison."""
    modes = {run.config.get("mode") for run in (first, second)}
    if "production" in modes:
        return [], ["no scores: the truth of a release is not known."]
    unfinished = [r.id for r in (first, second) if r.status != "completed"]
    if unfinished:
        return [], [f"no scores: {', '.join(unfinished)} did not end."]
    try:
        for run in (first, second):
            require_scores(project, run)
        changes = compare_scores(project, first, second)
    except UserError as error:
        return [], [f"no scores: {error}"]
    return changes, [_describe_test(first, second, changes)] if changes else [
        "no score is in both."
    ]


def _describe_test(
    first: RunRecord, second: RunRecord, changes: list[ScoreChange]
) -> str:
    """Return a description of the test and of a change beyond chance."""
    n = changes[0].n
    if share_replicates(first, second) and len(n) == 1:
        test = f"paired, {n[0]} shared replicates (same seed and source)"
    else:
        test = f"Welch, {' and '.join(map(str, n))} independent replicates"
    tested = sum(change.p is not None for change in changes)
    if not tested:
        return f"{test}."
    return (
        f"{test}. Beyond chance: by Student's law, with Holm's correction for the"
        f" {tested} that can be tested; if none had changed, any would be called so in"
        f" at most {100 * ALPHA:g} % of comparisons."
    )


def _record_values(record: RunRecord) -> dict[str, Any]:
    names = ("id", "pipeline", "started", "status", "overrides")
    return {name: getattr(record, name) for name in names}
