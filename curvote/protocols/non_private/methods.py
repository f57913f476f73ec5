"""Method ``clean``: a learner without any noise."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method

CLEAN: Final = Method(
    "clean",
    "no privacy",
    "A learner on what clients know, as it is, without any noise.",
    Look("#009e73", "P", size=5.2),
    rank=160,
    study_only=True,
    reference=True,
    short_phrase="a learner without any privacy",
)
