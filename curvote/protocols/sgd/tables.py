"""System `sgd`: rounds of noised gradients, and a descent along them."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import VECTOR, Table

GRADIENTS: Final = Table(
    "gradients", {"round": "int64", "gradient": VECTOR}, unit="message"
)
