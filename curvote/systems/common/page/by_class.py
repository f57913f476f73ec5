"""Page section of classes: recall, and a matrix of confusions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from curvote.pipeline.run.results import RunView
from curvote.report import data, style
from curvote.systems.common.study import CONFUSION

# A share as text, by its row and column.
SquareText = Callable[[int, int], str]


def draw_matrix(
    ax: Axes,
    shares: NDArray[np.float64],
    names: tuple[Sequence[str], Sequence[str]],
    square_text: SquareText,
    limits: tuple[float, float] = (0.0, 100.0),
) -> None:
    """Draw ``shares`` (p, q), in percent, with the ``names`` of rows and of columns.

    Colours go from one of the ``limits`` to the other; ``square_text`` says what is
    written on a square.
    """
    (rows, columns), (low, high) = names, limits
    ax.imshow(shares, cmap="Blues", vmin=low, vmax=high, aspect="auto")
    for (row, column), share in np.ndenumerate(shares):
        dark = share > (low + 2 * high) / 3
        ink = "#ffffff" if dark else "#000000"
        text = square_text(row, column)
        ax.text(column, row, text, ha="center", va="center", color=ink)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    for spine in ax.spines.values():
        spine.set_visible(False)


MAX_CLASSES = 40  # classes in a table
MAX_NUMBERED_CLASSES = 16  # classes whose matrix has numbers on it
MIN_SHOWN_PERCENT = 0.5  # percent, below which a square stays empty
MAX_MATRICES = 3


@dataclass(frozen=True, eq=False)
class Confusion:
    """Confusion of classes of one cell (K, K), in percent of a true class.

    A row of a class that was never tested is empty: NaN.
    """

    title: str
    classes: Sequence[str]
    shares: NDArray[np.float64]


@dataclass(frozen=True)
class ClassRow:
    """A class: its share of the tested, and its recall by each protocol."""

    name: str
    share: str
    recalls: Sequence[str]


@dataclass(frozen=True, eq=False)
class Recalls:
    """The classes of one setting; ``hidden`` further ones are left out."""

    setting: str
    protocols: Sequence[str]
    rows: Sequence[ClassRow]
    hidden: int


@dataclass(frozen=True, eq=False)
class ByClass(data.Section):
    """Tables of recall, one for each setting, and matrices of some cells."""

    recalls: Sequence[Recalls]
    matrices: Sequence[Confusion]

    name: ClassVar[str] = "by_class"
    place: ClassVar[str] = "results"

    @property
    def alt(self) -> str:
        """Description of the matrices."""
        sentences = []
        for matrix in self.matrices:
            recalls = zip(matrix.classes, np.diag(matrix.shares), strict=True)
            shares = ", ".join(f"{name} {share:.0f} %" for name, share in recalls)
            sentences.append(
                "A matrix of true classes and what was said of them,"
                f" {matrix.title}: {shares}."
            )
        return " ".join(sentences)

    def draw(self, narrow: bool) -> Figure:
        """Draw each matrix: rows are true classes, columns predicted ones."""
        n = len(self.matrices)
        largest = max(len(matrix_data.classes) for matrix_data in self.matrices)
        height = 3.0 if largest < 6 else 3.9
        figure, axes = style.make_panels(n, narrow=narrow, height=height, share_y=False)
        for ax, matrix_data in zip(axes, self.matrices, strict=True):
            _draw_matrix(ax, matrix_data)
        return figure


def _draw_matrix(ax: Axes, confusion: Confusion) -> None:
    few = len(confusion.classes) <= MAX_NUMBERED_CLASSES

    def square_text(row: int, column: int) -> str:
        share = confusion.shares[row, column]
        return f"{share:.0f}" if few and share >= MIN_SHOWN_PERCENT else ""

    draw_matrix(
        ax, confusion.shares, (confusion.classes, confusion.classes), square_text
    )
    ax.set_title(style.wrap_title(confusion.title))
    ax.set_xlabel("said to be")
    ax.set_ylabel("true class")


def gather_by_class(views: Sequence[RunView], _: pd.DataFrame) -> ByClass | None:
    """Return recall and confusion of classes, setting by setting.

    Where there is one setting, the largest epsilon has a matrix, too.
    """
    settings: dict[str, list[RunView]] = {}
    for view in views:
        if view.holds("report", CONFUSION.name):
            settings.setdefault(data.grid_setting(view), []).append(view)
    if not settings:
        return None
    drawn_views: list[RunView] = []
    for group in settings.values():
        methods = [(view, map(data.find_method, view.system.main)) for view in group]
        own_views = [
            v for v, main in methods if not all(m.reference for m in main)
        ] or group
        same_protocol = [
            v for v in own_views if v.cell["protocol"] == own_views[0].cell["protocol"]
        ]
        nearest = min(same_protocol, key=data.epsilon_distance)
        last = max(same_protocol, key=lambda view: view.cell["epsilon"] or 0.0)
        drawn_views.append(nearest)
        if len(settings) == 1 and last is not nearest:
            drawn_views.append(last)
    matrices = []
    for view in drawn_views[:MAX_MATRICES]:
        classes, counts = _confusion_counts(view)
        with np.errstate(invalid="ignore"):  # a class that was never tested
            shares = 100 * counts / counts.sum(axis=1, keepdims=True)
        title = ", ".join(filter(None, (data.grid_setting(view), _describe_cell(view))))
        matrices.append(Confusion(title, classes, shares))
    tables = [_recall_table(words, group) for words, group in settings.items()]
    return ByClass(tables, matrices)


def _confusion_counts(view: RunView) -> tuple[list[str], NDArray[np.int64]]:
    """Return the classes, and counts of true by predicted class."""
    classes = list(view.metadata("project")["classes"])
    table = view.read("report", CONFUSION.name)
    place = {name: at for at, name in enumerate(classes)}
    matrix = np.zeros((len(classes), len(classes)), dtype=np.int64)
    ends = (table[end].astype(str).map(place).to_numpy() for end in ("true", "said"))
    np.add.at(matrix, tuple(ends), table["n"].to_numpy())
    return classes, matrix


def _describe_cell(view: RunView) -> str:
    """Return the protocol of a cell, and its place in its setting."""
    place = view.cell.with_values(protocol=None, setting=None, learner=None).words
    words = view.cell["protocol"], view.cell["learner"], place
    return ", ".join(filter(None, words))


def _recall_table(words: str, views: Sequence[RunView]) -> Recalls:
    """Return recall by class of each protocol's cells nearest to epsilon 1."""
    nearest = min(
        (data.epsilon_distance(v) for v in views if v.cell["epsilon"]), default=0
    )
    cells = [
        v for v in views if not v.cell["epsilon"] or data.epsilon_distance(v) == nearest
    ]
    counted = {_describe_cell(view): _confusion_counts(view) for view in cells}
    classes, first = next(iter(counted.values()))
    tested_shares = first.sum(axis=1) / first.sum()
    recalls = [
        # A dash where none was tested.
        [
            data.format_percent(hit / n if n else None)
            for hit, n in zip(hits, tested, strict=True)
        ]
        for _, counts in counted.values()
        for hits, tested in [(np.diag(counts), counts.sum(axis=1))]
    ]
    rows = [
        ClassRow(name, data.format_percent(share), class_recalls)
        for name, share, *class_recalls in zip(
            classes, tested_shares, *recalls, strict=True
        )
    ]
    hidden = max(0, len(rows) - MAX_CLASSES)
    return Recalls(words, list(counted), rows[:MAX_CLASSES], hidden)
