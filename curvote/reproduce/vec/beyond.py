"""Our encoder and learner beside the published ones, on five data sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from matplotlib.figure import Figure

from curvote.reproduce.drawing import Line, against, label_left
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, finished, having, levels, with_error
from curvote.reproduce.vec.measured import accuracies, everywhere, ordered
from curvote.reproduce.vec.looks import CONTEST

across: Final = "epsilon"
BALANCED: Final = "balanced_accuracy"
N_CLASSES: Final = {"mnist": 10, "zip": 10, "phonemes": 5, "imbalanced": 16}


def rows(name: str, found: Evidence) -> list[Row]:
    """Return the accuracy by ``setting`` (the data set) and ``n_classes``.

    Rows of quantity ``balanced_accuracy`` stand beside those of `imbalanced`, where
    ``method`` `balanced` decides for its sake.
    """
    plain = accuracies(found)
    balanced = accuracies(found, "balanced")
    made = [_row(name, row) for row in plain]
    made += [
        row | {"quantity": BALANCED}
        for row in map(lambda one: _row(name, one), balanced)
        if row["setting"] == "imbalanced"
    ]
    return finished(ordered(made))


def _row(name: str, row: Row) -> Row:
    setting = row["pipeline"].removeprefix(f"{name}-")
    size = row["axes"].get("n_classes") or N_CLASSES[setting]
    return row | {"setting": setting, "n_classes": int(size)}
