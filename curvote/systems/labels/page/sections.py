"""Sections of a page of private labels: figures and tables."""

import math
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.base.errors import UserError
from curvote.base.text import format_names
from curvote.chain.axis import Axis
from curvote.chain.measure import SCORES, Look
from curvote.pipeline.run.results import RunView
from curvote.report import data, figures, style
from curvote.systems.labels.codes.encoders import encoder_efficiency
from curvote.systems.labels.messages import Task
from curvote.systems.labels.metrics import ACCURACY, LABELS
from curvote.systems.labels.system import HONEST, RECALLS, RELIABILITY, SHARES
from curvote.systems.labels.words import public_places, words_of

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


@dataclass(frozen=True)
class Features(data.Section):
    """``numbers`` of each of ``n`` records; ``size`` components of them, if any.

    ``kind`` names what describes a record in place of its numbers, if anything;
    ``private`` are the words of each column that is none of them, as text.
    """

    n: int
    numbers: int
    size: int | None
    kind: str | None = None
    private: Sequence[str] = ()

    name: ClassVar[str] = "features"
    place: ClassVar[str] = "releases"

    @property
    def public(self) -> Sequence[str]:
        """Return lines on what is public before any noise."""
        which = "without private columns" if self.private else "all of them"
        numbers = f"the {self.numbers} numbers of each of {self.n:,} records"
        lines = [f"{numbers}, {which}"]
        if self.kind:
            lines.append(f"what describes them, made without a label: {self.kind}")
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
    public = metadata["public"]
    kind = public.get("features") or "upright" * public.get("deskew", False)
    private = public.get("private", [])
    numbers = len(public_places(private, len(metadata["grid"])))
    texts = [f"{x} ({format_names(words)})" for x, words in words_of(private).items()]
    return Features(n, numbers, public["size"], kind, texts)


# A model: its accuracy by codes with an interval, and by labels in a study.
HonestRow = namedtuple("HonestRow", "series learner epsilon estimate interval true")


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
    rows = []
    for view in scored:
        scores, cell, true = _first_scores(view), view.cell, data.NO_VALUE
        if view.holds("report"):
            table = view.read("report", SCORES.name)
            selected = (table["replicate"] == 0) & (table["metric"] == ACCURACY.name)
            selected &= table["method"] == LABELS.name
            true = f"{100 * table.loc[selected, 'value'].iloc[0]:.1f}"
        # Of private columns also what the model is without each.
        accuracies = scores[scores["scoring"].str.match(ACCURACY.name)]
        for score in accuracies.to_dict("records"):
            less = score["scoring"].removeprefix(ACCURACY.name)
            ends = (score[name] for name in ("value", "low", "high"))
            value, low, high = (f"{100 * end:.1f}" for end in ends)
            texts = str(cell["protocol"]), f"{cell['learner']}{less}"
            numbers = f"{cell['epsilon']:g}", value, f"{low} to {high}"
            rows.append(HonestRow(*texts, *numbers, data.NO_VALUE if less else true))
    holdout_size = int(_first_scores(scored[0])["n"].iloc[0])
    return Honest(rows, holdout_size, scored[0].holds("report"))


def _first_scores(view: RunView) -> pd.DataFrame:
    table = view.read("train", HONEST.name)
    return pd.DataFrame(table[table["replicate"] == 0])


MOST_CLASSES = 40


# A class: its share by codes and by labels, and how often it is recognised.
ClassRow = namedtuple("ClassRow", "name share true recall predicted")


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
    view = min(first_views, key=data.epsilon_distance)
    study = view.holds("report")
    table = view.read("train", SHARES.name)
    first = table[table["replicate"] == 0]
    parts = zip(first["class"].astype(str), first["share"], first["se"], strict=True)
    shares = {name: f"{100 * a:.1f} ± {200 * se:.1f}" for name, a, se in parts}
    rows = [ClassRow(*pair, *[data.NO_VALUE] * 3) for pair in shares.items()]
    if study:
        table = view.read("report", RECALLS.name)
        counts = table.groupby(table["class"].astype(str), sort=False)
        summed = counts[["n", "recognised", "said"]].sum()
        tested = summed["n"].sum()
        rows = [
            ClassRow(
                str(name),
                shares[str(name)],
                data.format_percent(row["n"] / tested),
                data.format_percent(row["recognised"] / row["n"] if row["n"] else None),
                data.format_percent(row["said"] / tested),
            )
            for name, row in summed.iterrows()
        ]
    called = f"{view.cell['protocol']}, {view.cell.with_values(protocol=None).words}"
    return EachClass(
        rows[:MOST_CLASSES], called, max(0, len(rows) - MOST_CLASSES), study
    )


# An encoder as texts: numbers of its law, and of draws.
EncoderRow = namedtuple(
    "EncoderRow", "series encoder retention signal measured labels nbytes"
)


@dataclass(frozen=True, eq=False)
class CodeReport(data.Section):
    """``rows`` at one epsilon, and texts of what holds for any encoder.

    ``odds`` is the factor by which one code changes any odds at most, ``even`` the
    largest probability of one of the classes after it, in percent and from even odds,
    ``guess`` that before it; ``ceiling`` is the largest share of labels that a code can
    keep.
    """

    rows: Sequence[EncoderRow]
    epsilon: float
    n_classes: int
    odds: str
    even: str
    guess: str
    ceiling: str

    name: ClassVar[str] = "said_by_one"
    place: ClassVar[str] = "releases"


def gather_code_report(views: Sequence[RunView], _: pd.DataFrame) -> CodeReport | None:
    """Return the encoders of the cells at the epsilon that the page speaks of."""
    first_views = first_setting_views(views)
    if not first_views:
        return None
    epsilon = min(first_views, key=data.epsilon_distance).cell["epsilon"]
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
    if not rows:
        return None
    # Of label and private words together, where there are such.
    k, odds = len(task.classes), math.exp(epsilon)
    shares = odds / (odds + k - 1), 1 / k, min(1.0, odds / k)
    texts = f"{odds:.3g}", *(f"{100 * share:.1f}" for share in shares)
    return CodeReport(rows, float(epsilon), k, *texts)


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
        methods = data.methods_by_name()
        labels = {name: getattr(methods.get(name), "label", name) for name in names}
        handles = [Line2D([], [], label=labels[n], **ink) for n, ink in inks.items()]
        figures.draw_legend(figure, handles, 3 if narrow else 6)
        return figure


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
    bins, names = [], ["confidence", "accuracy"]
    for view in study_views:
        table = view.read("report", RELIABILITY.name)
        table = table.assign(**{name: table[name] * table["n"] for name in names})
        summed = table.groupby("low", as_index=False)[["n", *names]].sum()
        summed[names] = summed[names].div(summed["n"].clip(lower=1), axis=0)
        panel = f"{view.cell['protocol']}, {view.cell['learner']}"
        bins.append(summed.assign(panel=panel, epsilon=view.cell["epsilon"]))
    return Reliability(pd.concat(bins, ignore_index=True))
