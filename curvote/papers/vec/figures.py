"""Figures and tables of VEC: networks on images, circles with Theorem 2, and beyond."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from scipy.optimize import brentq
from scipy.stats import ncx2

from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.chain.axis import Axis
from curvote.data.simulation import records as simulation
from curvote.data.simulation.records import CIRCLE, CircleParameters
from curvote.papers.figure import ACCURACY, Chart, Series, looks
from curvote.papers.reproduction import Evidence
from curvote.papers.rows import (
    Row,
    published_rows,
    score_row,
    select,
)
from curvote.pipeline.config.settings import PROTOCOL, expand_settings
from curvote.systems.labels.codes.encoding import encode
from curvote.systems.labels.learners.knn import KNN
from curvote.systems.labels.method import theory

AUTO: Final = "auto"
LOOKS: Final = looks("vec")
# What a cell has beside its own model, whatever its encoder.
BASELINES: Final = ("majority", "clean", "bayes")


def accuracy_rows(evidence: Evidence, quantity: str = "accuracy") -> Iterator[Row]:
    """Yield the rows of a measured quantity; rows without it are left out.

    ``protocol`` is the label of the encoder, or one of `BASELINES`, which stand once:
    the majority as `auto` decodes it. ``axes`` holds the labels of the row's setting,
    and ``setting`` what a pipeline's name says beside the entry's.
    """
    for summary in evidence.summaries:
        method, pipeline = summary["method"], summary["pipeline"]
        baseline = method if method in BASELINES else None
        named = summary["protocol"] in {AUTO, baseline}
        if summary.get(quantity) is not None and (named or not baseline):
            learns = baseline not in {"majority", "bayes"}
            yield score_row(summary, quantity) | {
                "setting": pipeline.removeprefix(f"{evidence.entry.name}-"),
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
    ranks = {name: rank for rank, name in enumerate(LOOKS)}
    settings: dict[str, int] = {}
    for row in rows:
        place = (
            settings.setdefault(row["setting"], len(settings)),
            row["quantity"],
            ranks[row["protocol"]],
            str(row["learner"]),
            row["method"],
            row["n_classes"],
            math.inf if row["epsilon"] is None else row["epsilon"],
        )
        first.setdefault(place, row)
    return [first[place] for place in sorted(first)]


N_CLASSES: Final = dict.fromkeys(("mnist", "fashion-mnist", "cifar-10", "zip"), 10) | {
    "cifar-100": 100,
    "phonemes": 5,
    "imbalanced": 16,
}


def table_rows(evidence: Evidence) -> list[Row]:
    """Return the accuracy by ``setting`` (the data set), printed values beside it.

    In one round every prior is uniform: LP-1ST is randomized response.

    Raises:
        UserError: a printed cell that the pipelines do not compute.
    """
    name, cells = evidence.entry.name, list(accuracy_rows(evidence))
    for row in cells:
        row["n_classes"] = N_CLASSES[row["setting"]]
    for line in published_rows("vec", "label_ldp_images.csv"):
        setting, epsilon = line["dataset"], line["epsilon"]
        encoder = "rr" if line["method"] == "lp_1st" else line["method"]
        if f"{name}-{setting}" in evidence.entry.pipelines:
            place = {"setting": setting, "protocol": encoder, "epsilon": epsilon}
            if not (beside := select(cells, **place)):
                raise UserError(
                    f"{name} prints a value for {encoder} on {setting} at epsilon"
                    f" {epsilon:g}, which its pipelines do not compute; take your own"
                    " of that name out of pipelines.yaml."
                )
            for row in beside:
                row["published"] = line["accuracy_pct"]
    return sort_rows(cells)


_LINES: Final = Series(["protocol"], LOOKS, str)
# A panel a data set: accuracy against epsilon; the printed one in dots.
table_figure = Chart(
    ["setting"],
    [
        _LINES,
        Series(
            ["protocol"],
            LOOKS,
            "{}, printed".format,
            value="published",
            changes={"line": ":", "marker": "", "width": 1.0, "above": 2},
        ),
    ],
    y=ACCURACY,
)


def table_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the distance from print, and the best unprinted encoder."""
    apart = [(r["curvote"] - r["published"], r) for r in rows if r["published"]]
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


