"""Figure of `curvote utility`: agreement against epsilon, above the floors."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from curvote.base.errors import UserError
from curvote.cli.utility_output import is_equal_split
from curvote.papers.drawing import log_axis
from curvote.report import style
from curvote.systems.utility.analysis import Analysis, DeploymentRows
from curvote.systems.utility.method.deployment import OUTPUT

DOTS = 160
TITLE = 70  # characters of a line
FAINT: dict[str, Any] = {"color": style.UNUSED, "lw": 0.6, "alpha": 0.6}


def draw_figure(analysis: Analysis, path: Path) -> Path:
    """Write the figure to ``path`` (PNG) and return the path."""
    with mpl.rc_context(style.RC):
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        ax = figure.subplots()
        _draw_deployments(ax, analysis)
        _draw_floors(ax, [line for line in analysis.lines if line.free])
        ax.set_ylim(
            max(0.0, math.floor(10 * min(_agreements(analysis.lines)) - 0.5) / 10), 1.02
        )
        ax.set_ylabel("agreement with the answer without noise")
        ax.grid(axis="y")
        names = ", ".join(analysis.ready.setting.names)
        title = f"{analysis.ready.described.kind}: {names} noised"
        ax.set_title(textwrap.fill(title, TITLE))
        figure.legend(loc="outside lower center", ncols=2)
        try:
            figure.savefig(path, dpi=DOTS)
        except OSError as error:
            words = error.strerror or error
            raise UserError(f"{path}: {words}; name another by --figure.") from None
    return path


def _draw_deployments(ax: Axes, analysis: Analysis) -> None:
    """Draw each deployment faintly, and the best of each kind at each total."""
    noised_lines = [line for line in analysis.lines if not line.free]
    totals = sorted({line.row.epsilon for line in noised_lines})
    noised = [line for line in noised_lines if line.row.mechanism != OUTPUT]
    label = "every deployment that was looked at"
    for way in _group_ways(noised):
        at = [line.row.epsilon for line in way]
        marker = "." if len(at) == 1 else None
        ax.plot(at, _agreements(way), label=label, marker=marker, **FAINT)
        label = "_"
    equal = [line for line in noised if is_equal_split(line.row)]
    output = [line for line in noised_lines if line.row.mechanism == OUTPUT]
    _draw_best(
        ax, equal, totals, color=style.BLUE, label="equal split, the best mechanism"
    )
    _draw_best(ax, noised, totals, color=style.USED, lw=2.2, label="the best of all")
    _draw_best(
        ax, output, totals, color=style.BROWN, ls=":", label="clients run the model"
    )
    log_axis(ax, totals)
    ax.set_xlabel("total epsilon (smaller: more private)")


def _group_ways(lines: Sequence[DeploymentRows]) -> list[list[DeploymentRows]]:
    """Return the lines of each way to send, by rising epsilon."""
    ways: dict[str, list[DeploymentRows]] = {}
    for line in lines:
        row = line.row
        ways.setdefault(f"{row.mechanism} {row.split} {row.read}", []).append(line)
    return [
        sorted(lines_of_way, key=lambda line: line.row.epsilon)
        for lines_of_way in ways.values()
    ]


def _agreements(lines: Sequence[DeploymentRows]) -> list[float]:
    """Return the agreement of each line."""
    return [line.row.agreement for line in lines]


def _draw_best(
    ax: Axes, lines: Sequence[DeploymentRows], totals: Sequence[float], **ink: Any
) -> None:
    """Draw the best of some lines at each total, if there are any."""
    if lines:
        shares_by_total = [
            _agreements([x for x in lines if x.row.epsilon == e]) for e in totals
        ]
        ax.plot(
            totals, [max(shares) for shares in shares_by_total], marker="o", ms=4, **ink
        )


def _draw_floors(ax: Axes, lines: Sequence[DeploymentRows]) -> None:
    """Draw the floors as levels."""
    styles = {"raw": "-", "decode": "--", "without": "-."}
    words = {"raw": "nothing sent", "decode": "nothing sent, decoded"}
    for line in lines:
        read = line.row.read
        label = f"{words.get(read, 'trained without them')}: epsilon 0"
        ink: dict[str, Any] = {"color": style.GREEN, "ls": styles.get(read, ":")}
        ax.axhline(line.row.agreement, label=label, zorder=1, lw=1.2, **ink)
