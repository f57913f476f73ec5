"""What `votes` ends in, in words and looks."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method

VOTES: Final = Method(
    "votes",
    "votes",
    "No client trains: random directions are judged by one noised vote of each "
    "client, reversed and averaged by their utility.",
    Look("#0072b2", "s", width=2.0),
    rank=120,
)
