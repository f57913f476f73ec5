"""Figures and tables of VEC: networks on images, circles with Theorem 2, and beyond."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import brentq
from scipy.stats import ncx2

from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.chain.axis import Axis
from curvote.chain.measure import Look
from curvote.data.simulation import records as simulation
from curvote.data.simulation.records import CIRCLE, CircleParameters
from curvote.papers import rows as words
from curvote.papers.drawing import ACCURACY, PlotLine, line_panels, protocol_lines
from curvote.papers.reproduction import Evidence
from curvote.papers.rows import Row, complete_rows, distinct_values, select
from curvote.papers.vec.entries import REPRODUCTIONS
from curvote.pipeline.config.settings import PROTOCOL, expand_settings
from curvote.report import style
from curvote.systems.labels.codes.encoding import encode
from curvote.systems.labels.learners.knn import KNN
from curvote.systems.labels.method import theory

AUTO: Final = "auto"
# What a cell has beside its own model, whatever its encoder.
BASELINES: Final = ("majority", "clean", "bayes")
_PLACES: Final = (
    "setting",
    "n_classes",
    "quantity",
    "protocol",
    "learner",
    "method",
    "epsilon",
)
LOOKS: Final = {
    "rr": Look("#6460c8", "x", ":"),
    "lp_2st": Look("#6460c8", "v", "--"),
    "alibi": Look("#cc79a7", "P"),
    "vector": Look(style.BLUE, "s", above=5),
    "oue": Look("#56b4e9", "^"),
    "hadamard": Look(style.GREEN, "D", size=4),
    "subset": Look("#d98c00", "h", "--", above=5),
    AUTO: Look(style.USED, "o", width=2.4, size=6, above=6),
    "majority": Look(style.UNUSED, "", ":"),
    "clean": Look(style.MUTED, "", "--", width=1.2),
    "bayes": Look(style.INK, "", "-", width=1.0),
}


def accuracy_rows(evidence: Evidence, quantity: str = "accuracy") -> Iterator[Row]:
    """Yield the rows of a measured quantity; rows without it are left out.

    ``protocol`` is the label of the encoder, or one of `BASELINES`, which stand once:
    the majority as `auto` decodes it. ``axes`` holds the labels of the row's setting.
    """
    for summary in evidence.summaries:
        method = summary["method"]
        baseline = method if method in BASELINES else None
        named = summary["protocol"] in {AUTO, baseline}
        if summary.get(quantity) is not None and (named or not baseline):
            learns = baseline not in {"majority", "bayes"}
            yield words.score_row(summary, quantity) | {
                "protocol": baseline or summary["protocol"],
                "learner": summary["learner"] if learns else None,
                "axes": summary.get("setting", {}),
            }


def sort_rows(rows: Iterable[Row]) -> list[Row]:
    """Return rows by setting, then by protocol, learner and epsilon.

    Of several that say the same the first is kept: a baseline stands beside each
    learner.
    """
    first: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        first.setdefault(tuple(row[name] for name in _PLACES), row)
    listed = list(first.values())
    settings = distinct_values(listed, "setting")
    ranks = {name: rank for rank, name in enumerate(LOOKS)}

    def sort_key(row: Row) -> tuple[Any, ...]:
        return (
            settings.index(row["setting"]),
            row["quantity"],
            ranks[row["protocol"]],
            str(row["learner"]),
            row["method"],
            row["n_classes"],
            float("inf") if row["epsilon"] is None else row["epsilon"],
        )

    return sorted(listed, key=sort_key)


def repeat_without_epsilon(rows: Sequence[Row]) -> list[Row]:
    """Repeat rows without epsilon at each epsilon of the others."""
    levels = sorted(distinct_values(rows, "epsilon"))
    return [
        row | {"epsilon": level}
        for row in rows
        for level in (levels if row["epsilon"] is None else [row["epsilon"]])
    ]


IMBALANCED: Final = "imbalanced"
N_CLASSES: Final = dict.fromkeys(("mnist", "fashion-mnist", "cifar-10", "zip"), 10) | {
    "cifar-100": 100,
    "phonemes": 5,
    IMBALANCED: 16,
}
_PRINTED: Final = {
    "mnist": "mnist",
    "fashion_mnist": "fashion-mnist",
    "cifar10": "cifar-10",
    "cifar100": "cifar-100",
}
# In one round every prior is uniform: LP-1ST is randomized response.
_SAME: Final = {"lp_1st": "rr"}

Cell = tuple[str, str, float]


def table_rows(name: str, evidence: Evidence) -> list[Row]:
    """Return the accuracy by ``setting`` (the data set), printed values beside it.

    Raises:
        UserError: a printed cell that the pipelines do not compute.
    """
    row_of: dict[Cell, Row] = {}
    cells = []
    for row in accuracy_rows(evidence):
        setting = row["pipeline"].removeprefix(f"{name}-")
        cells.append(row | {"setting": setting, "n_classes": N_CLASSES[setting]})
        row_of[setting, row["protocol"], row["epsilon"]] = cells[-1]
    for cell, value in printed_accuracies().items():
        if f"{name}-{cell[0]}" in REPRODUCTIONS[name].pipelines:
            if cell not in row_of:
                raise UserError(
                    f"{name} prints a value for {cell[1]} on {cell[0]} at epsilon"
                    f" {cell[2]:g}, which its pipelines do not compute; take your own"
                    " of that name out of pipelines.yaml."
                )
            row_of[cell]["published"] = value
    return complete_rows(sort_rows(cells))


def printed_accuracies() -> Mapping[Cell, float]:
    """Return the printed accuracy in percent by data set, encoder and epsilon."""
    printed: dict[Cell, float] = {}
    for row in words.published_rows("vec", "label_ldp_images.csv"):
        encoder = _SAME.get(row["method"], row["method"])
        cell = _PRINTED[row["dataset"]], encoder, float(row["epsilon"])
        printed[cell] = float(row["accuracy_pct"])
    return printed


def table_figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a data set: accuracy against epsilon; the printed one in dots."""
    charts = {}
    for setting in dict.fromkeys(row["setting"] for row in results):
        selected = select(results, setting=setting)
        printed_rows = [row for row in selected if row["published"]]
        charts[setting] = protocol_lines(repeat_without_epsilon(selected), LOOKS) + [
            PlotLine(
                f"{line.label}, printed",
                replace(line.look, line=":", marker="", width=1.0, above=2),
                words.column_as_ours(line.rows, "published"),
            )
            for line in protocol_lines(printed_rows, LOOKS)
        ]
    return line_panels(charts, y=ACCURACY)


