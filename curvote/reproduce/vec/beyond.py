"""Our encoder and learner beside the published ones, on five data sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from matplotlib.figure import Figure

from curvote.chain.measure import Look
from curvote.reproduce.drawing import Line, against, label_left
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, finished, having
from curvote.reproduce.vec.measured import (
    AUTO,
    LOOKS,
    accuracies,
    everywhere,
    ordered,
)

across: Final = "epsilon"
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


def rows(name: str, found: Evidence) -> list[Row]:
    """Return the accuracy by ``setting`` (the data set) and ``n_classes``.

    Where classes are not alike, rows of quantity ``balanced_accuracy`` stand beside
    it; what decides for its sake has the ``method`` `balanced`.
    """
    made = [_row(name, row) for row in accuracies(found)]
    balanced = [_row(name, row) for row in accuracies(found, _DECIDES)]
    made += [
        row | {"quantity": BALANCED} for row in having(balanced, setting=IMBALANCED)
    ]
    return finished(ordered(made))


def _row(name: str, row: Row) -> Row:
    setting = row["pipeline"].removeprefix(f"{name}-")
    size = row["axes"].get("n_classes") or N_CLASSES[setting]
    named = {"setting": setting, "n_classes": int(size)}
    if row["protocol"] == _DECIDES:
        named |= {"protocol": AUTO, "method": _DECIDES}
    return row | named


def figure(given: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a data set and K: a line for each encoder with its learner."""
    shown = having(given, quantity="accuracy")
    pairs = dict.fromkeys((row["setting"], row["n_classes"]) for row in shown)
    drawn = against(
        {
            f"{setting}, {size} classes": _panel(
                having(shown, setting=setting, n_classes=size)
            )
            for setting, size in pairs
        },
        columns=3,
    )
    label_left(drawn.axes, "accuracy (%)")
    return drawn


def _panel(given: Sequence[Row]) -> list[Line]:
    """Return the lines of what decides for accuracy, and of what it is held against."""
    plain = [row for row in everywhere(given) if row["method"] != _DECIDES]
    own = [
        Line(f"{encoder}, {learner}", look, mine)
        for (encoder, learner), look in _PAIRS.items()
        if (mine := having(plain, protocol=encoder, learner=learner))
    ]
    others = ("majority", "clean", "bayes")
    held = [Line(name, LOOKS[name], having(plain, protocol=name)) for name in others]
    return [*own, *(line for line in held if line.rows)]


def brief(given: Sequence[Row]) -> Sequence[Row]:
    """Return all rows."""
    return given


def said(given: Sequence[Row]) -> Iterator[str]:
    """Yield where `auto` is behind the published way, in points."""
    ours = having(given, quantity="accuracy", protocol=AUTO, learner=AUTO)
    apart = []
    for row in (row for row in ours if row["method"] != _DECIDES):
        place = {name: row[name] for name in ("setting", "n_classes", "epsilon")}
        paper = having(given, protocol="vector", learner=_PAPER, **place)
        told = f"{row['setting']}, K = {row['n_classes']}, epsilon {row['epsilon']:g}"
        apart += [(row["curvote"] - one["curvote"], told) for one in paper]
    behind = [one for one in apart if one[0] < 0]
    mean = sum(gap for gap, _ in apart) / max(1, len(apart))
    ahead = f"{len(apart) - len(behind)} of {len(apart)} cells"
    yield f"auto is not behind vectors with 200 neighbours in {ahead}"
    yield f"  mean over the cells: {mean:+.1f} points"
    for gap, told in sorted(behind):
        yield f"  behind: {gap:+.1f} points ({told})"
