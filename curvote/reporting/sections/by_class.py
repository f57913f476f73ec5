"""Each of several classes: how often it is recognised, and what it is taken for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from curvote.protocols.by_class import CONFUSION
from curvote.reporting import style
from curvote.reporting.cells import from_one, grid
from curvote.reporting.data import percent
from curvote.reporting.methods import method_of
from curvote.reporting.section import Section
from curvote.reporting.sections.matrix import matrix
from curvote.run.results import RunView

MOST = 40  # classes in a table
WRITTEN = 16  # classes whose matrix has numbers on it
SEEN = 0.5  # percent, below which a square stays empty
MATRICES = 3


@dataclass(frozen=True, eq=False)
class Confusion:
    """Percent of a true class (rows) said to be each (columns), of one cell (K, K).

    A row of a class that was never tested is empty: NaN.
    """

    called: str
    classes: Sequence[str]
    shares: NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """A class: its share of the tested, and its recall by each protocol."""

    name: str
    share: str
    recalls: Sequence[str]


@dataclass(frozen=True, eq=False)
class Recalls:
    """The classes of one setting; ``hidden`` further ones are left out."""

    setting: str
    protocols: Sequence[str]
    rows: Sequence[Row]
    hidden: int


@dataclass(frozen=True, eq=False)
class ByClass(Section):
    """Tables of recall, one for each setting, and matrices of some cells."""

    recalls: Sequence[Recalls]
    matrices: Sequence[Confusion]

    name: ClassVar[str] = "by_class"
    place: ClassVar[str] = "results"

    @property
    def alt(self) -> str:
        """What the matrices show."""
        return " ".join(map(_in_words, self.matrices))

    def draw(self, narrow: bool) -> Figure:
        """Draw each matrix: rows are true classes, columns what was said."""
        n = len(self.matrices)
        most = max(len(one.classes) for one in self.matrices)
        height = 3.0 if most < 6 else 3.9
        figure, axes = style.panels(n, narrow=narrow, height=height, share_y=False)
        for ax, one in zip(axes, self.matrices, strict=True):
            _draw(ax, one)
        return figure


def _in_words(one: Confusion) -> str:
    recognised = zip(one.classes, np.diag(one.shares), strict=True)
    told = ", ".join(f"{name} {share:.0f} %" for name, share in recognised)
    return f"A matrix of true classes and what was said of them, {one.called}: {told}."


def _draw(ax: Axes, one: Confusion) -> None:
    few = len(one.classes) <= WRITTEN

    def told(row: int, column: int) -> str:
        share = one.shares[row, column]
        return f"{share:.0f}" if few and share >= SEEN else ""

    matrix(ax, one.shares, (one.classes, one.classes), told)
    ax.set_title(style.title(one.called))
    ax.set_xlabel("said to be")
    ax.set_ylabel("true class")


def gather(views: Sequence[RunView], _: pd.DataFrame) -> ByClass | None:
    """Return what is known of each class near epsilon 1, setting after setting.

    Where there is one setting, the largest epsilon has a matrix, too.
    """
    settings: dict[str, list[RunView]] = {}
    for view in views:
        if view.holds("report", CONFUSION.name):
            settings.setdefault(grid(view), []).append(view)
    if not settings:
        return None
    alone = len(settings) == 1
    shown = [view for mine in settings.values() for view in _drawn(mine, alone=alone)]
    tables = [_table(words, mine) for words, mine in settings.items()]
    return ByClass(tables, [_confusion(view) for view in shown[:MATRICES]])


def _drawn(views: Sequence[RunView], *, alone: bool) -> list[RunView]:
    """Return the cells whose matrices are drawn, of the first protocol that sends."""
    sent = [view for view in views if not _held_against(view)] or list(views)
    own = [view for view in sent if view.cell["protocol"] == sent[0].cell["protocol"]]
    near = min(own, key=from_one)
    last = max(own, key=lambda view: view.cell["epsilon"] or 0.0)
    return [near, last] if alone and last is not near else [near]


def _held_against(view: RunView) -> bool:
    """Say whether a cell is only there to hold others against it."""
    return all(method_of(name).reference for name in view.system.main)


def _counts(view: RunView) -> tuple[list[str], NDArray[np.int64]]:
    """Return the classes, and true class by what was said, of all repetitions."""
    classes = list(view.facts("project")["classes"])
    told = view.read("report", CONFUSION.name)
    place = {name: at for at, name in enumerate(classes)}
    matrix = np.zeros((len(classes), len(classes)), dtype=np.int64)
    ends = (told[end].astype(str).map(place).to_numpy() for end in ("true", "said"))
    np.add.at(matrix, tuple(ends), told["n"].to_numpy())
    return classes, matrix


def _confusion(view: RunView) -> Confusion:
    classes, counts = _counts(view)
    with np.errstate(invalid="ignore"):  # a class that was never tested
        shares = 100 * counts / counts.sum(axis=1, keepdims=True)
    return Confusion(_titled(view), classes, shares)


def _titled(view: RunView) -> str:
    return ", ".join(filter(None, (grid(view), _called(view))))


def _called(view: RunView) -> str:
    """Return a cell in words: its protocol, and where it stands in its setting."""
    place = view.cell.with_(protocol=None, setting=None, learner=None).words
    words = view.cell["protocol"], view.cell["learner"], place
    return ", ".join(filter(None, words))


def _table(words: str, views: Sequence[RunView]) -> Recalls:
    """Return recall by class of each protocol's cells nearest to epsilon 1."""
    nearest = min(map(from_one, (v for v in views if v.cell["epsilon"])), default=0.0)
    shown = [v for v in views if not v.cell["epsilon"] or from_one(v) == nearest]
    counted = {_called(view): _counts(view) for view in shown}
    classes, first = next(iter(counted.values()))
    recalls = zip(*(_column(counts) for _, counts in counted.values()), strict=True)
    shares = first.sum(axis=1) / first.sum()
    rows = [
        Row(name, percent(share), own)
        for name, share, own in zip(classes, shares, recalls, strict=True)
    ]
    return Recalls(words, list(counted), rows[:MOST], max(0, len(rows) - MOST))


def _column(counts: NDArray[np.int64]) -> list[str]:
    """Return the recall of each class as text; a dash where none was tested."""
    recognised, tested = np.diag(counts), counts.sum(axis=1)
    pairs = zip(recognised, tested, strict=True)
    return [percent(hit / n if n else None) for hit, n in pairs]
