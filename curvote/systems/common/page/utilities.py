"""Page sections of utilities and classes: noised votes, none passed, and recall."""

from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from curvote.messages.measures import MISCLASSIFICATION
from curvote.pipeline.run.results import RunView
from curvote.report import data, style
from curvote.report.figures import draw_left_label, draw_legend
from curvote.systems.common.study import CONFUSION

UTILITY_RANGE = (-0.5, 1.5)


@dataclass(frozen=True, eq=False)
class Utilities(data.Section):
    """Estimated utilities before reversal, by epsilon and learner."""

    table: pd.DataFrame

    name: ClassVar[str] = "utilities"
    place: ClassVar[str] = "results"

    @property
    def cuts(self) -> list[float]:
        """All cutoffs, in order."""
        return sorted(self.table["cutoff"].unique())

    @property
    def estimates(self) -> str:
        """Name of the estimates, which need no truth."""
        return "the utilities estimated below"

    @property
    def alt_text(self) -> str:
        """Description of the ridges."""
        top = max(_epsilon_levels(self.table))
        values = self.table.loc[self.table["epsilon"] == top, "utility"]
        low, high = np.quantile(values.to_numpy(float), [0.1, 0.9])
        return (
            "Distributions of the estimated utilities of the weak classifiers, one"
            " ridge for each epsilon, one panel for each learner. At epsilon"
            f" {top:g}, 80 % lie between {low:.2f} and {high:.2f}."
        )

    def draw(self, narrow: bool) -> Figure:
        """Draw a ridge per epsilon, a panel per learner.

        Right of the cutoff a classifier is used, left of its mirror 1 - cutoff it is
        used reversed. Values outside ``UTILITY_RANGE`` count in the printed shares.
        """
        names, levels = data.learners(self.table), _epsilon_levels(self.table)
        height = 0.75 + 0.56 * len(levels)
        figure, axes = style.make_panels(len(names), narrow=narrow, height=height)
        for ax, name in zip(axes, names, strict=True):
            group = self.table[self.table["learner"] == name]
            cutoff = float(group["cutoff"].iloc[0])
            for base, epsilon in enumerate(reversed(levels)):
                values = group.loc[group["epsilon"] == epsilon, "utility"]
                _draw_ridge(ax, values.to_numpy(float), base, cutoff)
            labels = [data.format_level(level) for level in reversed(levels)]
            ax.set_yticks(range(len(levels)), labels)
            ax.set_ylim(-0.08, len(levels))
            ax.set_xlim(*UTILITY_RANGE)
            ax.set_xticks([0, 0.5, 1])
            ax.set_xlabel("estimated utility, before reversal")
            for at in (cutoff, 1 - cutoff):
                ax.axvline(at, color=style.INK, lw=0.8, ls=(0, (2, 2)))
            ax.spines["left"].set_visible(False)
            ax.grid(axis="y")
            ax.set_title(style.wrap_title(name))
        draw_left_label(axes, narrow, "epsilon")
        patches = [
            Patch(color=style.REVERSED, label="used reversed"),
            Patch(color=style.UNUSED, label="not used"),
            Patch(color=style.USED, label="used as it is"),
        ]
        draw_legend(figure, patches, len(patches))
        return figure


def _epsilon_levels(table: pd.DataFrame) -> list[float]:
    return sorted(float(value) for value in table["epsilon"].unique())


def _draw_ridge(ax: Axes, values: data.FloatArray, base: int, cut: float) -> None:
    values = values[np.isfinite(values)]
    if not len(values):
        return
    grid, density = smooth_density(values)
    x = np.sort(np.append(grid, (1 - cut, cut)))
    top = base + 0.66 * np.interp(x, grid, density) / density.max()
    parts = [
        (x <= 1 - cut, style.REVERSED),
        ((x >= 1 - cut) & (x <= cut), style.UNUSED),
        (x >= cut, style.USED),
    ]
    for mask, colour in parts:
        ax.fill_between(x, base, top, where=list(mask), color=colour, lw=0, alpha=0.75)
    ax.plot(x, top, color=style.INK, lw=0.7)
    shares = ((values < 1 - cut).mean(), (values > cut).mean())
    for share, at, side in zip(shares, (-0.48, 1.48), ("left", "right"), strict=True):
        text = "< 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"
        ax.text(at, base + 0.7, text, ha=side, size=7.5)


def smooth_density(
    values: data.FloatArray, points: int = 201
) -> tuple[data.FloatArray, data.FloatArray]:
    """Return grid and density of ``values`` over ``UTILITY_RANGE``, smoothed.

    Estimated utilities lie on a lattice of step 1/(n (2q - 1)); the Gaussian kernel
    is at least 0.8 of its step wide, or the ridge would show the lattice.
    """
    low, high = UTILITY_RANGE
    step = (high - low) / (points - 1)
    distinct = np.unique(values.round(9))
    lattice = np.median(np.diff(distinct)) if 1 < len(distinct) < 400 else 0.0
    width = max(0.6 * values.std() * len(values) ** -0.2, 0.8 * lattice, 2 * step)
    reach = int(np.ceil(4 * width / step))
    edges = low + step * (np.arange(-reach, points + reach + 1) - 0.5)
    counts, _ = np.histogram(values, edges)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / width) ** 2)
    x: data.FloatArray = low + step * np.arange(points, dtype=np.float64)
    return x, np.convolve(counts, kernel, "valid").astype(np.float64)


