"""Method ``joined``: reports and volunteers' records together."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method

JOINED: Final = Method(
    "joined",
    "joined",
    "The reports of `direct` and the volunteers' public records with their labels, "
    "each weighted by the inverse of its variance.",
    Look("#cc79a7", "p", width=2.6, size=6.5, above=6),
    rank=142,
)