def table_conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the distance from print, and the best unprinted encoder."""
    apart = [
        (row["curvote"] - row["published"], row) for row in results if row["published"]
    ]
    within = sum(abs(gap) <= 3 for gap, _ in apart)
    yield f"{within} of {len(apart)} printed cells within 3 points"
    yield "LP-1ST, which table 2 prints, is rr: its only prior is uniform"
    for gap, row in sorted(apart, key=lambda pair: -abs(pair[0]))[:3]:
        place = f"{row['setting']}, {row['protocol']}, epsilon {row['epsilon']:g}"
        yield f"far: {gap:+.1f} points ({place})"


ENCODER: Final = "vector"
EXCESS, BOUND, HOLDS = "excess", "excess_bound", "knn_bound_holds"
POINTS: Final = 200
_FARTHEST = 10.0  # no record lies that far from another one


def bound_rows(evidence: Evidence) -> Iterator[Row]:
    """Yield excess risk and bounds of one training set for each cell.

    The excess of `vector` and its bound as probabilities, and the share of points at
    which the error of the votes stays below (36).
    """
    for labels, section in expand_settings(evidence.configs[0]):
        if labels[PROTOCOL] == ENCODER:
            for method, value in _cell_row(section).items():
                yield {
                    "pipeline": evidence.summaries[0]["pipeline"],
                    "setting": labels["sigma"],
                    "n_classes": int(labels["n_classes"]),
                    "epsilon": float(section["epsilon"][0]),
                    "method": method,
                    "quantity": "value",
                    "curvote": value,
                }


def _cell_row(section: Mapping[str, Any]) -> dict[str, float]:
    law, seed = CircleParameters(**section["source"]), section["seed"]
    n, epsilon = section["clients"]["train"], section["epsilon"][0]
    k = int(section["learners"][0]["params"]["k"])
    rng = np.random.default_rng(seed)
    trained, tested = (CIRCLE.clients(law, size, rng) for size in (n, POINTS))
    places = range(law.n_classes)
    codes = encode(trained["label"], places, epsilon, ENCODER, random_state=seed)
    votes = KNN(k=k).fit(trained["curve"], codes, rng).votes(tested["curve"])
    eta, gap = CIRCLE.eta(law, tested["curve"]), theory.vector_gap(epsilon)
    delta = gap * np.abs(votes - eta).max(axis=1)
    r0 = np.array([share_radius(law, x, 2 * k / n) for x in tested["curve"]])
    allowed = theory.knn_bound(k, law.n_classes, epsilon, lipschitz_constant(law), r0)
    return {
        EXCESS: theory.excess_risk(eta, votes.argmax(axis=1)),
        BOUND: theory.excess_bound(eta, delta, gap),
        HOLDS: float(np.mean(delta <= allowed)),
    }


def lipschitz_constant(law: CircleParameters) -> float:
    """Return a Lipschitz constant of the regression functions of a circle.

    sin(pi/K) / (2 sigma^2): the slope between two neighbours, far out.
    """
    return float(np.sin(np.pi / law.n_classes) / (2 * law.deviation**2))


def share_radius(law: CircleParameters, x: FloatArray, share: float) -> float:
    """Return the radius around ``x`` (2,) that holds a share of the records, (32)."""
    away = ((simulation.centres(law.n_classes) - x) ** 2).sum(axis=1) / law.deviation**2
    weights = simulation.class_shares(law.n_classes, law.shares)

    def shortfall(r: float) -> float:
        return float(ncx2.cdf((r / law.deviation) ** 2, 2, away) @ weights) - share

    return float(brentq(shortfall, 0, _FARTHEST))


CLASSES: Final = Axis("n_classes", lambda _: (), label="number of classes K")
_MECHANISMS: Final = ("rr", "alibi", "vector", "subset")


def circle_rows(_: str, evidence: Evidence) -> list[Row]:
    """Return the accuracy by ``setting`` (sigma) and ``n_classes``, then the bounds.

    A bound and what it bounds are of quantity ``value``, as probabilities, for the
    encoder ``vector``; they have no protocol.
    """
    accuracy = [
        row
        | {"setting": row["axes"]["sigma"], "n_classes": int(row["axes"]["n_classes"])}
        for row in accuracy_rows(evidence)
    ]
    return complete_rows([*sort_rows(accuracy), *bound_rows(evidence)])


def circle_figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a setting: accuracy against K, a line an encoder."""
    accuracies_shown = select(results, quantity="accuracy")
    names = dict.fromkeys(row["setting"] for row in accuracies_shown)
    charts = {
        f"sigma = {name}": protocol_lines(select(accuracies_shown, setting=name), LOOKS)
        for name in names
    }
    return line_panels(charts, CLASSES, y=ACCURACY)


