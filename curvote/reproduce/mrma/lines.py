"""Error against epsilon: a panel a learner, a line a method, a split or a case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from curvote.chain.measure import Look
from curvote.reporting import methods, style
from curvote.reproduce.drawing import Line, against, distinct
from curvote.reproduce.gather import Evidence
from curvote.reproduce.mrma.printed import cases
from curvote.reproduce.mrma.rows import USEFUL
from curvote.reproduce.rows import Row, having

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


def by_method(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw figures 2, 4, 5: every method; one without learner stands in every panel."""
    names = distinct(rows, "learner")
    return against({name: _methods(rows, name) for name in names})


def _methods(rows: Sequence[Row], learner: str) -> list[Line]:
    mine = [row for row in rows if row["learner"] in {learner, None}]
    return [
        Line(
            methods.method_of(method).label,
            methods.look(method),
            having(mine, method=method),
        )
        for method in distinct(mine, "method")
    ]


def by_split(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw figure 3: the useful groups' error by split, and group 2 in grey."""
    return against({n: _splits(rows, n) for n in distinct(rows, "learner")})


def _splits(rows: Sequence[Row], learner: str) -> list[Line]:
    mine = having(rows, learner=learner)
    return [
        _split(group, split, having(mine, group=group, split=split))
        for group in (USEFUL, _RANDOM)
        for split in distinct(mine, "split")
    ]


def _split(group: str, split: str, rows: Sequence[Row]) -> Line:
    look = _SPLITS.get(split, methods.OTHER)
    if group == USEFUL:
        return Line(_LABELS.get(split, split), look, rows)
    dash = _DASHES.get(split, "-")
    grey = replace(look, colour=style.UNUSED, marker="", line=dash, width=1.1, above=2)
    return Line(f"group 2, {split}", grey, rows)


def by_case(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw tables A.2 and A.3: a panel a learner and method, a line a case."""
    pairs = dict.fromkeys((row["learner"], row["method"]) for row in rows)
    return against(
        {
            f"{learner}, {methods.method_of(method).label}": _cases(
                rows, having(rows, learner=learner, method=method)
            )
            for learner, method in pairs
        },
        columns=len(distinct(rows, "method")),
    )


def _cases(rows: Sequence[Row], mine: Sequence[Row]) -> list[Line]:
    settings = distinct(rows, "setting")
    looks = dict(zip(settings, _CASES, strict=False))
    other = replace(methods.OTHER, above=4)
    return [
        Line(_label(case), looks.get(case, other), having(mine, setting=case))
        for case in settings
    ]


def _label(setting: str) -> str:
    case = setting.removeprefix("case=")
    known = cases().get(case)
    if known is None:
        return setting
    return f"case {case}: " + ", ".join(f"{name} {known[name]}" for name in _SIZES)
