"""System `online`: clients who come in arrivals, one on the next."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import VECTOR, Table

ARRIVING: Final = Table(
    "arriving", {"arrival": "int64", "z": VECTOR, "label": "int8"}, unit="message"
)
CANDIDATES: Final = Table(
    "candidates",
    {
        "learner": "int64",
        "coef": VECTOR,
        "intercept": "float64",
        "birth": "int64",
        "n": "int64",
        "flagged": "bool",
    },
    unit="classifier",
)
ARRIVAL_VOTES: Final = Table(
    "arrival_votes",
    {"learner": "int64", "n": "int64", "positive": "int64"},
    unit="classifier",
)
STANDING: Final = Table(
    "standing",
    {
        "arrival": "int64",
        "learner": "int64",
        "n": "float64",
        "positive": "float64",
        "squares": "float64",
        "utility": "float64",
        "standard_error": "float64",
        "reversed": "bool",
        "weight": "float64",
    },
    unit="classifier",
)
HISTORY: Final = Table(
    "history",
    {
        "arrival": "int64",
        "votes": "int64",
        "added": "int64",
        "incumbent_n": "int64",
        "incumbent_positive": "int64",
        "utility": "float64",
        "standard_error": "float64",
        "dropped": "bool",
        "passed": "int64",
        "none_passed": "bool",
        "coef": VECTOR,
        "intercept": "float64",
    },
    unit="arrival",
)
