"""The surface of classifiers by scores: exact for two values, else a bracket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import InternalError
from curvote.mechanisms.law import Law, Mixture
from curvote.utility.channel import Channel
from curvote.utility.engines.asking import classes_of
from curvote.utility.engines.base import Answers, Draws, Evidence, Question, Surface
from curvote.utility.engines.black_box import Drawn
from curvote.utility.engines.scores.forms import Scores
from curvote.utility.engines.scores.lattice import bracket
from curvote.utility.engines.scores.margin import keeps
from curvote.utility.engines.scores.quadrature import one, two
from curvote.validate import FloatArray

# Records at once: few enough for the processor's memory to hold what they need.
FEW, MANY = 16, 128

Shares = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Scored(Surface):
    """Scores of the classes around each record; the model is asked only to draw."""

    question: Question
    scores: Scores

    def answers(self, channel: Channel, draws: Draws) -> Answers:
        """Return the shares of the classes from the channel's law.

        Exact (to `quadrature.TOLERANCE`) where at most two values that matter are
        noised; a certain bracket where more are; drawn where the channel has no law.
        """
        if channel.law(self.question.values[:1]) is None:
            return self._drawn(channel, draws)
        parts = [self._some(channel, rows) for rows in self._chunks()]
        low, high = (np.vstack(each) for each in zip(*parts, strict=True))
        evidence: Evidence = "exact" if (low == high).all() else "bracket"
        none = np.zeros(len(low), dtype=np.int64)
        return Answers((low + high) / 2, low, high, evidence, none)

    def _chunks(self) -> Iterator[slice]:
        size = MANY if self.scores.s <= 2 else FEW
        for start in range(0, len(self.clean), size):
            yield slice(start, start + size)

    def _some(self, channel: Channel, rows: slice) -> Shares:
        law = channel.law(self.question.values[rows])
        if law is None:
            raise InternalError("a channel that had a law has none for other records")
        return shares(self.scores.of(rows), law)

    def _drawn(self, channel: Channel, draws: Draws) -> Answers:
        classes = classes_of(self.question.model, np.arange(self.n_classes))
        drawn = Drawn(self.clean, self.n_classes, self.question, classes)
        return drawn.answers(channel, draws)

    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Say for each record whether the clean class wins in its whole box."""
        return keeps(self.scores, self.clean, low, high)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the clean answers and the scores."""
        return {"clean": self.clean, **vars(self.scores)}


def shares(scores: Scores, law: Mixture) -> Shares:
    """Return shares of the classes from below and above, (n, K), for laws of values."""
    low = np.zeros(scores.constant.shape)
    high = np.zeros(scores.constant.shape)
    for weight, term in zip(law.weights.T, law.terms, strict=True):
        below, above = _term(scores, term)
        low += weight[:, None] * below
        high += weight[:, None] * above
    return low, high


def _term(scores: Scores, term: tuple[Law, ...]) -> Shares:
    still = [_still(law) for law in term]
    held = np.stack(
        [
            law.points[:, 0] if fixed else np.zeros(law.n)
            for law, fixed in zip(term, still, strict=True)
        ],
        axis=1,
    )
    free = [i for i in scores.active() if not still[i]]
    rest, laws = scores.held(held, free), [term[i] for i in free]
    if not laws:
        answer = np.argmax(rest.constant, axis=1)
        won = np.eye(rest.classes)[answer]
    elif len(laws) == 1:
        won = one(rest, laws[0])
    elif len(laws) == 2:
        won = two(rest, (laws[0], laws[1]))
    else:
        return _many(rest, tuple(laws))
    return won, won


def _many(scores: Scores, laws: tuple[Law, ...]) -> Shares:
    """Two classes whose scores differ by a straight line of many values."""
    lead, slopes = np.diff(scores.constant)[:, 0], np.diff(scores.linear)[0, :, 0]
    low, high = bracket(lead, slopes, laws)
    return np.stack([1 - high, low], axis=1), np.stack([1 - low, high], axis=1)


def _still(law: Law) -> bool:
    """Say whether the value is one and the same in every draw."""
    return law.points.shape[1] == 1 and bool((law.masses > 1 - 1e-12).all())
