"""The model to keep of a run's cell: what its scores were measured of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curvote.chain.view import View
from curvote.protocols.finals import columns_of
from curvote.protocols.labels.packing import unpacked

if TYPE_CHECKING:
    from curvote.protocols.labels.kept import LabelClassifier


def final(view: View) -> LabelClassifier:
    """Return the classifier of the first repetition."""
    from curvote.protocols.labels.kept import LabelClassifier  # scikit-learn

    model = unpacked(view.columns("train", "model")["model"][0])
    reduction = unpacked(view.columns("features", "reduction")["model"][0])
    return LabelClassifier(columns_of(view, "features"), reduction, model)