def circle_terminal_rows(results: Sequence[Row]) -> list[Row]:
    """Return the rows of accuracies."""
    return select(results, quantity="accuracy")


def circle_conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the text's statements, whether both bounds hold, how loose Theorem 2 is."""
    yield "the paper: with sigma = 2/K the accuracy of vectors remains stable"
    for name in _MECHANISMS:
        selected = select(results, setting="2/K", protocol=name)
        texts = ", ".join(
            f"{row['curvote']:.1f} at {row['n_classes']}" for row in selected
        )
        yield f"  {name}: {texts}"
    yield f"subset less vector, the worst cell: {_worst_gap(results)}"
    excess, bounds = select(results, method=EXCESS), select(results, method=BOUND)
    pairs = zip(excess, bounds, strict=True)
    n_held = sum(below["curvote"] <= above["curvote"] for below, above in pairs)
    yield f"Theorem 2 is above the excess in {n_held} of {len(excess)} cells"
    shares = [row["curvote"] for row in select(results, method=HOLDS)]
    yield f"(36), delta .05, holds at {100 * min(shares):.1f} % of points or more"


def _worst_gap(results: Sequence[Row]) -> str:
    """Return the largest gap of subset selection below vectors."""
    gaps = []
    for row in select(results, protocol="vector"):
        place = {name: row[name] for name in ("setting", "n_classes")}
        for other in select(results, protocol="subset", **place):
            apart = math.hypot(row["se"] or 0, other["se"] or 0)
            gaps.append((other["curvote"] - row["curvote"], apart, place))
    if not gaps:
        return "none"
    gap, error, place = min(gaps, key=lambda gap_row: gap_row[0])
    where = f"sigma {place['setting']}, K = {place['n_classes']}"
    return f"{gap:+.2f} ± {error:.2f} points ({where})"


BALANCED: Final = "balanced_accuracy"
# The label of a protocol that decides for the sake of rare classes.
_DECIDES: Final = "balanced"
_NEIGHBOURS: Final = "knn-200"
_PAIRS: Final = {
    ("vector", _NEIGHBOURS): LOOKS["vector"],
    ("vector", AUTO): Look("#56b4e9", "^"),
    (AUTO, _NEIGHBOURS): Look("#d98c00", "h", "--"),
    (AUTO, AUTO): LOOKS[AUTO],
}


def beyond_rows(name: str, evidence: Evidence) -> list[Row]:
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


def beyond_figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
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


def beyond_conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield where `auto` is behind the published way, in points."""
    ours = select(results, quantity="accuracy", protocol=AUTO, learner=AUTO)
    apart = []
    for row in (row for row in ours if row["method"] != _DECIDES):
        place = {name: row[name] for name in ("setting", "n_classes", "epsilon")}
        paper = select(results, protocol="vector", learner=_NEIGHBOURS, **place)
        text = f"{row['setting']}, K = {row['n_classes']}, epsilon {row['epsilon']:g}"
        apart += [(row["curvote"] - other["curvote"], text) for other in paper]
    behind = [gap_and_text for gap_and_text in apart if gap_and_text[0] < 0]
    mean = sum(gap for gap, _ in apart) / max(1, len(apart))
    ahead = f"{len(apart) - len(behind)} of {len(apart)} cells"
    yield f"auto is not behind vectors with 200 neighbours in {ahead}"
    yield f"  mean over the cells: {mean:+.1f} points"
    for gap, text in sorted(behind):
        yield f"  behind: {gap:+.1f} points ({text})"
