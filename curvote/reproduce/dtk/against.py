"""What figures 3 to 5 have in common: what runs found, and what tuning could."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from matplotlib.figure import Figure

from curvote.chain.measure import Look
from curvote.reproduce.drawing import Line, against, distinct, label_left
from curvote.reproduce.dtk.tuned import Drift, Tuner
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, having, scored

TUNED: Final = "tuned"
PRINTED: Final = "printed"

# How each classifier is drawn: what is private as it says in full lines.
LOOKS: Final = {
    "auto": Look("#d55e00", "o", width=2.4, size=6, above=6),
    "AdaptDTK triangular": Look("#0072b2", "s", above=5),
    "AdaptDTK gaussian": Look("#009e73", "^", above=5),
    "AdaptDTK triangular printed": Look("#0072b2", "s", ":", above=4),
    "AdaptDTK gaussian printed": Look("#009e73", "^", ":", above=4),
    "DTK triangular": Look("#0072b2", "", "--", above=3),
    "DTK gaussian": Look("#009e73", "", "--", above=3),
    "DTK triangular printed": Look("#0072b2", "", "-.", width=1.0, above=2),
    "DTK gaussian printed": Look("#009e73", "", "-.", width=1.0, above=2),
    "DT-HIST": Look("#6a717b", "", "--", above=2),
    "DT-HIST jittered": Look("#cc79a7", "", "--", above=2),
    "AdaptDTK triangular alone": Look("#0072b2", "x", ":", above=4),
    "AdaptDTK gaussian alone": Look("#009e73", "x", ":", above=4),
    "targetDTK triangular": Look("#0072b2", "", ":", above=3),
    "targetDTK gaussian": Look("#009e73", "", ":", above=3),
}
TUNERS: Final = {
    "DTK triangular": Tuner("triangular"),
    "DTK gaussian": Tuner("gaussian"),
    "DTK triangular printed": Tuner("triangular", printed=True),
    "DTK gaussian printed": Tuner("gaussian", printed=True),
    "DT-HIST": Tuner("histogram"),
    "DT-HIST jittered": Tuner("jittered"),
}


def adaptive(found: Evidence) -> Iterator[Row]:
    """Yield the accuracy of the runs; ``protocol`` says it as `LOOKS` does."""
    for summary in found.summaries:
        axes = {k: v for k, v in summary["setting"].items() if k != "protocol"}
        label = summary["protocol"]
        name = label if label == "auto" else f"AdaptDTK {label}"
        yield scored(summary | {"setting": axes}, "accuracy") | {"protocol": name}


def tuned(
    found: Evidence, tuners: Mapping[str, Tuner], drifts: Mapping[str, Drift]
) -> Iterator[Row]:
    """Yield what the tuned classifiers reach in each setting, as often as was run."""
    config: Mapping[str, Any] = found.configs[0]
    for setting, drift in drifts.items():
        for name, tuner in tuners.items():
            best = tuner.best(drift, config["epsilon"], config["replicates"])
            for epsilon, (value, error) in best.items():
                yield {
                    "setting": setting,
                    "protocol": name,
                    "epsilon": epsilon,
                    "method": TUNED,
                    "quantity": "accuracy",
                    "curvote": value,
                    "se": error,
                }


def drawn(rows: Sequence[Row]) -> Figure:
    """Draw a panel a setting: accuracy against epsilon, a line a classifier."""
    names = [name for name in LOOKS if having(rows, protocol=name)]
    figure = against(
        {
            setting: [
                Line(name, LOOKS[name], having(rows, setting=setting, protocol=name))
                for name in names
            ]
            for setting in distinct(rows, "setting")
        }
    )
    label_left(figure.axes, "accuracy (%)")
    return figure


def mean(rows: Iterable[Row], name: str) -> Mapping[float, float]:
    """Return the mean accuracy of a classifier over its settings, by epsilon."""
    mine = sorted(
        (row["epsilon"], row["curvote"]) for row in rows if row["protocol"] == name
    )
    together = {
        level: [value for _, value in part]
        for level, part in groupby(mine, key=lambda pair: pair[0])
    }
    return {level: sum(part) / len(part) for level, part in together.items()}


def brief(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that the terminal shows: all that say what they deliver."""
    return [row for row in rows if not str(row["protocol"]).endswith(PRINTED)]
