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

# Records at once, and sensitive values of theirs: what the processor's cache holds.
FEW, VALUES = 16, 256
# An atom that lacks no more of all the mass is all of it: rounding.
CERTAIN = 1e-12

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
        size = max(FEW, VALUES // max(self.scores.s, 1))
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
    fixed = [_fixed(law) for law in term]
    free = [i for i in scores.active() if fixed[i] is None]
    nothing = np.zeros(len(scores.constant))
    held = [nothing if value is None else value for value in fixed]
    rest = scores.held(np.stack(held, axis=1), free)
    if len(free) > 2:
        return _many(rest, tuple(term[i] for i in free))
    won = _few(rest, [term[i] for i in free])
    return won, won


def _few(scores: Scores, laws: list[Law]) -> FloatArray:
    match laws:
        case []:
            best = np.argmax(scores.constant, axis=1)[:, None]
            return np.where(best == np.arange(scores.classes), 1.0, 0.0)
        case [law]:
            return one(scores, law)
        case _:
            return two(scores, (laws[0], laws[1]))


def _many(scores: Scores, laws: tuple[Law, ...]) -> Shares:
    """Two classes whose scores differ by a straight line of many values."""
    lead, slopes = np.diff(scores.constant)[:, 0], np.diff(scores.linear)[0, :, 0]
    low, high = bracket(lead, slopes, laws)
    return np.stack([1 - high, low], axis=1), np.stack([1 - low, high], axis=1)


def _fixed(law: Law) -> FloatArray | None:
    """Return the value (n,) that is the same in every draw, None if there is none."""
    if not law.masses.shape[1] or not (law.masses.max(axis=1) > 1 - CERTAIN).all():
        return None
    where = law.masses.argmax(axis=1)[:, None]
    return np.asarray(np.take_along_axis(law.points, where, axis=1)[:, 0])
