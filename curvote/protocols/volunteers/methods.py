"""Method ``volunteers``: volunteers' public records alone."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method

VOLUNTEERS: Final = Method(
    "volunteers",
    "volunteers alone",
    "Ridge logistic regression on the labelled records of the volunteers, which are "
    "public for good: what they alone buy. Nobody else sends anything.",
    Look("#56b4e9", "X", line="-.", size=5.2),
    rank=141,
    reference=True,
)
