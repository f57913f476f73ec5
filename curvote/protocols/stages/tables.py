"""Tables that several systems share: clients, reports, votes and classifiers."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import TEXT, VECTOR, Table

CLIENTS: Final = Table(
    "clients",
    {
        "client_id": "int64",
        "label": "int64",
        "group": "int64",
        "curve": VECTOR,
        "record": TEXT,  # a public name, where the source has one
        "part": "int64",  # 1 for the publisher's test part
        "target": "float64",  # a number to be learnt, in the unit that facts state
    },
    side="client",
    unit="client",
    shared=True,
    optional=("record", "part", "target"),
)
ENCODED: Final = Table(
    "encoded",
    {
        "client_id": "int64",
        "label": "int64",
        "group": "int64",
        "coefficients": VECTOR,
        "z": VECTOR,
        "clipped": "int64",
        "part": "int64",
    },
    side="client",
    unit="client",
    shared=True,
    optional=("part",),
)
CONSTANTS: Final = Table(
    "constants",
    {"name": TEXT, "value": VECTOR},
    side="public",
    unit="constant",
    shared=True,
)
