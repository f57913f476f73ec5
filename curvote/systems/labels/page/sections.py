"""Sections of a page of private labels: figures and tables."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.base.errors import UserError
from curvote.chain.axis import Axis
from curvote.chain.measure import SCORES, Look
from curvote.pipeline.run.results import RunView
from curvote.report import data, figures, style
from curvote.systems.labels.codes.encoders import encoder_efficiency
from curvote.systems.labels.messages import Task
from curvote.systems.labels.metrics import ACCURACY, LABELS
from curvote.systems.labels.system import HONEST, RECALLS, RELIABILITY, SHARES

CELL = ("series", "learner", "epsilon", "k", "method", "metric")
# Encoders beside each other, in the order of the pipeline's protocols.
LOOKS = (
    Look("#0072b2", "o", width=2.2, size=5.5, above=6),
    Look("#d55e00", "s", width=1.8, size=5),
    Look("#009e73", "D"),
    Look("#cc79a7", "^"),
    Look("#7f52a3", "v"),
    Look("#8a6a4a", "h"),
    Look("#56b4e9", "p"),
    Look("#b3a100", "X"),
)


def class_count(view: RunView) -> int:
    """Return K, the number of classes of a cell's data."""
    return len(view.metadata("ingest")["classes"])


def mean_scores(views: Sequence[RunView]) -> pd.DataFrame:
    """Return the mean scores of cells: ``CELL``, ``value``, ``se`` and ``n``."""
    tables = []
    for view in views:
        table = pd.DataFrame(view.read("report", SCORES.name))
        methods = table["method"].astype(str)
        # Methods beside the model are the same for every encoder, but for noise.
        series = methods.replace(LABELS.name, str(view.cell["protocol"]))
        cell = {name: view.cell[name] for name in ("learner", "epsilon")}
        tables.append(table.assign(series=series, **cell, k=class_count(view)))
    scores = pd.concat(tables, ignore_index=True)
    means = scores.groupby([*CELL], dropna=False, sort=False)["value"]
    summary = means.agg(value="mean", se="sem", n="size").reset_index()
    return summary.assign(se=summary["se"].fillna(0))


def encoder_look(place: int) -> Look:
    """Return the look of the encoder at a place of the list."""
    return LOOKS[place % len(LOOKS)]


def first_setting_views(views: Sequence[RunView]) -> list[RunView]:
    """Return the cells of the first combination of a grid that have a model."""
    trained = [view for view in views if view.holds("train")]
    return [view for view in trained if class_count(view) == class_count(trained[0])]


def nearest_to_epsilon_one(views: Sequence[RunView]) -> RunView:
    """Return the cell nearest to epsilon 1, the first of several."""
    return min(views, key=data.epsilon_distance)


@dataclass(frozen=True)
class Features(data.Section):
    """``numbers`` of each of ``n`` records; ``size`` components of them, if any."""

    n: int
    numbers: int
    size: int | None

    name: ClassVar[str] = "features"
    place: ClassVar[str] = "releases"

    @property
    def public(self) -> Sequence[str]:
        """Return lines on what is public before any noise."""
        numbers = f"the {self.numbers} numbers of each of {self.n:,} records"
        lines = [f"{numbers}, all of them"]
        if self.size is not None:
            lines.append(
                f"{self.size} principal components of them, made without a label: they"
                " cost nothing, tested records included"
            )
        return [*lines, "who takes part: the records whose labels were asked for"]


def gather_features(views: Sequence[RunView], _: pd.DataFrame) -> Features | None:
    """Return the section on public features of the first setting."""
    first_views = first_setting_views(views)
    if not first_views:
        return None
    metadata = first_views[0].metadata("features")
    n = len(first_views[0].columns("features", "features", (0,))["record"])
    return Features(n, len(metadata["grid"]), metadata["public"]["size"])


@dataclass(frozen=True)
class HonestRow:
    """A model: its accuracy by codes with an interval, and by labels in a study."""

    series: str
    learner: str
    epsilon: str
    estimate: str
    interval: str
    true: str


@dataclass(frozen=True, eq=False)
class Honest(data.Section):
    """``rows`` of the first repetition, by codes that took no part in choosing."""

    rows: Sequence[HonestRow]
    holdout_size: int
    study: bool

    name: ClassVar[str] = "honest"
    place: ClassVar[str] = "results"

    @property
    def estimates(self) -> str:
        """Return the words for a stand-in for errors that nobody knows."""
        return "what codes that took no part in choosing say of each model"


