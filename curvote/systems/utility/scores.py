"""Scores of deployments: metrics of records and groups, and their stored form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import log, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns
from curvote.messages.measures import AGREEMENT
from curvote.systems.labels.metrics import ACCURACY, BALANCED
from curvote.systems.utility import measures
from curvote.systems.utility.method.deployment import (
    Deployment,
    Places,
    Setting,
    floor_deployments,
)
from curvote.systems.utility.method.measurement import (
    Measurement,
    Row,
    fixed_answers,
    make_rows,
    measure_agreement,
)
from curvote.systems.utility.method.profile import Profile
from curvote.systems.utility.method.scan import measure

Ends = tuple[float, float]
CONFIDENCE: Final = 0.95
_FLOORS: Final = {
    "raw": measures.WITHHOLD,
    "decode": measures.DECODED,
    "without": measures.WITHOUT,
}


@dataclass(frozen=True)
class ScoreRow:
    """Row of the table ``scores``; exact values have equal ends."""

    method: str
    metric: str
    value: float
    lower: float
    upper: float
    group: str | None = None


def score_table(scores: Iterable[ScoreRow]) -> Columns:
    """Return the columns of the table ``scores``."""
    rows = [*scores]
    texts, numbers = ("method", "metric", "group"), ("value", "lower", "upper")
    return {
        **{n: np.array([getattr(r, n) for r in rows], dtype=object) for n in texts},
        **{n: np.array([getattr(r, n) for r in rows], dtype=float) for n in numbers},
    }


def deployment_scores(
    method: str, setting: Setting, deployment: Deployment, measurement: Measurement
) -> Iterator[ScoreRow]:
    """Yield every metric of a deployment, for all records and each group."""
    for row in make_rows(setting, deployment, measurement):
        mask = np.full(setting.n, True)
        if row.group is not None:
            mask = np.asarray(setting.groups == row.group)
        labels = None if setting.labels is None else setting.labels[mask]
        for metric, ends in _metric_ends(row, measurement.of(mask), labels).items():
            value = getattr(row, metric)
            if value is not None:
                yield ScoreRow(method, metric, value, *ends, row.group)


def _metric_ends(
    row: Row, measurement: Measurement, labels: Places | None
) -> dict[str, Ends]:
    """Return the ends of each metric, by the evidence."""
    worst = float(measurement.lower.min()), float(measurement.upper.min())
    bound = row.bound or 0.0
    ends = {
        AGREEMENT.name: (row.lower, row.upper),
        measures.WORST.name: worst,
        measures.BOUND.name: (bound, bound),
    }
    if labels is None:
        return ends
    equal = np.full(len(labels), 1 / len(labels))
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    by_class = 1 / (len(classes) * counts[codes])
    for metric, value, weights in (
        (ACCURACY, row.accuracy or 0.0, equal),
        (BALANCED, row.balanced_accuracy or 0.0, by_class),
    ):
        reach = _mean_error(measurement, weights)
        ends[metric.name] = max(0.0, value - reach), min(1.0, value + reach)
    return ends


def _mean_error(measurement: Measurement, weights: FloatArray) -> float:
    """Return the possible error of a weighted mean of shares.

    Nothing where they are exact; of plain draws the bound of Hoeffding (1963) at the
    confidence; of anything else the widths of its intervals.
    """
    if not measurement.draw_count:
        return float(weights @ (measurement.upper - measurement.lower))
    squares = float(np.sum(weights**2)) / measurement.draw_count
    return sqrt(log(2 / (1 - CONFIDENCE)) * squares / 2)


def floor_scores(
    setting: Setting, profile: Profile, floor: Deployment
) -> Iterator[ScoreRow]:
    """Yield the scores of a floor."""
    measurement = measure(setting, profile, floor)
    yield from deployment_scores(_FLOORS[floor.read].name, setting, floor, measurement)


def clean_scores(setting: Setting, profile: Profile) -> Iterator[ScoreRow]:
    """Yield the scores of the model on records without noise."""
    answers = fixed_answers(profile.clean, profile.n_classes)
    measurement = measure_agreement(answers, profile.clean, setting.labels, CONFIDENCE)
    for score in deployment_scores(
        measures.CLEAN.name, setting, floor_deployments(setting)[0], measurement
    ):
        if score.metric in {ACCURACY.name, BALANCED.name}:
            yield score


VECTORS = ("agreement", "lower", "upper", "bound", "right", "queries")
DeploymentResult = tuple[Deployment, str, Measurement]


def write_deployment(deployment: Deployment) -> str:
    """Return a deployment as JSON text."""
    return json.dumps(asdict(deployment), sort_keys=True)


def read_deployment(text: str) -> Deployment:
    """Return the deployment that `write_deployment` wrote."""
    fields = json.loads(text)
    split = fields.pop("split")
    return Deployment(**fields, split=None if split is None else tuple(split))


def deployment_table(results: Sequence[DeploymentResult]) -> Columns:
    """Return the table ``agreed`` of deployments, descriptions and measurements."""
    nothing, vectors = np.zeros(len(results[0][2].agreement)), {}
    for name in VECTORS:  # (deployments, n); what is missing is 0
        rows = [getattr(measured, name) for _, _, measured in results]
        vectors[name] = np.stack([nothing if row is None else row for row in rows])
    return {
        "deployment": _text_column(
            write_deployment(deployment) for deployment, _, _ in results
        ),
        "words": _text_column(text for _, text, _ in results),
        "evidence": _text_column(measured.evidence for _, _, measured in results),
        "drawn": np.array([m.draw_count for _, _, m in results], dtype=np.int64),
        "bounded": np.array([m.bound is not None for _, _, m in results]),
        **vectors,
    }


def _text_column(words: Iterable[str]) -> NDArray[Any]:
    """Return texts as a column."""
    return np.array([*words], dtype=object)


def read_measurements(columns: Columns) -> list[DeploymentResult]:
    """Return the deployments of a table ``agreed``, with measurements."""
    results = []
    for row, text in enumerate(columns["deployment"]):
        fields: dict[str, Any] = {name: columns[name][row] for name in VECTORS}
        fields["bound"] = fields["bound"] if columns["bounded"][row] else None
        fields["queries"] = fields["queries"].astype(np.int64)
        fields["evidence"] = columns["evidence"][row]
        fields["confidence"] = CONFIDENCE if fields["evidence"] == "draws" else None
        measured = Measurement(**fields, draw_count=int(columns["drawn"][row]))
        results.append((read_deployment(text), str(columns["words"][row]), measured))
    return results
