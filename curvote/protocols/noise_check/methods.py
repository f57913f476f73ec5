"""What the noise does to reports, in words and looks."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method

REPORT: Final = Method(
    "report",
    "reports",
    "The noised reports of the clients, held against their records.",
    Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    rank=200,
)
