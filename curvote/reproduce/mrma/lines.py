"""Lines of error against epsilon: a panel a learner, a line a method, split or case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from curvote.chain.measure import Look
from curvote.reporting import methods, style
from curvote.reproduce.drawing import PlotLine, distinct_values, line_panels
from curvote.reproduce.gather import Evidence
from curvote.reproduce.mrma.printed import printed_cases
from curvote.reproduce.mrma.rows import USEFUL
from curvote.reproduce.rows import Row, select

_SPLITS = {
    "clients": Look("#d55e00", "o", width=2.4, size=6, above=6),
    "budget": Look("#0072b2", "s", width=1.6),
    "single": Look("#009e73", "^", "--", width=1.6, size=5.5),
}
_LABELS = {
    "clients": "splitting clients",
    "budget": "splitting the budget",
    "single": "each server alone",
}
_DASHES = {"budget": "--", "single": ":"}
_RANDOM = "2"  # the group whose slopes point anywhere
_CASES = (
    Look("#d55e00", "o", above=4),
    Look("#0072b2", "s", above=4),
    Look("#009e73", "^", size=5, above=4),
    Look("#cc79a7", "D", size=4, above=4),
    Look("#8a6a4a", "v", size=5, above=4),
)
_SIZES = ("N0", "N1", "n0", "n1", "B")


def method_figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw figures 2, 4, 5: a panel a learner, a line a method."""
    names = distinct_values(rows, "learner")
    return line_panels({name: _method_lines(rows, name) for name in names})


def _method_lines(rows: Sequence[Row], learner: str) -> list[PlotLine]:
    selected = [row for row in rows if row["learner"] in {learner, None}]
    return [
        PlotLine(
            methods.find_method(method).label,
            methods.series_look(method),
            select(selected, method=method),
        )
        for method in distinct_values(selected, "method")
    ]


def split_figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw figure 3: the useful groups' error by split, group 2 in grey."""
    return line_panels(
        {n: _split_lines(rows, n) for n in distinct_values(rows, "learner")}
    )


def _split_lines(rows: Sequence[Row], learner: str) -> list[PlotLine]:
    selected = select(rows, learner=learner)
    return [
        _split_line(group, split, select(selected, group=group, split=split))
        for group in (USEFUL, _RANDOM)
        for split in distinct_values(selected, "split")
    ]


def _split_line(group: str, split: str, rows: Sequence[Row]) -> PlotLine:
    look = _SPLITS.get(split, methods.OTHER_LOOK)
    if group == USEFUL:
        return PlotLine(_LABELS.get(split, split), look, rows)
    dash = _DASHES.get(split, "-")
    grey = replace(look, colour=style.UNUSED, marker="", line=dash, width=1.1, above=2)
    return PlotLine(f"group 2, {split}", grey, rows)


def case_figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw tables A.2 and A.3: a panel a learner and method, a line a case."""
    pairs = dict.fromkeys((row["learner"], row["method"]) for row in rows)
    return line_panels(
        {
            f"{learner}, {methods.find_method(method).label}": _case_lines(
                rows, select(rows, learner=learner, method=method)
            )
            for learner, method in pairs
        },
        columns=len(distinct_values(rows, "method")),
    )


def _case_lines(rows: Sequence[Row], selected: Sequence[Row]) -> list[PlotLine]:
    settings = distinct_values(rows, "setting")
    looks = dict(zip(settings, _CASES, strict=False))
    other = replace(methods.OTHER_LOOK, above=4)
    return [
        PlotLine(
            _case_label(case), looks.get(case, other), select(selected, setting=case)
        )
        for case in settings
    ]


def _case_label(setting: str) -> str:
    case = setting.removeprefix("case=")
    sizes = printed_cases().get(case)
    if sizes is None:
        return setting
    return f"case {case}: " + ", ".join(f"{name} {sizes[name]}" for name in _SIZES)
