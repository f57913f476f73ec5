"""The tables of MRMA: reports, weak classifiers, votes, and what they make of them."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import VECTOR, Table

REPORT_ARMS: Final = ("mrma", "pooled")
WEAK_ARMS: Final = ("weak", "pooled", "all_data")

REPORTS: Final = Table(
    "reports", {"arm": REPORT_ARMS, "z": VECTOR, "label": "int8"}, unit="message"
)
WEAK: Final = Table(
    "weak",
    {
        "arm": WEAK_ARMS,
        "learner": "int64",
        "coef": VECTOR,
        "intercept": "float64",
        "n": "int64",
        "flagged": "bool",
    },
    unit="classifier",
)
VOTES: Final = Table(
    "votes", {"learner": "int64", "n": "int64", "positive": "int64"}, unit="classifier"
)
ENSEMBLE: Final = Table(
    "ensemble",
    {
        "learner": "int64",
        "utility": "float64",
        "standard_error": "float64",
        "reversed": "bool",
        "weight": "float64",
        "none_passed": "bool",
        "weight_ma": "float64",
        "none_passed_ma": "bool",
    },
    unit="classifier",
)
