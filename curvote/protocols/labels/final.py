"""Final model of a cell, and in production what codes say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from curvote.chain.view import View
from curvote.protocols.finals import record_columns
from curvote.protocols.labels.packing import unpack_model

if TYPE_CHECKING:
    from curvote.protocols.labels.kept import LabelClassifier


def final_model(view: View) -> LabelClassifier:
    """Return the classifier of the first repetition."""
    from curvote.protocols.labels.kept import LabelClassifier  # scikit-learn

    model = unpack_model(view.columns("train", "kept")["model"][0])
    reduction = unpack_model(view.columns("features", "reduction")["model"][0])
    texts = view.metadata("features").get("categories")
    return LabelClassifier(record_columns(view, "features"), reduction, model, texts)


def production_metrics(view: View) -> dict[str, float]:
    """Return the number of codes, and the accuracy by held-out ones."""
    scores = view.columns("train", "honest")
    metrics = {"codes": float(view.count("privatize"))}
    for at in np.flatnonzero(scores["scoring"] == "accuracy"):
        metrics |= {"accuracy": float(scores["value"][at])}
        metrics |= {"accuracy_se": float(scores["se"][at])}
    return metrics
