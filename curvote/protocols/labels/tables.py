"""System of private labels: its tables, stages, graph and final model, as data."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import FILE, ROWS, TEXT, VECTOR, Table

# What everybody knows of each record; of which clients it is part of the source.
FEATURES: Final = Table(
    "features",
    {"record": TEXT, "values": VECTOR},
    side="public",
    unit="record",
    shared=True,
)
REDUCTION: Final = Table(
    "reduction", {"model": FILE}, side="public", unit="number", shared=True
)
GRAPH: Final = Table(
    "graph", {"model": FILE}, side="public", unit="number", shared=True
)
CODES: Final = Table("codes", {"record": TEXT, "code": ROWS}, unit="message")
PRIORS: Final = Table("priors", {"record": TEXT, "prior": VECTOR}, unit="number")
# What the server says of records whose labels it has no code of.
SAID: Final = Table(
    "said",
    {"record": TEXT, "place": "int64", "confidence": "float64"},
    unit="number",
)
SHARES: Final = Table(
    "shares", {"class": TEXT, "share": "float64", "se": "float64"}, unit="number"
)
# How good the chosen model is by codes that took no part in choosing it.
HONEST: Final = Table(
    "honest",
    {
        "scoring": TEXT,
        "value": "float64",
        "se": "float64",
        "low": "float64",
        "high": "float64",
        "n": "int64",
    },
    unit="number",
)
# One row, of the first repetition only.
MODEL: Final = Table("kept", {"model": FILE}, unit="classifier")
RELIABILITY: Final = Table(
    "reliability",
    {"low": "float64", "n": "int64", "confidence": "float64", "accuracy": "float64"},
    side="client (study)",
    unit="score",
)
RECALLS: Final = Table(
    "recalls",
    {"class": TEXT, "n": "int64", "recognised": "int64", "said": "int64"},
    side="client (study)",
    unit="score",
)
