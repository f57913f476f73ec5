"""The tables of transfer between servers."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import TEXT, VECTOR, Table

# Whole numbers below 2^53, which a float holds exactly.
RELEASES: Final = Table(
    "releases",
    {"server": TEXT, "n": "int64", "values": VECTOR},
    unit="message",
)
# How the release of one server alone does on the records of another.
CROSSED: Final = Table(
    "crossed",
    {
        "server": TEXT,
        "tested": TEXT,
        "n": "int64",
        "misclassification": "float64",
        "f1": "float64",
        "balanced": "float64",
    },
    side="client (study)",
    unit="score",
)
WEIGHTS: Final = Table(
    "weights",
    {
        "method": TEXT,
        "server": TEXT,
        "weight": "float64",
        "agreement": "float64",
        "agreement_se": "float64",
    },
    unit="server",
    optional=("agreement", "agreement_se"),
)
