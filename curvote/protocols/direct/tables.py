"""Tables of noised directions, and of the classifier that they make."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import VECTOR, Table

DIRECTIONS: Final = Table("directions", {"direction": VECTOR}, unit="message")
WHITENING: Final = Table(
    "whitening", {"matrix": VECTOR, "centre": "float64"}, unit="number"
)
CLASSIFIER: Final = Table(
    "classifier",
    {"coef": VECTOR, "intercept": "float64", "n": "int64"},
    unit="classifier",
)
