"""Scores of deployments: metrics of all records, and of each group, with their ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import log, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns
from curvote.protocols.labels.methods import ACCURACY, BALANCED
from curvote.protocols.measures import AGREEMENT
from curvote.protocols.utility.methods import (
    BOUND,
    CLEAN,
    DECODED,
    WITHHOLD,
    WITHOUT,
    WORST,
)
from curvote.utility.deployments.deployment import Deployment
from curvote.utility.deployments.floors import floors
from curvote.utility.deployments.scan import measured
from curvote.utility.known import Known
from curvote.utility.measured import Measured, always, measured_from
from curvote.utility.rows import Row, rows_of
from curvote.utility.setting import Places, Setting
from curvote.validate import FloatArray

Bools = NDArray[np.bool_]
Ends = tuple[float, float]
CONFIDENCE: Final = 0.95
_FLOORS: Final = {"raw": WITHHOLD, "decode": DECODED, "without": WITHOUT}


@dataclass(frozen=True)
class Score:
    """A row of the table ``scores``; what is known exactly has equal ends."""

    method: str
    metric: str
    value: float
    lower: float
    upper: float
    group: str | None = None


def score_table(scores: Iterable[Score]) -> Columns:
    """Return the columns of the table ``scores``."""
    rows = [*scores]
    texts, numbers = ("method", "metric", "group"), ("value", "lower", "upper")
    return {
        **{n: np.array([getattr(r, n) for r in rows], dtype=object) for n in texts},
        **{n: np.array([getattr(r, n) for r in rows], dtype=float) for n in numbers},
    }


def scores_of(
    method: str, setting: Setting, deployment: Deployment, found: Measured
) -> Iterator[Score]:
    """Yield every metric of a deployment, for all records and for each group."""
    for row in rows_of(setting, deployment, found):
        here = (
            np.full(setting.n, True) if row.group is None else _in(setting, row.group)
        )
        labels = None if setting.labels is None else setting.labels[here]
        for metric, ends in _ends(row, found.of(here), labels).items():
            value = getattr(row, metric)
            if value is not None:
                yield Score(method, metric, value, *ends, row.group)


def _in(setting: Setting, group: str) -> Bools:
    return np.asarray(setting.groups == group)


def _ends(row: Row, found: Measured, labels: Places | None) -> dict[str, Ends]:
    """Return what each metric lies between, by the evidence there is."""
    worst = float(found.lower.min()), float(found.upper.min())
    bound = row.bound or 0.0
    ends = {
        AGREEMENT.name: (row.lower, row.upper),
        WORST.name: worst,
        BOUND.name: (bound, bound),
    }
    if labels is None:
        return ends
    each = np.full(len(labels), 1 / len(labels))
    classes, which, counts = np.unique(labels, return_inverse=True, return_counts=True)
    alike = 1 / (len(classes) * counts[which])
    return ends | {
        ACCURACY.name: _around(row.accuracy or 0.0, _reach(found, each)),
        BALANCED.name: _around(row.balanced_accuracy or 0.0, _reach(found, alike)),
    }


def _around(value: float, reach: float) -> Ends:
    return max(0.0, value - reach), min(1.0, value + reach)


def _reach(found: Measured, weights: FloatArray) -> float:
    """Return how far a weighted mean of shares may be off.

    Nothing where they are exact; of plain draws the bound of Hoeffding (1963) at the
    confidence; of anything else the widths of its intervals.
    """
    if not found.drawn:
        return float(weights @ (found.upper - found.lower))
    squares = float(np.sum(weights**2)) / found.drawn
    return sqrt(log(2 / (1 - CONFIDENCE)) * squares / 2)


def of_floor(setting: Setting, plain: Known, floor: Deployment) -> Iterator[Score]:
    """Yield the scores of what costs epsilon 0."""
    found = measured(setting, plain, floor)
    yield from scores_of(_FLOORS[floor.read].name, setting, floor, found)


def of_clean(setting: Setting, plain: Known) -> Iterator[Score]:
    """Yield the scores of the model on records without noise."""
    answers = always(plain.clean, plain.n_classes)
    found = measured_from(answers, plain.clean, setting.labels, CONFIDENCE)
    for score in scores_of(CLEAN.name, setting, floors(setting)[0], found):
        if score.metric in {ACCURACY.name, BALANCED.name}:
            yield score
