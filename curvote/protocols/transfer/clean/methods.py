"""Methods of `transfer_clean`: classifiers that see records as they are."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method

POOLED: Final = Method(
    "pooled",
    "pooled, clean",
    "Logistic regression on the records of all servers together, without any noise.",
    Look("#22262b", "P", line=(0, (5, 2)), size=5.2),
    rank=770,
    study_only=True,
    reference=True,
)
TARGET: Final = Method(
    "target",
    "target, clean",
    "Logistic regression on the target's own records, without any noise.",
    Look("#22262b", "X", line=(0, (1, 2)), size=5.2),
    rank=780,
    study_only=True,
    reference=True,
)
METHODS: Final = (POOLED, TARGET)
