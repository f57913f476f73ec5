"""What clients in arrivals end in, in words and looks."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method

ONLINE: Final = Method(
    "online",
    "online",
    "MRMA kept up to date with the votes of clients who came later.",
    Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    rank=60,
)
FROZEN: Final = Method(
    "frozen",
    "frozen",
    "MRMA as it was after the first arrival.",
    Look("#838b94", "v", "--", size=5),
    rank=70,
)
