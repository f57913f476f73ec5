"""Accuracies of DTK's figures 3 to 5: adaptive by runs, tuned by simulation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from matplotlib.figure import Figure

from curvote.chain.measure import Look
from curvote.reproduce.drawing import (
    PlotLine,
    distinct_values,
    label_y_axes,
    line_panels,
)
from curvote.reproduce.dtk.tuned import Drift, Tuner
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, score_row, select

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


def adaptive_rows(evidence: Evidence) -> Iterator[Row]:
    """Yield the accuracies of the runs, with names as in `LOOKS`."""
    for summary in evidence.summaries:
        axes = {k: v for k, v in summary["setting"].items() if k != "protocol"}
        label = summary["protocol"]
        name = label if label == "auto" else f"AdaptDTK {label}"
        yield score_row(summary | {"setting": axes}, "accuracy") | {"protocol": name}


def tuned_rows(
    evidence: Evidence, tuners: Mapping[str, Tuner], drifts: Mapping[str, Drift]
) -> Iterator[Row]:
    """Yield the accuracies of the tuned classifiers in each setting."""
    config: Mapping[str, Any] = evidence.configs[0]
    for setting, drift in drifts.items():
        for name, tuner in tuners.items():
            best = tuner.best_accuracies(drift, config["epsilon"], config["replicates"])
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


def accuracy_figure(rows: Sequence[Row]) -> Figure:
    """Draw a panel a setting: accuracy against epsilon, a line a classifier."""
    names = [name for name in LOOKS if select(rows, protocol=name)]
    figure = line_panels(
        {
            setting: [
                PlotLine(
                    name, LOOKS[name], select(rows, setting=setting, protocol=name)
                )
                for name in names
            ]
            for setting in distinct_values(rows, "setting")
        }
    )
    label_y_axes(figure.axes, "accuracy (%)")
    return figure


def mean_accuracy(rows: Iterable[Row], name: str) -> Mapping[float, float]:
    """Return the mean accuracy of a classifier over its settings, by epsilon."""
    selected = sorted(
        (row["epsilon"], row["curvote"]) for row in rows if row["protocol"] == name
    )
    together = {
        level: [value for _, value in part]
        for level, part in groupby(selected, key=lambda pair: pair[0])
    }
    return {level: sum(part) / len(part) for level, part in together.items()}


def private_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows whose privacy is as claimed."""
    return [row for row in rows if not str(row["protocol"]).endswith(PRINTED)]
