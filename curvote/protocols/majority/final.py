"""The model to keep: the class that was elected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curvote.chain.view import View
from curvote.protocols.finals import columns_of

if TYPE_CHECKING:
    from curvote.protocols.majority.kept import ConstantClassifier


def final(view: View) -> ConstantClassifier:
    """Return the constant classifier of the first repetition."""
    from curvote.protocols.majority.kept import ConstantClassifier  # see `linear`

    place = view.columns("aggregate", "elected")["place"][0]
    classes = list(view.facts("project")["classes"])
    return ConstantClassifier(columns_of(view), classes, int(place))