def circle_rows(evidence: Evidence) -> list[Row]:
    """Return the accuracy by ``setting`` (sigma) and ``n_classes``, then the bounds.

    A bound and what it bounds are of quantity ``value``, as probabilities, for the
    encoder ``vector``; they have no protocol.
    """
    accuracy = [
        row
        | {"setting": row["axes"]["sigma"], "n_classes": int(row["axes"]["n_classes"])}
        for row in accuracy_rows(evidence)
    ]
    return [*sort_rows(accuracy), *bound_rows(evidence)]


def bound_rows(evidence: Evidence) -> Iterator[Row]:
    """Yield excess risk and bounds of one training set for each cell.

    The excess of `vector` and its bound as probabilities, and the share of points at
    which the error of the votes stays below (36).
    """
    for labels, section in expand_settings(evidence.configs[0]):
        if labels[PROTOCOL] == ENCODER:
            for method, value in _excess_and_bounds(section).items():
                yield {
                    "pipeline": evidence.summaries[0]["pipeline"],
                    "setting": labels["sigma"],
                    "n_classes": int(labels["n_classes"]),
                    "epsilon": float(section["epsilon"][0]),
                    "method": method,
                    "quantity": "value",
                    "curvote": value,
                }


def _excess_and_bounds(section: Mapping[str, Any]) -> dict[str, float]:
    law, seed = CircleParameters(**section["source"]), section["seed"]
    n, epsilon = section["clients"]["train"], section["epsilon"][0]
    k = int(section["learners"][0]["params"]["k"])
    rng = np.random.default_rng(seed)
    trained, tested = (CIRCLE.clients(law, size, rng) for size in (n, POINTS))
    classes, x = range(law.n_classes), tested["curve"]
    codes = encode(trained["label"], classes, epsilon, ENCODER, random_state=seed)
    votes = KNN(k=k).fit(trained["curve"], codes, rng).votes(x)
    eta, gap = CIRCLE.eta(law, x), theory.vector_gap(epsilon)
    delta = gap * np.abs(votes - eta).max(axis=1)
    # A Lipschitz constant of the regression functions: the slope between two
    # neighbours, far out.
    slope = float(np.sin(np.pi / law.n_classes) / (2 * law.deviation**2))
    r0 = np.array([share_radius(law, point, 2 * k / n) for point in x])
    allowed = theory.knn_bound(k, law.n_classes, epsilon, slope, r0)
    return {
        EXCESS: theory.excess_risk(eta, votes.argmax(axis=1)),
        BOUND: theory.excess_bound(eta, delta, gap),
        HOLDS: float(np.mean(delta <= allowed)),
    }


def share_radius(law: CircleParameters, x: FloatArray, share: float) -> float:
    """Return the radius around ``x`` (2,) that holds a share of the records, (32)."""
    away = ((simulation.centres(law.n_classes) - x) ** 2).sum(axis=1) / law.deviation**2
    weights = simulation.class_shares(law.n_classes, law.shares)

    def shortfall(r: float) -> float:
        return float(ncx2.cdf((r / law.deviation) ** 2, 2, away) @ weights) - share

    return float(brentq(shortfall, 0, _FARTHEST))


circle_terminal_rows = partial(select, quantity="accuracy")
# A panel a setting: accuracy against K, a line an encoder.
circle_figure = Chart(
    ["setting"],
    [_LINES],
    "sigma = {}".format,
    Axis("n_classes", lambda _: (), label="number of classes K"),
    ACCURACY,
    {"quantity": "accuracy"},
)


