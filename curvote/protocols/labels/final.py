"""What a run keeps of a cell: its model, and in production what codes say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from curvote.chain.view import View
from curvote.protocols.finals import columns_of
from curvote.protocols.labels.packing import unpacked

if TYPE_CHECKING:
    from curvote.protocols.labels.kept import LabelClassifier


def final(view: View) -> LabelClassifier:
    """Return the classifier of the first repetition."""
    from curvote.protocols.labels.kept import LabelClassifier  # scikit-learn

    model = unpacked(view.columns("train", "kept")["model"][0])
    reduction = unpacked(view.columns("features", "reduction")["model"][0])
    texts = view.facts("features").get("categories")
    return LabelClassifier(columns_of(view, "features"), reduction, model, texts)


def outcome(view: View) -> dict[str, float]:
    """Return how many codes there are, and what held-out ones say of the accuracy."""
    told = view.columns("train", "honest")
    said = {"codes": float(view.count("privatize"))}
    for at in np.flatnonzero(told["scoring"] == "accuracy"):
        said |= {"accuracy": float(told["value"][at])}
        said |= {"accuracy_se": float(told["se"][at])}
    return said
