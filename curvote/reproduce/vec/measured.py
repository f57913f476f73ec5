"""Tables 1, 2, 3: networks on images, and accuracy rows and lines of all figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from curvote.chain.measure import Look
from curvote.reporting import style
from curvote.reproduce.drawing import PlotLine, distinct_values
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, score_row, select

AUTO: Final = "auto"
# What a cell has beside its own model, whatever its encoder.
BASELINES: Final = ("majority", "clean", "bayes")
_PLACES: Final = (
    "setting",
    "n_classes",
    "quantity",
    "protocol",
    "learner",
    "method",
    "epsilon",
)
LOOKS: Final = {
    "rr": Look("#6460c8", "x", ":"),
    "lp_2st": Look("#6460c8", "v", "--"),
    "alibi": Look("#cc79a7", "P"),
    "vector": Look(style.BLUE, "s", above=5),
    "oue": Look("#56b4e9", "^"),
    "hadamard": Look(style.GREEN, "D", size=4),
    "subset": Look("#d98c00", "h", "--", above=5),
    AUTO: Look(style.USED, "o", width=2.4, size=6, above=6),
    "majority": Look(style.UNUSED, "", ":"),
    "clean": Look(style.MUTED, "", "--", width=1.2),
    "bayes": Look(style.INK, "", "-", width=1.0),
}


def accuracy_rows(evidence: Evidence, quantity: str = "accuracy") -> Iterator[Row]:
    """Yield the rows of a measured quantity; rows without it are left out.

    ``protocol`` is the label of the encoder, or one of `BASELINES`, which stand once:
    the majority as `auto` decodes it. ``axes`` holds the labels of the row's setting.
    """
    for summary in evidence.summaries:
        method = summary["method"]
        baseline = method if method in BASELINES else None
        named = summary["protocol"] in {AUTO, baseline}
        if summary.get(quantity) is not None and (named or not baseline):
            yield score_row(summary, quantity) | {
                "protocol": baseline or summary["protocol"],
                "learner": None
                if baseline in {"majority", "bayes"}
                else summary["learner"],
                "axes": summary.get("setting", {}),
            }


def sort_rows(rows: Iterable[Row]) -> list[Row]:
    """Return rows by setting, then by protocol, learner and epsilon.

    Of several that say the same the first is kept: a baseline stands beside each
    learner.
    """
    first: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        first.setdefault(tuple(row[name] for name in _PLACES), row)
    listed = list(first.values())
    settings = distinct_values(listed, "setting")
    ranks = {name: rank for rank, name in enumerate(LOOKS)}

    def sort_key(row: Row) -> tuple[Any, ...]:
        return (
            settings.index(row["setting"]),
            row["quantity"],
            ranks[row["protocol"]],
            str(row["learner"]),
            row["method"],
            row["n_classes"],
            float("inf") if row["epsilon"] is None else row["epsilon"],
        )

    return sorted(listed, key=sort_key)


def protocol_lines(
    rows: Sequence[Row], looks: Mapping[str, Look] = LOOKS
) -> list[PlotLine]:
    """Return a line for each protocol among the rows, in the order of `LOOKS`."""
    return [
        PlotLine(name, look, selected)
        for name, look in looks.items()
        if (selected := select(rows, protocol=name))
    ]


def repeat_without_epsilon(rows: Sequence[Row]) -> list[Row]:
    """Repeat rows without epsilon at each epsilon of the others."""
    levels = sorted(distinct_values(rows, "epsilon"))
    return [
        row | {"epsilon": level}
        for row in rows
        for level in (levels if row["epsilon"] is None else [row["epsilon"]])
    ]
