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
from curvote.systems.utility.method.deployment import OUTPUT
from curvote.systems.utility.request import Analysis, DeploymentRows

DOTS = 160
TITLE = 70  # characters of a line
FAINT: dict[str, Any] = {"color": style.UNUSED, "lw": 0.6, "alpha": 0.6}


def draw_figure(analysis: Analysis, path: Path) -> Path:
    """Write the figure to ``path`` (PNG) and return the path."""
    with mpl.rc_context(style.RC):
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        ax = figure.subplots()
        _draw_deployments(ax, analysis)
        styles = {"raw": "-", "decode": "--", "without": "-."}
        words = {"raw": "nothing sent", "decode": "nothing sent, decoded"}
        for row in (line.row for line in analysis.lines if line.free):
            label = f"{words.get(row.read, 'trained without them')}: epsilon 0"
            ink: dict[str, Any] = {"color": style.GREEN, "zorder": 1, "lw": 1.2}
            ls = styles.get(row.read, ":")
            ax.axhline(row.agreement, label=label, ls=ls, **ink)
        least = math.floor(10 * min(_agreements(analysis.lines)) - 0.5) / 10
        ax.set_ylim(max(0.0, least), 1.02)
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


def _draw_deployments(ax: Axes, analysis: Analysis) -> None:
    """Draw each deployment faintly, and the best of each kind at each total."""
    noised_lines = [line for line in analysis.lines if not line.free]
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
        ax.plot(at, _agreements(lines), label=label, marker=marker, **FAINT)
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
                max(_agreements([line for line in lines if line.row.epsilon == total]))
                for total in totals
            ]
            ax.plot(totals, best, marker="o", ms=4, label=label, **ink)
    log_axis(ax, totals)
    ax.set_xlabel("total epsilon (smaller: more private)")


def _agreements(lines: Sequence[DeploymentRows]) -> list[float]:
    """Return the agreement of each line."""
    return [line.row.agreement for line in lines]
