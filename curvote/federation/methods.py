"""What many servers end in, in words and looks."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method

FEDERATED: Final = Method(
    "federated",
    "federated",
    "The classifiers of all servers, reversed and averaged by what each server's "
    "own clients say of them.",
    Look("#7f52a3", "H", width=2.2, size=6, above=6),
    rank=50,
)
