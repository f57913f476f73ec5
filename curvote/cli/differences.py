"""Output of `curvote diff`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from curvote.cli.tables import print_rows
from curvote.cli.terminal import relative_to_here
from curvote.pipeline.run.comparison import (
    KeyChange,
    RunComparison,
    ScoreChange,
    group_key_changes,
)
from curvote.pipeline.store.records import RunRecord

_KEY_COLUMNS = ("stage", "cell", "reasons")


def print_comparison(
    comparison: RunComparison, *, every: bool, page: Path | None
) -> None:
    """Print settings, keys, scores and figures; ``every``: equal ones too."""
    for which, run in (("A", comparison.a), ("B", comparison.b)):
        print(f"{which}: {describe_run(run)}")
    print("\nconfiguration")
    for setting in comparison.settings:
        print(f"  {setting}")
    print("" if comparison.settings else "  equal\n", end="")
    print(f"\nkeys: {len(comparison.keys)} differ, {comparison.same} are equal")
    if comparison.keys:
        print_rows(_key_rows(comparison.keys, every), _KEY_COLUMNS)
    _print_scores(comparison, every)
    _print_figures(comparison, page)


def describe_run(run: RunRecord) -> str:
    """Return a run in one line: id, pipeline, overrides, time and state."""
    options = "".join(f" --set {override}" for override in run.overrides)
    return f"{run.id}, {run.pipeline}{options}, {run.started}, {run.status}"


def _key_rows(keys: Sequence[KeyChange], every: bool) -> list[dict[str, Any]]:
    """Return a row for each stage and its reasons, or for each cell."""
    all_rows = [
        (change.stage, str(change.cell), "; ".join(change.reasons)) for change in keys
    ]
    rows = all_rows if every else group_key_changes(keys)
    return [dict(zip(_KEY_COLUMNS, row, strict=True)) for row in rows]


def _print_scores(comparison: RunComparison, every: bool) -> None:
    print("\nscores: " + " ".join(comparison.notes))
    if not comparison.scores:
        return
    print(comparison.describe_count)
    changes = comparison.scores if every else comparison.significant
    if changes:
        columns = ("cell", "method", "metric", "A", "B", "B - A", "se", "z", "verdict")
        print_rows([_score_row(change) for change in changes], columns)


def _score_row(change: ScoreChange) -> dict[str, Any]:
    values = {"A": change.a, "B": change.b, "B - A": change.difference}
    formatted = {name: change.format_value(value) for name, value in values.items()}
    se = "" if change.se is None else change.format_value(change.se)
    z = "" if change.z is None else f"{change.z:+.1f}"
    place = {"cell": str(change.cell), "method": change.where["method"]}
    test_values = {
        "metric": change.metric.name,
        "se": se,
        "z": z,
        "verdict": change.verdict,
    }
    return place | formatted | test_values


def _print_figures(comparison: RunComparison, page: Path | None) -> None:
    print("\nfigures")
    if page is not None:
        print(f"  side by side: {relative_to_here(page)}")
        return
    for which, run, own_page in zip(
        "AB", (comparison.a, comparison.b), comparison.pages, strict=True
    ):
        print(
            f"  {which}:"
            f" {relative_to_here(own_page) if own_page else _missing_page(run)}"
        )
    print("  `--page` draws them side by side")


def _missing_page(run: RunRecord) -> str:
    if run.status != "completed":
        return f"none: the run is {run.status}"
    return f"none; `curvote report {run.pipeline} --run {run.id}` draws them"
