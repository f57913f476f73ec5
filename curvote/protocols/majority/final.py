"""Outcomes of `majority`: the elected class as a model, and its count.

Both are read from the noised labels, which releases of any version have left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from curvote.chain.view import View
from curvote.protocols.finals import FIRST_REPETITION, record_columns
from curvote.protocols.majority.elect import elect_class

if TYPE_CHECKING:
    from curvote.protocols.majority.kept import ConstantClassifier


def majority_model(view: View) -> ConstantClassifier:
    """Return the constant classifier of the first repetition."""
    from curvote.protocols.majority.kept import ConstantClassifier  # see `linear`

    classes = list(view.metadata("project")["classes"])
    place = elect_class(_noised_labels(view), len(classes))
    return ConstantClassifier(record_columns(view), classes, place)


def majority_outcome(view: View) -> dict[str, float]:
    """Return the number of labels that were counted."""
    return {"reports": len(_noised_labels(view))}


def _noised_labels(view: View) -> NDArray[np.int8]:
    return view.columns("privatize", "labels", FIRST_REPETITION)["label"]
