"""Tables A.2 and A.3: error against epsilon for ways to divide the clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from curvote.chain.measure import Look
from curvote.reporting import methods
from curvote.reproduce.drawing import Line, against_epsilon, distinct
from curvote.reproduce.mrma.gather import Evidence
from curvote.reproduce.mrma.printed import cases
from curvote.reproduce.rows import Row

_LOOKS = (
    Look("#d55e00", "o"),
    Look("#0072b2", "s"),
    Look("#009e73", "^", size=5),
    Look("#cc79a7", "D", size=4),
    Look("#8a6a4a", "v", size=5),
)
_SIZES = ("N0", "N1", "n0", "n1", "B")


def figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel for each learner and method, a line for each case."""
    pairs = dict.fromkeys((row["learner"], row["method"]) for row in rows)
    settings = distinct(rows, "setting")
    looks = dict(zip(settings, _LOOKS, strict=False))
    return against_epsilon(
        {
            f"{learner}, {methods.method_of(method).label}": [
                _line(
                    rows, setting, (learner, method), looks.get(setting, methods.OTHER)
                )
                for setting in settings
            ]
            for learner, method in pairs
        },
        columns=len(distinct(rows, "method")),
    )


def _line(rows: Sequence[Row], setting: str, pair: tuple[str, str], look: Look) -> Line:
    mine = [
        row
        for row in rows
        if row["setting"] == setting and (row["learner"], row["method"]) == pair
    ]
    return Line(_label(setting), replace(look, above=4), mine)


def _label(setting: str) -> str:
    """Return the case and its sizes as the paper's table lists them."""
    case = setting.removeprefix("case=")
    known = cases().get(case)
    if known is None:
        return setting
    return f"case {case}: " + ", ".join(f"{name} {known[name]}" for name in _SIZES)
