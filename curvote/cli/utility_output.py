"""Output of `curvote utility`: one JSON document; or table, sentences and figure."""

from __future__ import annotations

import math
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import typer
from rich.table import Table

from curvote.base.errors import UserError
from curvote.cli.terminal import make_console
from curvote.systems.utility.method.deployment import OUTPUT
from curvote.systems.utility.method.measurement import Row
from curvote.systems.utility.request import Analysis, DeploymentRows

# The deployments of a total that the table shows; --json prints every one.
DISPLAYED_DEPLOYMENTS: Final = 3
COLUMNS = 12  # whose worth is told, each by itself
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
    rows: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for line in analysis.lines:
        rows[line.deployment.free] += map(asdict, line.rows)
    return {
        "model": {
            "kind": described.kind,
            "classes": list(described.classes),
            "features": list(described.features),
            "evidence": weakest_evidence(analysis),
        },
        "records": analysis.ready.setting.n,
        "floors": rows[True],
        "rows": rows[False],
        "recommendation": last.as_json(),
    }


def weakest_evidence(analysis: Analysis) -> str:
    """Return the weakest evidence among rows whose noise stands before the model."""
    rows = (line.row for line in analysis.lines if not line.deployment.free)
    kinds = [row.evidence for row in rows if row.mechanism != OUTPUT]
    return max(kinds or ["exact"], key=EVIDENCE_RANK.__getitem__)


def print_analysis(analysis: Analysis) -> None:
    """Print the table, and below it the recommendation in words."""
    # The lines of the table: floors, then the best of each total.
    lines = [line for line in analysis.lines if line.deployment.free]
    noised_lines = [line for line in analysis.lines if not line.deployment.free]
    for budget in sorted({line.row.epsilon for line in noised_lines}):
        of_total = [line for line in noised_lines if line.row.epsilon == budget]
        best = sorted(of_total, key=lambda line: -line.row.agreement)
        noised = [line for line in best if line.row.mechanism != OUTPUT]
        equal = [line for line in noised if is_equal_split(line.row)]
        displayed = [*noised[:DISPLAYED_DEPLOYMENTS], *equal[:1]]
        lines += [line for line in noised if line in displayed]
        lines += [line for line in of_total if line.row.mechanism == OUTPUT]
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
            cells = []
            for name in columns:
                value = getattr(row, name)
                text = "" if value is None else f"{value:.3f}"
                if name == "agreement" and row.upper - row.lower > 5e-4:
                    text = f"{text} [{row.lower:.3f}, {row.upper:.3f}]"
                cells.append(text)
            begin = words if row.group is None else f"  of them {row.group}"
            table.add_row(f"{row.epsilon:g}", begin, *cells, row.evidence)
    make_console().print(table)
    # The recommendations, a line for each total without a target, and notes.
    typer.echo("")
    for total, advice in analysis.advice.items():
        at = "" if total is None else f"total epsilon {total:g}: "
        typer.echo(f"{at}{advice.reason}")
    if analysis.ready.sample:
        typer.echo(
            f"{analysis.ready.setting.n} of {analysis.ready.total:,} records, drawn at"
            " random: intervals are of all of them and more like them (--rows N takes"
            " more)."
        )
    setting = analysis.ready.setting
    if 1 < len(setting.sensitive) <= COLUMNS:
        for name, (public, left_out) in setting.column_agreement().items():
            typer.echo(
                f"{name}: agreement {public:.3f} if it alone is public and the others"
                f" are not sent, {left_out:.3f} if it alone is left out"
            )
    weakest = weakest_evidence(analysis)
    if analysis.profile.why and weakest != "exact":
        typer.echo(f"figures are {weakest}, not exact: {analysis.profile.why}")
    typer.echo(
        "agreement: how often the answer is the one without noise, right or wrong;"
        " worst: that of the record that fares worst; bound: a share that is certain;"
        " evidence: whether figures are exact, or drawn. They are about many people:"
        " nobody should choose epsilon, or whether to take part, by their own record."
    )


def is_equal_split(row: Row) -> bool:
    """Return whether every feature has the same epsilon, read raw."""
    shares = set((row.split or {}).values())
    return row.read == "raw" and len(shares) == 1


DOTS = 160
TITLE = 70  # characters of a line


def draw_figure(analysis: Analysis, path: Path) -> Path:
    """Write the figure to ``path`` (PNG) and return the path."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from curvote.papers.figure import log_axis
    from curvote.report import style

    with mpl.rc_context(style.RC):
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        ax = figure.subplots()
        # Each deployment faintly, and the best of each kind at each total.
        faint: dict[str, Any] = {"color": style.UNUSED, "lw": 0.6, "alpha": 0.6}
        noised_lines = [line for line in analysis.lines if not line.deployment.free]
        totals = sorted({line.row.epsilon for line in noised_lines})
        noised = [line for line in noised_lines if line.row.mechanism != OUTPUT]
        label = "every deployment that was looked at"
        ways: dict[str, list[DeploymentRows]] = {}
        for line in noised:
            way = f"{line.row.mechanism} {line.row.split} {line.row.read}"
            ways.setdefault(way, []).append(line)
        for lines in ways.values():
            lines.sort(key=lambda line: line.row.epsilon)
            at = [line.row.epsilon for line in lines]
            marker = "." if len(at) == 1 else None
            agreement = [line.row.agreement for line in lines]
            ax.plot(at, agreement, label=label, marker=marker, **faint)
            label = "_"
        equal = [line for line in noised if is_equal_split(line.row)]
        output = [line for line in noised_lines if line.row.mechanism == OUTPUT]
        for lines, label, ink in (
            (equal, "equal split, the best mechanism", {"color": style.BLUE}),
            (noised, "the best of all", {"color": style.USED, "lw": 2.2}),
            (output, "clients run the model", {"color": style.BROWN, "ls": ":"}),
        ):
            if lines:
                best = [
                    max(x.row.agreement for x in lines if x.row.epsilon == total)
                    for total in totals
                ]
                ax.plot(totals, best, marker="o", ms=4, label=label, **ink)
        log_axis(ax, totals)
        ax.set_xlabel("total epsilon (smaller: more private)")
        styles = {"raw": "-", "decode": "--", "without": "-."}
        words = {"raw": "nothing sent", "decode": "nothing sent, decoded"}
        for row in (line.row for line in analysis.lines if line.deployment.free):
            label = f"{words.get(row.read, 'trained without them')}: epsilon 0"
            ls = styles.get(row.read, ":")
            green: dict[str, Any] = {"color": style.GREEN, "zorder": 1, "lw": 1.2}
            ax.axhline(row.agreement, label=label, ls=ls, **green)
        worst = min(line.row.agreement for line in analysis.lines)
        ax.set_ylim(max(0.0, math.floor(10 * worst - 0.5) / 10), 1.02)
        ax.set_ylabel("agreement with the answer without noise")
        ax.grid(axis="y")
        names = ", ".join(analysis.ready.setting.names)
        title = f"{analysis.ready.described.kind}: {names} noised"
        ax.set_title(textwrap.fill(title, TITLE))
        figure.legend(loc="outside lower center", ncols=2)
        try:
            figure.savefig(path, dpi=DOTS)
        except OSError as error:
            why = error.strerror or error
            raise UserError(f"{path}: {why}; name another by --figure.") from None
    return path