def gather_honest(views: Sequence[RunView], _: pd.DataFrame) -> Honest | None:
    """Return the honest scores of each model of the first setting."""
    scored = [view for view in first_setting_views(views) if len(_first_scores(view))]
    if not scored:
        return None
    holdout_size = int(_first_scores(scored[0])["n"].iloc[0])
    rows = list(map(_honest_row, scored))
    return Honest(rows, holdout_size, scored[0].holds("report"))


def _first_scores(view: RunView) -> pd.DataFrame:
    table = view.read("train", HONEST.name)
    return pd.DataFrame(table[table["replicate"] == 0])


def _honest_row(view: RunView) -> HonestRow:
    scores = _first_scores(view)
    score, cell = scores[scores["scoring"] == ACCURACY.name].iloc[0], view.cell
    true = data.NO_VALUE
    if view.holds("report"):
        table = view.read("report", SCORES.name)
        selected = (table["replicate"] == 0) & (table["metric"] == ACCURACY.name)
        selected &= table["method"] == LABELS.name
        true = f"{100 * table.loc[selected, 'value'].iloc[0]:.1f}"
    return HonestRow(
        str(cell["protocol"]),
        str(cell["learner"]),
        f"{cell['epsilon']:g}",
        f"{100 * score['value']:.1f}",
        f"{100 * score['low']:.1f} to {100 * score['high']:.1f}",
        true,
    )


MOST_CLASSES = 40


@dataclass(frozen=True)
class ClassRow:
    """A class: its share by codes and by labels, and how often it is recognised."""

    name: str
    share: str
    true: str
    recall: str
    predicted: str


@dataclass(frozen=True, eq=False)
class EachClass(data.Section):
    """``rows`` of one cell, ``called`` so; ``hidden`` further classes are left out."""

    rows: Sequence[ClassRow]
    called: str
    hidden: int
    study: bool

    name: ClassVar[str] = "each_class"
    place: ClassVar[str] = "results"


def gather_each_class(views: Sequence[RunView], _: pd.DataFrame) -> EachClass | None:
    """Return the classes of the cell nearest to epsilon 1."""
    first_views = first_setting_views(views)
    if not first_views:
        return None
    view = nearest_to_epsilon_one(first_views)
    study = view.holds("report")
    rows = _study_rows(view) if study else _release_rows(view)
    called = f"{view.cell['protocol']}, {view.cell.with_values(protocol=None).words}"
    return EachClass(
        rows[:MOST_CLASSES], called, max(0, len(rows) - MOST_CLASSES), study
    )


def _share_texts(view: RunView) -> dict[str, str]:
    """Return each class's share and two standard errors, of the first repetition."""
    table = view.read("train", SHARES.name)
    first = table[table["replicate"] == 0]
    parts = zip(first["class"], first["share"], first["se"], strict=True)
    return {str(name): f"{100 * a:.1f} ± {200 * se:.1f}" for name, a, se in parts}


def _release_rows(view: RunView) -> list[ClassRow]:
    texts = _share_texts(view).items()
    return [ClassRow(name, share, *[data.NO_VALUE] * 3) for name, share in texts]


def _study_rows(view: RunView) -> list[ClassRow]:
    table = view.read("report", RECALLS.name)
    counts = table.groupby(table["class"].astype(str), sort=False)
    summed = counts[["n", "recognised", "said"]].sum()
    shares, tested = _share_texts(view), summed["n"].sum()
    return [
        ClassRow(
            str(name),
            shares[str(name)],
            data.format_percent(row["n"] / tested),
            data.format_percent(row["recognised"] / row["n"] if row["n"] else None),
            data.format_percent(row["said"] / tested),
        )
        for name, row in summed.iterrows()
    ]


@dataclass(frozen=True)
class EncoderRow:
    """An encoder as texts: numbers of its law, and of draws."""

    series: str
    encoder: str
    retention: str
    signal: str
    measured: str
    labels: str
    nbytes: int


