"""The class that was elected, as a model to keep; and by how many.

Both are read from the noised labels, which releases of any version have left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from curvote.chain.view import View
from curvote.protocols.finals import FIRST, columns_of
from curvote.protocols.majority.elect import elected

if TYPE_CHECKING:
    from curvote.protocols.majority.kept import ConstantClassifier


def final(view: View) -> ConstantClassifier:
    """Return the constant classifier of the first repetition."""
    from curvote.protocols.majority.kept import ConstantClassifier  # see `linear`

    classes = list(view.facts("project")["classes"])
    place = elected(_labels(view), len(classes))
    return ConstantClassifier(columns_of(view), classes, place)


def outcome(view: View) -> dict[str, float]:
    """Return how many labels were counted."""
    return {"reports": len(_labels(view))}


def _labels(view: View) -> NDArray[np.int8]:
    return view.columns("privatize", "labels", FIRST)["label"]
