"""Deployments as texts of a table, and what they do to each record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns
from curvote.protocols.utility.measured import CONFIDENCE
from curvote.utility.deployments.deployment import Deployment
from curvote.utility.engines.base import Evidence
from curvote.utility.measured import Measurement

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
    return {
        "deployment": _text_column(
            write_deployment(deployment) for deployment, _, _ in results
        ),
        "words": _text_column(text for _, text, _ in results),
        "evidence": _text_column(measured.evidence for _, _, measured in results),
        "drawn": np.array([m.draw_count for _, _, m in results], dtype=np.int64),
        "bounded": np.array([m.bound is not None for _, _, m in results]),
        **{name: _field_matrix(results, name) for name in VECTORS},
    }


def _text_column(words: Iterable[str]) -> NDArray[Any]:
    """Return texts as a column."""
    return np.array([*words], dtype=object)


def _field_matrix(
    results: Sequence[DeploymentResult], name: str
) -> NDArray[np.float64]:
    """Return a field of each measurement, (deployments, n); missing ones are 0."""
    n = len(results[0][2].agreement)
    rows = [getattr(measured, name) for _, _, measured in results]
    return np.stack([np.zeros(n) if row is None else row for row in rows])


def read_measurements(columns: Columns) -> list[DeploymentResult]:
    """Return the deployments of a table ``agreed``, with measurements."""
    return [
        (read_deployment(text), str(columns["words"][i]), _row_measurement(columns, i))
        for i, text in enumerate(columns["deployment"])
    ]


def _row_measurement(columns: Columns, row: int) -> Measurement:
    """Return the measurement in one row."""
    fields: dict[str, Any] = {name: columns[name][row] for name in VECTORS}
    evidence: Evidence = columns["evidence"][row]
    fields["bound"] = fields["bound"] if columns["bounded"][row] else None
    fields["queries"] = fields["queries"].astype(np.int64)
    confidence = CONFIDENCE if evidence == "draws" else None
    draw_count = int(columns["drawn"][row])
    return Measurement(
        **fields, evidence=evidence, confidence=confidence, draw_count=draw_count
    )