@dataclass(frozen=True, eq=False)
class CodeReport(data.Section):
    """``rows`` at one epsilon; ``ceiling`` is what none of them can keep more often.

    ``odds`` is what one code changes at most, ``even`` what a guess among K classes is
    right by it, and ``guess`` without it.
    """

    rows: Sequence[EncoderRow]
    epsilon: float
    n_classes: int

    name: ClassVar[str] = "said_by_one"
    place: ClassVar[str] = "releases"

    @property
    def ceiling(self) -> str:
        """Return the largest share of labels that any single code can keep."""
        return f"{100 * min(1.0, math.exp(self.epsilon) / self.n_classes):.1f}"

    @property
    def odds(self) -> str:
        """Return the factor by which one code changes any odds, at most."""
        return f"{math.exp(self.epsilon):.3g}"

    @property
    def even(self) -> str:
        """Return the largest probability of a class after one code, from even odds."""
        grown = math.exp(self.epsilon)
        return f"{100 * grown / (grown + self.n_classes - 1):.1f}"

    @property
    def guess(self) -> str:
        """Return the probability of each class before it."""
        return f"{100 / self.n_classes:.1f}"


def gather_code_report(views: Sequence[RunView], _: pd.DataFrame) -> CodeReport | None:
    """Return the encoders of the cells at the epsilon that the page speaks of."""
    first_views = first_setting_views(views)
    if not first_views:
        return None
    epsilon = nearest_to_epsilon_one(first_views).cell["epsilon"]
    views_by_protocol = {
        v.cell["protocol"]: v for v in first_views if v.cell["epsilon"] == epsilon
    }
    rows = []
    for name, view in views_by_protocol.items():
        task = Task.from_json(view.metadata("privatize")["task"])
        try:
            numbers = encoder_efficiency(task.encoder, len(task.classes), task.epsilon)
        except UserError:  # too many outputs to tell how often the label is kept
            continue
        row = EncoderRow(
            str(name),
            numbers.encoder,
            f"{100 * numbers.retention:.1f}",
            f"{numbers.signal:.4g}",
            f"{numbers.measured:.3g} ± {2 * numbers.se:.1g}",
            f"{math.ceil(9 / numbers.signal):,}",
            numbers.nbytes,
        )
        rows.append(row)
    n_classes = class_count(first_views[0])
    return CodeReport(rows, float(epsilon), n_classes) if rows else None


K = Axis("k", lambda _: (), label="number of classes")
MOST_PANELS = 6


@dataclass(frozen=True, eq=False)
class ByClasses(data.Section):
    """``scores`` are accuracies by series, learner, epsilon and k."""

    scores: pd.DataFrame
    encoders: Sequence[str]

    name: ClassVar[str] = "by_classes"
    place: ClassVar[str] = "results"

    @property
    def panels(self) -> list[tuple[str, float]]:
        """Return the learner and epsilon of each panel."""
        scores = self.scores[self.scores["method"] == LABELS.name]
        pairs = scores[["learner", "epsilon"]].drop_duplicates()
        return [(str(a), float(b)) for a, b in pairs.to_numpy()][:MOST_PANELS]

    @property
    def alt_text(self) -> str:
        """Return the description of the figure."""
        return (
            "Accuracy against the number of classes, a panel for each learner and"
            f" epsilon, a line for each of {', '.join(self.encoders)}, and what they"
            " are held against."
        )

    def draw(self, narrow: bool) -> Figure:
        """Draw a panel for each learner and epsilon."""
        figure, axes = style.make_panels(len(self.panels), narrow=narrow, height=3.2)
        levels = sorted(self.scores["k"].unique())
        names = list(self.scores["series"].drop_duplicates())
        looks = {name: encoder_look(place) for place, name in enumerate(self.encoders)}
        inks = {
            name: style.line_style(looks.get(name) or data.find_method(name).look)
            for name in names
        }
        for ax, (learner, epsilon) in zip(axes, self.panels, strict=True):
            panel_scores = self.scores[self.scores["learner"] == learner]
            panel_scores = panel_scores[
                panel_scores["epsilon"].isna() | (panel_scores["epsilon"] == epsilon)
            ]
            for name, ink in inks.items():
                rows = panel_scores[panel_scores["series"] == name]
                mean = rows.groupby("k", as_index=False)[["value", "se"]].mean()
                at = [levels.index(k) for k in mean["k"]]
                y, bars = 100 * mean["value"], 200 * mean["se"]
                ax.errorbar(at, y, yerr=bars, elinewidth=0.9, **ink)
            figures.draw_level_axis(ax, levels, K)
            ax.set_title(f"{learner}, epsilon {epsilon:g}")
            ax.grid(axis="y")
        figures.draw_left_label(axes, narrow, "accuracy (%)")
        handles = [
            Line2D([], [], label=_series_label(n), **ink) for n, ink in inks.items()
        ]
        figures.draw_legend(figure, handles, 3 if narrow else 6)
        return figure


