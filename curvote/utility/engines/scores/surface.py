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
from curvote.utility.engines.black_box import BlackBoxSurface
from curvote.utility.engines.scores.forms import Scores
from curvote.utility.engines.scores.lattice import bracket_positive
from curvote.utility.engines.scores.margin import class_wins
from curvote.utility.engines.scores.quadrature import shares_of_one, shares_of_two
from curvote.validate import FloatArray

# Records at once, and sensitive values of theirs: what the processor's cache holds.
FEW_RECORDS, VALUES = 16, 256
# An atom that lacks no more of all the mass is all of it: rounding.
CERTAIN_MASS = 1e-12

Shares = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class ScoreSurface(Surface):
    """Surface of class scores; the model is asked only to draw."""

    question: Question
    scores: Scores

    def answers(self, channel: Channel, draws: Draws) -> Answers:
        """Return the shares of the classes from the channel's law.

        Exact (to `quadrature.TOLERANCE`) where at most two values that matter are
        noised; a certain bracket where more are; drawn where the channel has no law.
        """
        if channel.law(self.question.values[:1]) is None:
            return self._draw(channel, draws)
        parts = [self._chunk_shares(channel, rows) for rows in self._record_chunks()]
        low, high = (np.vstack(side) for side in zip(*parts, strict=True))
        evidence: Evidence = "exact" if (low == high).all() else "bracket"
        none = np.zeros(len(low), dtype=np.int64)
        return Answers((low + high) / 2, low, high, evidence, none)

    def _record_chunks(self) -> Iterator[slice]:
        """Yield slices of records that fit the processor's cache."""
        size = max(FEW_RECORDS, VALUES // max(self.scores.s, 1))
        for start in range(0, len(self.clean), size):
            yield slice(start, start + size)

    def _chunk_shares(self, channel: Channel, rows: slice) -> Shares:
        """Return the shares of some records."""
        law = channel.law(self.question.values[rows])
        if law is None:
            raise InternalError("a channel that had a law has none for other records")
        return mixture_shares(self.scores.of(rows), law)

    def _draw(self, channel: Channel, draws: Draws) -> Answers:
        """Return shares drawn by the black box."""
        classes = classes_of(self.question.model, np.arange(self.n_classes))
        black_box = BlackBoxSurface(self.clean, self.n_classes, self.question, classes)
        return black_box.answers(channel, draws)

    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Return whether the clean class wins in each record's whole box."""
        return class_wins(self.scores, self.clean, low, high)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the clean answers and the scores."""
        return {"clean": self.clean, **vars(self.scores)}


def mixture_shares(scores: Scores, law: Mixture) -> Shares:
    """Return lower and upper shares of the classes, (n, K), for laws of values."""
    low = np.zeros(scores.constant.shape)
    high = np.zeros(scores.constant.shape)
    for weight, term in zip(law.weights.T, law.terms, strict=True):
        below, above = _term_shares(scores, term)
        low += weight[:, None] * below
        high += weight[:, None] * above
    return low, high


def _term_shares(scores: Scores, term: tuple[Law, ...]) -> Shares:
    """Return lower and upper shares for one term of a mixture."""
    fixed = [_constant_value(law) for law in term]
    free = [i for i in scores.active_values() if fixed[i] is None]
    nothing = np.zeros(len(scores.constant))
    values = [nothing if value is None else value for value in fixed]
    free_scores = scores.fix_values(np.stack(values, axis=1), free)
    if len(free) > 2:
        return _bracketed_shares(free_scores, tuple(term[i] for i in free))
    won = _exact_shares(free_scores, [term[i] for i in free])
    return won, won


def _exact_shares(scores: Scores, laws: list[Law]) -> FloatArray:
    """Return exact shares for at most two noised values."""
    match laws:
        case []:
            best = np.argmax(scores.constant, axis=1)[:, None]
            return np.where(best == np.arange(scores.classes), 1.0, 0.0)
        case [law]:
            return shares_of_one(scores, law)
        case _:
            return shares_of_two(scores, (laws[0], laws[1]))


def _bracketed_shares(scores: Scores, laws: tuple[Law, ...]) -> Shares:
    """Return bracketed shares of two classes for many noised values."""
    lead, slopes = np.diff(scores.constant)[:, 0], np.diff(scores.linear)[0, :, 0]
    low, high = bracket_positive(lead, slopes, laws)
    return np.stack([1 - high, low], axis=1), np.stack([1 - low, high], axis=1)


def _constant_value(law: Law) -> FloatArray | None:
    """Return the value (n,) that is the same in every draw, None if there is none."""
    if not law.masses.shape[1] or not (law.masses.max(axis=1) > 1 - CERTAIN_MASS).all():
        return None
    where = law.masses.argmax(axis=1)[:, None]
    return np.asarray(np.take_along_axis(law.points, where, axis=1)[:, 0])
