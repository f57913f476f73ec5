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
from curvote.utility.measured import Measured

VECTORS = ("agreement", "lower", "upper", "bound", "right", "queries")
Found = tuple[Deployment, str, Measured]


def written(deployment: Deployment) -> str:
    """Return a deployment as JSON."""
    return json.dumps(asdict(deployment), sort_keys=True)


def read(text: str) -> Deployment:
    """Return the deployment that `written` wrote."""
    fields = json.loads(text)
    split = fields.pop("split")
    return Deployment(**fields, split=None if split is None else tuple(split))


def table(found: Sequence[Found]) -> Columns:
    """Return the table ``agreed`` of deployments, their words and what they do."""
    return {
        "deployment": _texts(written(deployment) for deployment, _, _ in found),
        "words": _texts(words for _, words, _ in found),
        "evidence": _texts(measured.evidence for _, _, measured in found),
        "drawn": np.array([m.drawn for _, _, m in found], dtype=np.int64),
        "bounded": np.array([m.bound is not None for _, _, m in found]),
        **{name: _vectors(found, name) for name in VECTORS},
    }


def _texts(words: Iterable[str]) -> NDArray[Any]:
    return np.array([*words], dtype=object)


def _vectors(found: Sequence[Found], name: str) -> NDArray[np.float64]:
    """Return a field of each measurement, (deployments, n); an unknown one is 0."""
    n = len(found[0][2].agreement)
    rows = [getattr(measured, name) for _, _, measured in found]
    return np.stack([np.zeros(n) if row is None else row for row in rows])


def measurements(columns: Columns) -> list[Found]:
    """Return the deployments of a table ``agreed``, words and measurements."""
    return [
        (read(text), str(columns["words"][i]), _measured(columns, i))
        for i, text in enumerate(columns["deployment"])
    ]


def _measured(columns: Columns, row: int) -> Measured:
    own: dict[str, Any] = {name: columns[name][row] for name in VECTORS}
    evidence: Evidence = columns["evidence"][row]
    own["bound"] = own["bound"] if columns["bounded"][row] else None
    own["queries"] = own["queries"].astype(np.int64)
    confidence = CONFIDENCE if evidence == "draws" else None
    drawn = int(columns["drawn"][row])
    return Measured(**own, evidence=evidence, confidence=confidence, drawn=drawn)
