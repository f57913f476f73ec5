"""The table of what servers offer each other."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import TEXT, VECTOR, Table

OFFERS: Final = Table(
    "offers",
    {
        "sender": "int64",
        "coef": VECTOR,
        "intercept": "float64",
        "accepted": "bool",
        "reason": TEXT,
    },
    unit="server",
)
