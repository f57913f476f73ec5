"""Method ``majority``: the constant classifier, in words and looks."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method

MAJORITY: Final = Method(
    "majority",
    "majority (nothing learnt)",
    "Always guesses one class: the one that noised labels, or noised counts of them, "
    "say is larger. It looks at no record.",
    Look("#6a717b", "", (0, (4, 2.5)), width=1.0, above=2),
    rank=170,
    study_only=True,
    reference=True,
    short_phrase="guessing the larger class",
)
