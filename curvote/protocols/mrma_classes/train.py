"""Stage train of `mrma_classes`: weak classifiers of each class against the rest.

They stand in turn: row b of a variant is about class b mod K. Each is divided by its
length, (coef, intercept) as one vector, which changes no vote: of few or noisy reports
they are longest where they mean least. Measured on 20 x 10,000 records of
`simulated-classes`, d = 8, half of them reports, epsilon 1 / 2 / 5, errors in %: of
three classes 28 / 10 / 2 (44 / 15 / 3 without), of five 65 / 49 / 26 (72 / 58 / 29),
and of ten next to nothing is learned: 90 / 87 / 80. `direct` and `votes` do far better.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Here, Rows
from curvote.protocols.mrma.tables import REPORT_VARIANTS, WEAK_VARIANTS
from curvote.protocols.mrma.train import Index, facts, learnt
from curvote.protocols.questions import one_against_rest
from curvote.server.weak import draw, parts

__all__ = ["block", "facts"]


def block(many: Sequence[Here]) -> Iterator[Rows]:
    """Yield the table ``weak`` of each repetition."""
    for weak in learnt(many, "class_reports", _drawn, ("arm", "question")):
        yield {"weak": weak | unit(weak)}


def unit(weak: Columns) -> Columns:
    """Return coef (B, d) and intercept (B,) of length 1 together; 0 stays."""
    line = np.column_stack([weak["coef"], weak["intercept"]])
    length = np.linalg.norm(line, axis=1)
    line /= np.where(length > 0, length, 1)[:, None]
    return {"coef": line[:, :-1], "intercept": line[:, -1]}


def _drawn(here: Here, reports: Columns) -> tuple[list[Index], NDArray[np.int8]]:
    """Return the reports that each classifier learns from, and its variant."""
    count, size = here.params["train.count"], here.params["train.size"]
    n_classes = len(here.inputs["project"].facts["classes"])
    mine = reports["arm"] == REPORT_VARIANTS.index("mrma")
    questions = range(len(one_against_rest(n_classes)))
    every = [np.flatnonzero(reports["question"] == q) for q in questions]
    rng, own = here.generator("draw"), [rows[mine[rows]] for rows in every]
    drawn = [r[draw(rng, len(r), count, min(size, len(r)))] for r in own]
    if mine.all():  # nobody reports who votes: there is nothing to pool
        return _in_turn(drawn), np.zeros(count * len(own), dtype=np.int8)
    rng = here.generator("pool")
    pooled = [[r[part] for part in parts(rng, len(r), count)] for r in every]
    sizes = np.array([count, count, 1]) * len(every)
    variants = np.repeat(np.arange(len(WEAK_VARIANTS), dtype=np.int8), sizes)
    return [*_in_turn(drawn), *_in_turn(pooled), *every], variants


def _in_turn(each: Sequence[Any]) -> list[Index]:
    """Return the first of each question, then the second of each, and so on."""
    return [rows for own in zip(*each, strict=True) for rows in own]
