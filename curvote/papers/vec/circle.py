"""Figures 2, 3, 4: accuracy on a circle against K for every encoder, and Theorem 2."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import brentq
from scipy.stats import ncx2

from curvote.base.validate import FloatArray
from curvote.chain.axis import Axis
from curvote.data.simulation import circle
from curvote.papers.drawing import ACCURACY, line_panels, protocol_lines
from curvote.papers.evidence import Evidence
from curvote.papers.rows import Row, complete_rows, select
from curvote.papers.vec.tables import LOOKS, accuracy_rows, sort_rows
from curvote.pipeline.config.settings import PROTOCOL, expand_settings
from curvote.systems.labels.codes.encoding import encode
from curvote.systems.labels.learners.knn import KNN
from curvote.systems.labels.method import theory

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
    law, seed = circle.Parameters(**section["source"]), section["seed"]
    n, epsilon = section["clients"]["train"], section["epsilon"][0]
    k = int(section["learners"][0]["params"]["k"])
    rng = np.random.default_rng(seed)
    trained, tested = (circle.clients(law, size, rng) for size in (n, POINTS))
    places = range(law.n_classes)
    codes = encode(trained["label"], places, epsilon, ENCODER, random_state=seed)
    votes = KNN(k=k).fit(trained["curve"], codes, rng).votes(tested["curve"])
    eta, gap = circle.eta(law, tested["curve"]), theory.vector_gap(epsilon)
    delta = gap * np.abs(votes - eta).max(axis=1)
    r0 = np.array([share_radius(law, x, 2 * k / n) for x in tested["curve"]])
    allowed = theory.knn_bound(k, law.n_classes, epsilon, lipschitz_constant(law), r0)
    return {
        EXCESS: theory.excess_risk(eta, votes.argmax(axis=1)),
        BOUND: theory.excess_bound(eta, delta, gap),
        HOLDS: float(np.mean(delta <= allowed)),
    }


def lipschitz_constant(law: circle.Parameters) -> float:
    """Return a Lipschitz constant of the regression functions of a circle.

    sin(pi/K) / (2 sigma^2): the slope between two neighbours, far out.
    """
    return float(np.sin(np.pi / law.n_classes) / (2 * law.deviation**2))


def share_radius(law: circle.Parameters, x: FloatArray, share: float) -> float:
    """Return the radius around ``x`` (2,) that holds a share of the records, (32)."""
    away = ((circle.centres(law.n_classes) - x) ** 2).sum(axis=1) / law.deviation**2
    weights = circle.class_shares(law.n_classes, law.shares)

    def shortfall(r: float) -> float:
        return float(ncx2.cdf((r / law.deviation) ** 2, 2, away) @ weights) - share

    return float(brentq(shortfall, 0, _FARTHEST))


def bound_conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield whether both bounds hold, and how loose Theorem 2 is."""
    excess, bounds = select(results, method=EXCESS), select(results, method=BOUND)
    pairs = zip(excess, bounds, strict=True)
    n_held = sum(below["curvote"] <= above["curvote"] for below, above in pairs)
    yield f"Theorem 2 is above the excess in {n_held} of {len(excess)} cells"
    shares = [row["curvote"] for row in select(results, method=HOLDS)]
    yield f"(36), delta .05, holds at {100 * min(shares):.1f} % of points or more"


across: Final = "n_classes"
CLASSES: Final = Axis(across, lambda _: (), label="number of classes K")
_MECHANISMS: Final = ("rr", "alibi", "vector", "subset")


def rows(_: str, evidence: Evidence) -> list[Row]:
    """Return the accuracy by ``setting`` (sigma) and ``n_classes``, then the bounds.

    A bound and what it bounds are of quantity ``value``, as probabilities, for the
    encoder ``vector``; they have no protocol.
    """
    accuracy = [
        row | {"setting": row["axes"]["sigma"], across: int(row["axes"][across])}
        for row in accuracy_rows(evidence)
    ]
    return complete_rows([*sort_rows(accuracy), *bound_rows(evidence)])


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a setting: accuracy against K, a line an encoder."""
    accuracies_shown = select(results, quantity="accuracy")
    names = dict.fromkeys(row["setting"] for row in accuracies_shown)
    charts = {
        f"sigma = {name}": protocol_lines(select(accuracies_shown, setting=name), LOOKS)
        for name in names
    }
    return line_panels(charts, CLASSES, y=ACCURACY)


def terminal_rows(results: Sequence[Row]) -> list[Row]:
    """Return the rows of accuracies."""
    return select(results, quantity="accuracy")


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the text's statements beside the results and the bounds."""
    yield "the paper: with sigma = 2/K the accuracy of vectors remains stable"
    for name in _MECHANISMS:
        selected = select(results, setting="2/K", protocol=name)
        texts = ", ".join(f"{row['curvote']:.1f} at {row[across]}" for row in selected)
        yield f"  {name}: {texts}"
    yield f"subset less vector, the worst cell: {_worst_gap(results)}"
    yield from bound_conclusions(results)


def _worst_gap(results: Sequence[Row]) -> str:
    """Return the largest gap of subset selection below vectors."""
    gaps = []
    for row in select(results, protocol="vector"):
        place = {name: row[name] for name in ("setting", across)}
        for other in select(results, protocol="subset", **place):
            apart = math.hypot(row["se"] or 0, other["se"] or 0)
            gaps.append((other["curvote"] - row["curvote"], apart, place))
    if not gaps:
        return "none"
    gap, error, place = min(gaps, key=lambda gap_row: gap_row[0])
    where = f"sigma {place['setting']}, K = {place[across]}"
    return f"{gap:+.2f} ± {error:.2f} points ({where})"
