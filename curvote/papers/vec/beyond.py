"""Our encoder and learner beside the published ones, on five data sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from matplotlib.figure import Figure

from curvote.chain.measure import Look
from curvote.papers.drawing import ACCURACY, PlotLine, line_panels, protocol_lines
from curvote.papers.evidence import Evidence
from curvote.papers.rows import Row, complete_rows, select
from curvote.papers.vec.tables import (
    AUTO,
    BASELINES,
    LOOKS,
    accuracy_rows,
    repeat_without_epsilon,
    sort_rows,
)

BALANCED: Final = "balanced_accuracy"
IMBALANCED: Final = "imbalanced"
N_CLASSES: Final = {"mnist": 10, "zip": 10, "phonemes": 5, IMBALANCED: 16}
# The label of a protocol that decides for the sake of rare classes.
_DECIDES: Final = "balanced"
_PAPER: Final = "knn-200"
_PAIRS: Final = {
    ("vector", _PAPER): LOOKS["vector"],
    ("vector", AUTO): Look("#56b4e9", "^"),
    (AUTO, _PAPER): Look("#d98c00", "h", "--"),
    (AUTO, AUTO): LOOKS[AUTO],
}


def rows(name: str, evidence: Evidence) -> list[Row]:
    """Return the accuracy by ``setting`` (the data set) and ``n_classes``.

    Where classes are not alike, rows of quantity ``balanced_accuracy`` stand beside
    it; what decides for its sake has the ``method`` `balanced`.
    """
    score_rows = [_data_set_row(name, row) for row in accuracy_rows(evidence)]
    balanced = [_data_set_row(name, row) for row in accuracy_rows(evidence, _DECIDES)]
    score_rows += [
        row | {"quantity": BALANCED} for row in select(balanced, setting=IMBALANCED)
    ]
    return complete_rows(sort_rows(score_rows))


def _data_set_row(name: str, row: Row) -> Row:
    setting = row["pipeline"].removeprefix(f"{name}-")
    size = row["axes"].get("n_classes") or N_CLASSES[setting]
    named = {"setting": setting, "n_classes": int(size)}
    if row["protocol"] == _DECIDES:
        named |= {"protocol": AUTO, "method": _DECIDES}
    return row | named


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a data set and K: a line for each encoder with its learner."""
    accuracies_shown = select(results, quantity="accuracy")
    pairs = dict.fromkeys(
        (row["setting"], row["n_classes"]) for row in accuracies_shown
    )
    charts = {
        f"{setting}, {size} classes": _panel_lines(
            select(accuracies_shown, setting=setting, n_classes=size)
        )
        for setting, size in pairs
    }
    return line_panels(charts, columns=3, y=ACCURACY)


def _panel_lines(results: Sequence[Row]) -> list[PlotLine]:
    """Return the lines of all pairs of encoder and learner, and baselines."""
    plain = [
        row for row in repeat_without_epsilon(results) if row["method"] != _DECIDES
    ]
    pair_lines = [
        PlotLine(f"{encoder}, {learner}", look, selected)
        for (encoder, learner), look in _PAIRS.items()
        if (selected := select(plain, protocol=encoder, learner=learner))
    ]
    return pair_lines + protocol_lines(plain, {name: LOOKS[name] for name in BASELINES})


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield where `auto` is behind the published way, in points."""
    ours = select(results, quantity="accuracy", protocol=AUTO, learner=AUTO)
    apart = []
    for row in (row for row in ours if row["method"] != _DECIDES):
        place = {name: row[name] for name in ("setting", "n_classes", "epsilon")}
        paper = select(results, protocol="vector", learner=_PAPER, **place)
        text = f"{row['setting']}, K = {row['n_classes']}, epsilon {row['epsilon']:g}"
        apart += [(row["curvote"] - other["curvote"], text) for other in paper]
    behind = [gap_and_text for gap_and_text in apart if gap_and_text[0] < 0]
    mean = sum(gap for gap, _ in apart) / max(1, len(apart))
    ahead = f"{len(apart) - len(behind)} of {len(apart)} cells"
    yield f"auto is not behind vectors with 200 neighbours in {ahead}"
    yield f"  mean over the cells: {mean:+.1f} points"
    for gap, text in sorted(behind):
        yield f"  behind: {gap:+.1f} points ({text})"