def gather_utilities(views: Sequence[RunView], _: pd.DataFrame) -> Utilities | None:
    """Return the estimated utilities of all cells, if any classifier was voted on."""
    parts = []
    for view in views:
        if view.holds("aggregate", "ensemble"):
            names = filter(None, (view.cell["learner"], view.cell["setting"]))
            columns = {
                "epsilon": view.cell["epsilon"],
                "learner": ", ".join(names),
                "utility": view.read("aggregate", "ensemble")["utility"].to_numpy(),
                # From 1/2 on a classifier is used as it is, whatever the cutoff.
                "cutoff": max(view.metadata("aggregate")["cutoff"], 0.5),
            }
            parts.append(pd.DataFrame(columns))
    return Utilities(pd.concat(parts, ignore_index=True)) if parts else None


@dataclass(frozen=True, eq=False)
class NonePassed(data.Section):
    """Scores with ``none_passed``, the share of replicates; missing without a cutoff.

    Where it is the share of nothing, no classifier had to pass.
    """

    cutoff: float
    scores: pd.DataFrame

    name: ClassVar[str] = "none-passed"
    place: ClassVar[str] = "numbers"

    @property
    def levels(self) -> list[str]:
        """Levels of the table, as text."""
        return [data.format_level(value) for value in data.sorted_levels(self.scores)]

    @property
    def rows(self) -> list[tuple[str, list[str]]]:
        """Rows of (method and learner, percents by level), where it happened."""
        scores = data.add_series(self.scores)
        scores = scores.assign(share=pd.to_numeric(scores["none_passed"]).fillna(0))
        rows = []
        for series in data.series_names(scores):
            for learner in data.learners(scores):
                is_own = (scores["series"] == series) & (scores["learner"] == learner)
                shares = scores[is_own].set_index("level")["share"]
                if shares.gt(0).any():
                    levels = data.sorted_levels(self.scores)
                    percents = [data.format_percent(shares.get(at), 0) for at in levels]
                    name = data.find_method(series).label
                    rows.append((f"{name}, {learner}", percents))
        return rows


def gather_none_passed(
    views: Sequence[RunView], scores: pd.DataFrame
) -> NonePassed | None:
    """Return how often no classifier passed, at the first cutoff."""
    if scores.empty:
        return None
    errors = scores[scores["metric"] == MISCLASSIFICATION.name]
    return NonePassed(views[0].setting("aggregate.cutoff"), errors)


def draw_matrix(
    ax: Axes,
    shares: NDArray[np.float64],
    names: tuple[Sequence[str], Sequence[str]],
    texts: Sequence[Sequence[str]],
    limits: tuple[float, float] = (0.0, 100.0),
) -> None:
    """Draw ``shares`` (p, q), in percent, with the ``names`` of rows and of columns.

    Colours go from one of the ``limits`` to the other; ``texts`` are written on the
    squares.
    """
    (rows, columns), (low, high) = names, limits
    ax.imshow(shares, cmap="Blues", vmin=low, vmax=high, aspect="auto")
    for (row, column), share in np.ndenumerate(shares):
        dark = share > (low + 2 * high) / 3
        ink = "#ffffff" if dark else "#000000"
        ax.text(column, row, texts[row][column], ha="center", va="center", color=ink)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    for spine in ax.spines.values():
        spine.set_visible(False)


MAX_CLASSES = 40  # classes in a table
MAX_NUMBERED_CLASSES = 16  # classes whose matrix has numbers on it
MIN_SHOWN_PERCENT = 0.5  # percent, below which a square stays empty
MAX_MATRICES = 3


# The confusion of classes of one cell: shares (K, K) in percent of a true class. A row
# of a class that was never tested is empty: NaN.
Confusion = namedtuple("Confusion", "title classes shares")
# A class: its share of the tested, and its recall by each protocol.
ClassRow = namedtuple("ClassRow", "name share recalls")
# The classes of one setting; ``hidden`` further ones are left out.
Recalls = namedtuple("Recalls", "setting protocols rows hidden")


@dataclass(frozen=True, eq=False)
class ByClass(data.Section):
    """Tables of recall, one for each setting, and matrices of some cells."""

    recalls: Sequence[Recalls]
    matrices: Sequence[Confusion]

    name: ClassVar[str] = "by_class"
    place: ClassVar[str] = "results"

    @property
    def alt_text(self) -> str:
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
            shares, classes = matrix_data.shares, matrix_data.classes
            few = len(classes) <= MAX_NUMBERED_CLASSES
            texts = [
                [f"{s:.0f}" if few and s >= MIN_SHOWN_PERCENT else "" for s in row]
                for row in shares
            ]
            draw_matrix(ax, shares, (classes, classes), texts)
            ax.set_title(style.wrap_title(matrix_data.title))
            ax.set_xlabel("said to be")
            ax.set_ylabel("true class")
        return figure


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
