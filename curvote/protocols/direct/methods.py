"""The arms of `direct` in words and looks."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method

MEAN: Final = Method(
    "mean",
    "direct, mean",
    "Every client reports one noised direction, label times record; the mean of "
    "all is the classifier.",
    Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    rank=90,
)
JOINT: Final = Method(
    "joint",
    "direct, joint",
    "The same, but a part of each report tells the second moment, which corrects "
    "the mean.",
    Look("#d55e00", "h", width=2.6, size=6.5, above=6),
    rank=100,
)
TWO: Final = Method(
    "two",
    "direct, two rounds",
    "The first clients' reports centre and whiten what the others report.",
    Look("#d55e00", "8", width=2.6, size=6.5, above=6),
    rank=110,
)