def _series_label(name: str) -> str:
    method = data.methods_by_name().get(name)
    return method.label if method else name


def gather_by_classes(views: Sequence[RunView], _: pd.DataFrame) -> ByClasses | None:
    """Return the accuracies where there are several numbers of classes."""
    if not views[0].holds("report"):
        return None
    scores = mean_scores(views)
    scores = scores[scores["metric"] == ACCURACY.name]
    if scores["k"].nunique() < 2:
        return None
    series = scores.loc[scores["method"] == LABELS.name, "series"].drop_duplicates()
    return ByClasses(scores, [str(name) for name in series])


@dataclass(frozen=True, eq=False)
class Reliability(data.Section):
    """``bins``: series, learner, epsilon, n, confidence, accuracy of each bin."""

    bins: pd.DataFrame

    name: ClassVar[str] = "calibrated"
    place: ClassVar[str] = "results"

    @property
    def panels(self) -> list[str]:
        """Return the encoders and learners that have a panel each."""
        return list(self.bins["panel"].drop_duplicates())[:MOST_PANELS]

    @property
    def errors(self) -> str:
        """Return the calibration error of each line as text."""
        lines = []
        for panel, part in self.bins.groupby("panel", sort=False):
            errors = []
            for _, rows in part.groupby("epsilon"):
                gap = np.abs(rows["confidence"] - rows["accuracy"])
                off = float((rows["n"] * gap).sum() / max(1, rows["n"].sum()))
                errors.append(f"{100 * off:.1f}")
            lines.append(f"{panel} {', '.join(errors)}")
        return "; ".join(lines[:MOST_PANELS])

    @property
    def alt_text(self) -> str:
        """Return the description of the figure."""
        return (
            "Frequency of right answers against how sure the model was, in 15 bins, a"
            " panel for each encoder and learner, a line for each epsilon."
        )

    def draw(self, narrow: bool) -> Figure:
        """Draw a panel for each encoder and learner, a line for each epsilon."""
        figure, axes = style.make_panels(len(self.panels), narrow=narrow, height=3.2)
        levels = sorted(self.bins["epsilon"].unique())
        for ax, panel in zip(axes, self.panels, strict=True):
            ax.plot([0, 100], [0, 100], color=style.MUTED, lw=0.8)
            for place, epsilon in enumerate(levels):
                in_panel = self.bins["panel"] == panel
                rows = self.bins[in_panel & (self.bins["epsilon"] == epsilon)]
                occupied = rows[rows["n"] > 0]
                ink = style.line_style(encoder_look(place))
                ax.plot(100 * occupied["confidence"], 100 * occupied["accuracy"], **ink)
            ax.set_title(panel)
            ax.set_xlabel("how sure (%)")
            ax.grid()
        figures.draw_left_label(axes, narrow, "how often right (%)")
        inks = (style.line_style(encoder_look(place)) for place in range(len(levels)))
        handles = [
            Line2D([], [], label=f"epsilon {epsilon:g}", **ink)
            for epsilon, ink in zip(levels, inks, strict=True)
        ]
        figures.draw_legend(figure, handles, 3 if narrow else 6)
        return figure


def gather_calibrated(views: Sequence[RunView], _: pd.DataFrame) -> Reliability | None:
    """Return the bins of each model of the first setting, all repetitions together."""
    study_views = [view for view in first_setting_views(views) if view.holds("report")]
    if not study_views:
        return None
    bins = pd.concat(map(_reliability_bins, study_views), ignore_index=True)
    return Reliability(bins)


def _reliability_bins(view: RunView) -> pd.DataFrame:
    table = view.read("report", RELIABILITY.name)
    table = table.assign(
        confidence=table["confidence"] * table["n"],
        accuracy=table["accuracy"] * table["n"],
    )
    summed = table.groupby("low", as_index=False)[["n", "confidence", "accuracy"]].sum()
    n = summed["n"].clip(lower=1)
    means = {name: summed[name] / n for name in ("confidence", "accuracy")}
    panel = f"{view.cell['protocol']}, {view.cell['learner']}"
    return summed.assign(**means, panel=panel, epsilon=view.cell["epsilon"])
