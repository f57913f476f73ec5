"""Stage fit: two models, each a file, from what people and shops sent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Rows, StageContext
from curvote.toy.model import Nearest
from curvote.toy.tables import CLASSES

K = len(CLASSES)


def fit(context: StageContext) -> Rows:
    """Return the table ``models``."""
    answers, tally = context.rows("ask", "answers"), context.rows("count", "tally")
    centres = _centres(answers) * (1 - context.params["shrink"])
    told = context.inputs["gather"].metadata
    weights = {"centres": np.full(K, 1 / K), "weighted": _shares(tally)}
    made = [
        Nearest(told["classes"], told["columns"], centres, weight).to_bytes()
        for weight in weights.values()
    ]
    return {
        "models": {
            "method": np.array(list(weights), dtype=object),
            "model": np.array(made, dtype=object),
        }
    }


def _centres(answers: Columns) -> NDArray[np.float64]:
    own = [answers["place"][answers["colour"] == k] for k in range(K)]
    return np.array([mine.mean(axis=0) if len(mine) else (0, 0) for mine in own])


def _shares(tally: Columns) -> NDArray[np.float64]:
    counts = np.bincount(tally["colour"], minlength=K) + 1
    return np.asarray(counts / counts.sum())
