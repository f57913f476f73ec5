"""Tables of a page of private labels: features, honest scores, classes, codes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from curvote.base.errors import UserError
from curvote.chain.measure import SCORES, Look
from curvote.pipeline.run.results import RunView
from curvote.report.data import NO_VALUE, epsilon_distance, find_method, format_percent
from curvote.report.section import Section
from curvote.systems.labels.codes.efficiency import encoder_efficiency
from curvote.systems.labels.metrics import ACCURACY, LABELS
from curvote.systems.labels.system import HONEST, RECALLS, SHARES
from curvote.systems.labels.task import Task

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


def series_name(view: RunView, method: str) -> str:
    """Return the name of a line: the protocol's label, or a reference method's.

    Methods beside the model are the same for every encoder, but for noise.
    """
    return str(view.cell["protocol"]) if method == LABELS.name else method


def mean_scores(views: Sequence[RunView]) -> pd.DataFrame:
    """Return the mean scores of cells: ``CELL``, ``value``, ``se`` and ``n``."""
    scores = pd.concat([_cell_scores(view) for view in views], ignore_index=True)
    means = scores.groupby([*CELL], dropna=False, sort=False)["value"]
    summary = means.agg(value="mean", se="sem", n="size").reset_index()
    return summary.assign(se=summary["se"].fillna(0))


def _cell_scores(view: RunView) -> pd.DataFrame:
    scores = view.read("report", SCORES.name)
    cell: dict[str, Any] = {
        "learner": view.cell["learner"],
        "epsilon": view.cell["epsilon"],
        "k": class_count(view),
    }
    series = [series_name(view, method) for method in scores["method"].astype(str)]
    return pd.DataFrame(scores).assign(series=series, **cell)


def encoder_look(place: int) -> Look:
    """Return the look of the encoder at a place of the list."""
    return LOOKS[place % len(LOOKS)]


def series_looks(series: Sequence[str], encoders: Sequence[str]) -> dict[str, Look]:
    """Return a look for each line: encoders by place, others by what they are."""
    encoder_looks = {name: encoder_look(place) for place, name in enumerate(encoders)}
    return {name: encoder_looks.get(name) or find_method(name).look for name in series}


def first_setting_views(views: Sequence[RunView]) -> list[RunView]:
    """Return the cells of the first combination of a grid that have a model."""
    trained_views = [view for view in views if view.holds("train")]
    return [
        view
        for view in trained_views
        if class_count(view) == class_count(trained_views[0])
    ]


def nearest_to_epsilon_one(views: Sequence[RunView]) -> RunView:
    """Return the cell nearest to epsilon 1, the first of several."""
    return min(views, key=epsilon_distance)


@dataclass(frozen=True)
class Features(Section):
    """``numbers`` of each of ``n`` records; ``size`` components of them, if any."""

    n: int
    numbers: int
    size: int | None

    name: ClassVar[str] = "features"
    place: ClassVar[str] = "releases"

    @property
    def public(self) -> Sequence[str]:
        """Return lines on what is public before any noise."""
        lines = [
            f"the {self.numbers} numbers of each of {self.n:,} records, all of them"
        ]
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
    view = first_views[0]
    metadata, columns = (
        view.metadata("features"),
        view.columns("features", "features", (0,)),
    )
    n = len(columns["record"])
    return Features(n, len(metadata["grid"]), metadata["public"]["size"])


WORDS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "brier": "Brier score",
    "log_loss": "log loss",
}


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
class Honest(Section):
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
    scored_views = [
        view for view in first_setting_views(views) if len(_first_scores(view))
    ]
    if not scored_views:
        return None
    holdout_size = int(_first_scores(scored_views[0])["n"].iloc[0])
    return Honest(
        list(map(_honest_row, scored_views)),
        holdout_size,
        scored_views[0].holds("report"),
    )


def _first_scores(view: RunView) -> pd.DataFrame:
    table = view.read("train", HONEST.name)
    return pd.DataFrame(table[table["replicate"] == 0])


def _honest_row(view: RunView) -> HonestRow:
    scores = _first_scores(view)
    score, cell = scores[scores["scoring"] == ACCURACY.name].iloc[0], view.cell
    return HonestRow(
        str(cell["protocol"]),
        str(cell["learner"]),
        f"{cell['epsilon']:g}",
        f"{100 * score['value']:.1f}",
        f"{100 * score['low']:.1f} to {100 * score['high']:.1f}",
        next(_true_accuracy(view), NO_VALUE),
    )


def _true_accuracy(view: RunView) -> Iterator[str]:
    if view.holds("report"):
        scores = view.read("report", SCORES.name)
        selected = (scores["replicate"] == 0) & (scores["metric"] == ACCURACY.name)
        selected &= scores["method"] == LABELS.name
        yield f"{100 * scores.loc[selected, 'value'].iloc[0]:.1f}"


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
class EachClass(Section):
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
    return [ClassRow(name, share, *[NO_VALUE] * 3) for name, share in texts]


def _study_rows(view: RunView) -> list[ClassRow]:
    table = view.read("report", RECALLS.name)
    counts = table.groupby(table["class"].astype(str), sort=False)
    summed = counts[["n", "recognised", "said"]].sum()
    shares, tested = _share_texts(view), summed["n"].sum()
    return [
        ClassRow(
            str(name),
            shares[str(name)],
            format_percent(row["n"] / tested),
            format_percent(row["recognised"] / row["n"] if row["n"] else None),
            format_percent(row["said"] / tested),
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
class CodeReport(Section):
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
    rows = [
        row
        for name, view in views_by_protocol.items()
        for row in _encoder_rows(str(name), view)
    ]
    n_classes = len(first_views[0].metadata("ingest")["classes"])
    return CodeReport(rows, float(epsilon), n_classes) if rows else None


def _encoder_rows(series: str, view: RunView) -> Iterator[EncoderRow]:
    task = Task.from_json(view.metadata("privatize")["task"])
    try:
        numbers = encoder_efficiency(task.encoder, len(task.classes), task.epsilon)
    except UserError:  # too many outputs to tell how often the label is kept
        return
    yield (
        EncoderRow(
            series,
            numbers.encoder,
            f"{100 * numbers.retention:.1f}",
            f"{numbers.signal:.4g}",
            f"{numbers.measured:.3g} ± {2 * numbers.se:.1g}",
            f"{math.ceil(9 / numbers.signal):,}",
            numbers.nbytes,
        )
    )
