"""What the comparison without privacy is called."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method

CLEAN: Final = Method(
    "clean",
    "no privacy",
    "The same learner, trained on the labels themselves.",
    Look("#22262b", "P", line=(0, (5, 2)), size=5.2),
    rank=680,
    study_only=True,
    reference=True,
)