def circle_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield accuracies by K, whether both bounds hold, how loose Theorem 2 is."""
    for name in ("rr", "alibi", "vector", "subset"):
        inside = select(rows, setting="2/K", protocol=name)
        texts = (f"{row['curvote']:.1f} at {row['n_classes']}" for row in inside)
        yield f"  {name}: {', '.join(texts)}"
    gaps = []
    for row in select(rows, protocol="vector"):
        place = {name: row[name] for name in ("setting", "n_classes")}
        for other in select(rows, protocol="subset", **place):
            error = math.hypot(row["se"] or 0, other["se"] or 0)
            where = f"sigma {row['setting']}, K = {row['n_classes']}"
            gaps.append((other["curvote"] - row["curvote"], error, where))
    worst = "none"
    if gaps:
        gap, error, where = min(gaps, key=lambda it: it[0])
        worst = f"{gap:+.2f} ± {error:.2f} points ({where})"
    yield f"subset less vector, the worst cell: {worst}"
    excess, bounds = select(rows, method=EXCESS), select(rows, method=BOUND)
    pairs = zip(excess, bounds, strict=True)
    n_held = sum(below["curvote"] <= above["curvote"] for below, above in pairs)
    yield f"Theorem 2 is above the excess in {n_held} of {len(excess)} cells"
    shares = [row["curvote"] for row in select(rows, method=HOLDS)]
    yield f"(36), delta .05, holds at {100 * min(shares):.1f} % of points or more"


BALANCED: Final = "balanced_accuracy"
# The label of a protocol that decides for the sake of rare classes.
_DECIDES: Final = "balanced"
_NEIGHBOURS: Final = "knn-200"


def beyond_rows(evidence: Evidence) -> list[Row]:
    """Return the accuracy by ``setting`` (the data set) and ``n_classes``.

    Where classes are not alike, rows of quantity ``balanced_accuracy`` stand beside
    it; what decides for its sake has the ``method`` `balanced`.
    """
    balanced = select(accuracy_rows(evidence, "balanced"), setting="imbalanced")
    rows = [*accuracy_rows(evidence), *(r | {"quantity": BALANCED} for r in balanced)]
    for row in rows:
        row["n_classes"] = int(
            row["axes"].get("n_classes") or N_CLASSES[row["setting"]]
        )
        if row["protocol"] == _DECIDES:
            row.update(protocol=AUTO, method=_DECIDES)
    return sort_rows(rows)


# A panel a data set and K: a line for each encoder with its learner.
beyond_figure = Chart(
    ["setting", "n_classes"],
    [
        Series(
            ["protocol", "learner"],
            looks("vec-pairs"),
            str,
            {"method": "labels"},
        ),
        Series(["protocol"], {name: LOOKS[name] for name in BASELINES}, str),
    ],
    "{}, {} classes".format,
    y=ACCURACY,
    where={"quantity": "accuracy"},
    columns=3,
)


def beyond_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield where `auto` is behind the published way, in points."""
    ours = select(rows, quantity="accuracy", protocol=AUTO, learner=AUTO)
    apart = []
    for row in (row for row in ours if row["method"] != _DECIDES):
        place = {name: row[name] for name in ("setting", "n_classes", "epsilon")}
        paper = select(rows, protocol="vector", learner=_NEIGHBOURS, **place)
        text = f"{row['setting']}, K = {row['n_classes']}, epsilon {row['epsilon']:g}"
        apart += [(row["curvote"] - other["curvote"], text) for other in paper]
    behind = sorted(pair for pair in apart if pair[0] < 0)
    mean = sum(gap for gap, _ in apart) / max(1, len(apart))
    ahead = f"{len(apart) - len(behind)} of {len(apart)} cells"
    yield f"auto is not behind vectors with 200 neighbours in {ahead}"
    yield f"  mean over the cells: {mean:+.1f} points"
    for gap, text in behind:
        yield f"  behind: {gap:+.1f} points ({text})"
