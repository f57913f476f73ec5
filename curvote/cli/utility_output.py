"""Output of `curvote utility`: one JSON document, or a table and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import typer
from rich.table import Table

from curvote.cli.terminal import make_console
from curvote.systems.utility.method.deployment import OUTPUT
from curvote.systems.utility.method.measurement import Row
from curvote.systems.utility.request import Analysis, DeploymentRows

# The deployments of a total that the table shows; --json prints every one.
DISPLAYED_DEPLOYMENTS: Final = 3
EVIDENCE_RANK: Final = {"exact": 0, "bracket": 1, "draws": 2}
COLUMN_HEADS: Final = {
    "agreement": "agreement",
    "worst": "worst",
    "under_target": "under target",
    "bound": "bound",
    "claimed": "claimed",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced",
}


def analysis_document(analysis: Analysis) -> dict[str, Any]:
    """Return the analysis as plain JSON values."""
    described = analysis.ready.described
    last = list(analysis.advice.values())[-1]
    return {
        "model": {
            "kind": described.kind,
            "classes": list(described.classes),
            "features": list(described.features),
            "evidence": weakest_evidence(analysis),
        },
        "records": analysis.ready.setting.n,
        "floors": [row.as_json() for row in analysis.rows(free=True)],
        "rows": [row.as_json() for row in analysis.rows(free=False)],
        "recommendation": last.as_json(),
    }


def weakest_evidence(analysis: Analysis) -> str:
    """Return the weakest evidence among rows whose noise stands before the model."""
    kinds = [
        row.evidence for row in analysis.rows(free=False) if row.mechanism != OUTPUT
    ]
    return max(kinds or ["exact"], key=EVIDENCE_RANK.__getitem__)


def print_analysis(analysis: Analysis) -> None:
    """Print the table, and below it the recommendation in words."""
    lines = list(_displayed_lines(analysis.lines))
    rows = [row for line in lines for row in line.rows]
    columns = [
        name for name in COLUMN_HEADS if any(getattr(r, name) is not None for r in rows)
    ]
    table = Table(box=None, pad_edge=False)
    heads = [COLUMN_HEADS[name] for name in columns]
    for head in ("epsilon", "what is sent", *heads, "evidence"):
        right = head not in {"what is sent", "evidence"}
        table.add_column(head, justify="right" if right else "left")
    for line in lines:
        words = line.deployment.describe(analysis.ready.setting.names)
        if line.deployment.mechanism == OUTPUT:
            words = f"{words} (clients run the model)"
        for row in line.rows:
            table.add_row(*_row_cells(words, row, columns))
    make_console().print(table)
    for sentence in analysis_sentences(analysis):
        typer.echo(sentence)


def _displayed_lines(lines: Sequence[DeploymentRows]) -> Iterator[DeploymentRows]:
    """Yield the lines of the table: floors, then the best of each total."""
    yield from (line for line in lines if line.free)
    noised_lines = [line for line in lines if not line.free]
    for total in sorted({line.row.epsilon for line in noised_lines}):
        lines_of_total = [line for line in noised_lines if line.row.epsilon == total]
        best = sorted(lines_of_total, key=lambda line: -line.row.agreement)
        noised = [line for line in best if line.row.mechanism != OUTPUT]
        equal = [line for line in noised if is_equal_split(line.row)]
        displayed = [*noised[:DISPLAYED_DEPLOYMENTS], *equal[:1]]
        yield from (line for line in noised if line in displayed)
        yield from (line for line in lines_of_total if line.row.mechanism == OUTPUT)


def is_equal_split(row: Row) -> bool:
    """Return whether every feature has the same epsilon, read raw."""
    shares = set((row.split or {}).values())
    return row.read == "raw" and len(shares) == 1


def _row_cells(words: str, row: Row, columns: Sequence[str]) -> Iterator[str]:
    """Yield the cells of a row."""
    yield f"{row.epsilon:g}"
    yield words if row.group is None else f"  of them {row.group}"
    for name in columns:
        value = getattr(row, name)
        text = "" if value is None else f"{value:.3f}"
        if name == "agreement" and row.upper - row.lower > 5e-4:
            text = f"{text} [{row.lower:.3f}, {row.upper:.3f}]"
        yield text
    yield row.evidence


def analysis_sentences(analysis: Analysis) -> Iterator[str]:
    """Yield the recommendations, a line for each total without a target, and notes."""
    yield ""
    for total, advice in analysis.advice.items():
        at = "" if total is None else f"total epsilon {total:g}: "
        yield f"{at}{advice.reason}"
    if analysis.ready.sample:
        total = analysis.ready.total
        yield (
            f"{analysis.ready.setting.n} of {total:,} records, drawn at random:"
            " intervals are of all of them and more like them (--rows N takes more)."
        )
    weakest = weakest_evidence(analysis)
    if analysis.profile.why and weakest != "exact":
        yield f"why {weakest}: {analysis.profile.why}"
    yield (
        "agreement is with the answer without noise, not with the truth. The figures"
        " are a population's: nobody should choose epsilon, or whether to take part, by"
        " that of their own record."
    )
