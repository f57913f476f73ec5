"""The figure of `curvote utility`: agreement against epsilon, over the floors."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from curvote.errors import UserError
from curvote.flows.quantifying.asked import Found, Line
from curvote.flows.quantifying.said import equal_split
from curvote.reporting import style
from curvote.reproduce.drawing import log_axis
from curvote.utility.deployments.deployment import OUTPUT

DOTS = 160
TITLE = 70  # characters of a line
FAINT: dict[str, Any] = {"color": style.UNUSED, "lw": 0.6, "alpha": 0.6}


def draw(found: Found, path: Path) -> Path:
    """Write the figure to ``path`` (PNG) and return it; UserError: it cannot be."""
    with mpl.rc_context(style.RC):
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        ax = figure.subplots()
        _lines(ax, found)
        _floors(ax, [line for line in found.lines if line.free])
        ax.set_ylim(_least(found.lines), 1.02)
        ax.set_ylabel("agreement with the answer without noise")
        ax.grid(axis="y")
        names = ", ".join(found.ready.setting.names)
        title = f"{found.ready.described.kind}: {names} noised"
        ax.set_title(textwrap.fill(title, TITLE))
        figure.legend(loc="outside lower center", ncols=2)
        try:
            figure.savefig(path, dpi=DOTS)
        except OSError as error:
            words = error.strerror or error
            raise UserError(f"{path}: {words}; name another by --figure.") from None
    return path


def _lines(ax: Axes, found: Found) -> None:
    """Draw each deployment faintly, and the best of each kind at each total."""
    sent = [line for line in found.lines if not line.free]
    totals = sorted({line.row.epsilon for line in sent})
    noised = [line for line in sent if line.row.mechanism != OUTPUT]
    label = "every deployment that was looked at"
    for own in _ways(noised):
        at = [line.row.epsilon for line in own]
        marker = "." if len(at) == 1 else None
        ax.plot(at, _shares(own), label=label, marker=marker, **FAINT)
        label = "_"
    equal = [line for line in noised if equal_split(line.row)]
    output = [line for line in sent if line.row.mechanism == OUTPUT]
    _best(ax, equal, totals, color=style.BLUE, label="equal split, the best mechanism")
    _best(ax, noised, totals, color=style.USED, lw=2.2, label="the best of all")
    _best(ax, output, totals, color=style.BROWN, ls=":", label="clients run the model")
    log_axis(ax, totals)
    ax.set_xlabel("total epsilon (smaller: more private)")


def _ways(lines: Sequence[Line]) -> list[list[Line]]:
    """Return the lines of each way to send, by rising epsilon."""
    ways: dict[str, list[Line]] = {}
    for line in lines:
        row = line.row
        ways.setdefault(f"{row.mechanism} {row.split} {row.read}", []).append(line)
    return [sorted(own, key=lambda line: line.row.epsilon) for own in ways.values()]


def _least(lines: Sequence[Line]) -> float:
    """Return where the axis of shares begins: a tenth below the least."""
    return max(0.0, math.floor(10 * min(_shares(lines)) - 0.5) / 10)


def _shares(lines: Sequence[Line]) -> list[float]:
    return [line.row.agreement for line in lines]


def _best(ax: Axes, lines: Sequence[Line], totals: Sequence[float], **ink: Any) -> None:
    """Draw the best of some lines at each total, if there are any."""
    if lines:
        own = [_shares([x for x in lines if x.row.epsilon == e]) for e in totals]
        ax.plot(totals, [max(each) for each in own], marker="o", ms=4, **ink)


def _floors(ax: Axes, lines: Sequence[Line]) -> None:
    """Draw what costs nothing as levels."""
    styles = {"raw": "-", "decode": "--", "without": "-."}
    words = {"raw": "nothing sent", "decode": "nothing sent, decoded"}
    for line in lines:
        read = line.row.read
        label = f"{words.get(read, 'trained without them')}: epsilon 0"
        ink: dict[str, Any] = {"color": style.GREEN, "ls": styles.get(read, ":")}
        ax.axhline(line.row.agreement, label=label, zorder=1, lw=1.2, **ink)
