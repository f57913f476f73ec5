"""Theorem 2 and (36) held against what neighbours do in each cell of a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import ncx2

from curvote.datasets import circle
from curvote.labels import encode, theory
from curvote.labels.learners.knn import KNN
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, having
from curvote.run.config.settings import PROTOCOL, settings

ENCODER: Final = "vector"
EXCESS, BOUND, HOLDS = "excess", "excess_bound", "knn_bound_holds"
POINTS: Final = 200
_FARTHEST = 10.0  # no record lies that far from another one

Array = NDArray[np.float64]


def rows(found: Evidence) -> Iterator[Row]:
    """Yield what one training set has and is allowed, a cell of the figure each.

    The excess of `vector` and its bound as probabilities, and the share of points at
    which the error of the votes stays below (36).
    """
    for labels, own in settings(found.configs[0]):
        if labels[PROTOCOL] == ENCODER:
            for method, value in _cell(own).items():
                yield {
                    "pipeline": found.summaries[0]["pipeline"],
                    "setting": labels["sigma"],
                    "n_classes": int(labels["n_classes"]),
                    "epsilon": float(own["epsilon"][0]),
                    "method": method,
                    "quantity": "value",
                    "curvote": value,
                }


def _cell(own: Mapping[str, Any]) -> dict[str, float]:
    law, rng = circle.Parameters(**own["source"]), np.random.default_rng(own["seed"])
    n, k, epsilon = own["clients"]["train"], _k(own), own["epsilon"][0]
    trained, tested = (circle.clients(law, size, rng) for size in (n, POINTS))
    places = range(law.n_classes)
    codes = encode(trained["label"], places, epsilon, ENCODER, random_state=own["seed"])
    votes = KNN(k=k).fit(trained["curve"], codes, rng).votes(tested["curve"])
    eta, gap = circle.eta(law, tested["curve"]), theory.vector_gap(epsilon)
    delta = gap * np.abs(votes - eta).max(axis=1)
    r0 = np.array([radius(law, x, 2 * k / n) for x in tested["curve"]])
    allowed = theory.knn_bound(k, law.n_classes, epsilon, steepest(law), r0)
    return {
        EXCESS: theory.excess(eta, votes.argmax(axis=1)),
        BOUND: theory.excess_bound(eta, delta, gap),
        HOLDS: float(np.mean(delta <= allowed)),
    }


def _k(own: Mapping[str, Any]) -> int:
    return int(own["learners"][0]["params"]["k"])


def steepest(law: circle.Parameters) -> float:
    """Return a Lipschitz constant of the regression functions of a circle.

    sin(pi/K) / (2 sigma^2): the slope between two neighbours, far out.
    """
    return float(np.sin(np.pi / law.n_classes) / (2 * law.deviation**2))


def radius(law: circle.Parameters, x: Array, share: float) -> float:
    """Return the radius around ``x`` (2,) that holds a share of the records, (32)."""
    away = ((circle.centres(law.n_classes) - x) ** 2).sum(axis=1) / law.deviation**2
    weights = circle.class_shares(law.n_classes, law.shares)

    def lacking(r: float) -> float:
        return float(ncx2.cdf((r / law.deviation) ** 2, 2, away) @ weights) - share

    return float(brentq(lacking, 0, _FARTHEST))


def said(given: Sequence[Row]) -> Iterator[str]:
    """Yield whether both bounds hold, and how far above the excess Theorem 2 is."""
    pairs = [
        (below["curvote"], above["curvote"])
        for below, above in zip(
            having(given, method=EXCESS), having(given, method=BOUND), strict=True
        )
    ]
    held = sum(below <= above for below, above in pairs)
    yield f"Theorem 2 is above the excess in {held} of {len(pairs)} cells"
    shares = [row["curvote"] for row in having(given, method=HOLDS)]
    yield f"(36), delta .05, holds at {100 * min(shares):.1f} % of points or more"
