"""The surface of classifiers by scores: exact for two values, else a bracket."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import InternalError, UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms.law import Law, Mixture
from curvote.systems.utility.method.channel import Channel
from curvote.systems.utility.method.engines.base import (
    Answers,
    Draws,
    Engine,
    Evidence,
    Question,
    Surface,
    class_indices,
    classes_of,
    predict_batched,
)
from curvote.systems.utility.method.engines.black_box import BlackBoxSurface
from curvote.systems.utility.method.engines.fronts import split_front
from curvote.systems.utility.method.engines.scores.forms import Scores, class_wins
from curvote.systems.utility.method.engines.scores.shares import (
    bracket_positive,
    shares_of_one,
    shares_of_two,
)

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
        laws = tuple(term[i] for i in free)
        lead, slopes = (
            np.diff(free_scores.constant)[:, 0],
            np.diff(free_scores.linear)[0, :, 0],
        )
        low, high = bracket_positive(lead, slopes, laws)
        return np.stack([1 - high, low], axis=1), np.stack([1 - low, high], axis=1)
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


def _constant_value(law: Law) -> FloatArray | None:
    """Return the value (n,) that is the same in every draw, None if there is none."""
    if not law.masses.shape[1] or not (law.masses.max(axis=1) > 1 - CERTAIN_MASS).all():
        return None
    where = law.masses.argmax(axis=1)[:, None]
    return np.asarray(np.take_along_axis(law.points, where, axis=1)[:, 0])


# Questions that check a model against its scores.
PROBES = 1000
# Answers may differ where the lead is so small a share of the scores: rounding.
CLOSE_LEAD = 1e-9


class ScoreEngine(Engine):
    """Engine for estimators that answer the class of the largest score."""

    @abstractmethod
    def scores(self, question: Question) -> Scores | str:
        """Return the scores around the records, or why there are none."""

    def refusal(self, question: Question) -> str | None:
        """Return why the model is not read so, or None, after `PROBES`."""
        scores = self.scores(question)
        if isinstance(scores, str):
            return scores
        which = np.arange(PROBES) % len(question.records)
        rows = question.records[which].copy()
        shares_of_range = np.random.default_rng(0).random(
            (PROBES, len(question.sensitive))
        )
        low, high = question.bounds.T
        values = low + (high - low) * shares_of_range
        rows[:, list(question.sensitive)] = values
        answers = _class_answers(question, rows, scores)
        probe_scores = scores.of(which)
        ordered = np.sort(probe_scores.at(values), axis=1)
        clear = ordered[:, -1] - ordered[:, -2] > CLOSE_LEAD * np.abs(ordered).max(
            axis=1
        )
        if bool((answers != probe_scores.places(values))[clear].any()):
            name = type(split_front(question)[0]).__name__
            return f"{name} answers otherwise than the largest of its scores."
        return None

    def surface(self, question: Question) -> Surface:
        """Return the surface of the scores; a model without: UserError."""
        scores = self.scores(question)
        if isinstance(scores, str):
            raise UserError(scores)
        clean = _class_answers(question, question.records, scores)
        return ScoreSurface(clean, scores.classes, question, scores)

    def restored(self, question: Question, arrays: dict[str, NDArray[Any]]) -> Surface:
        """Return the surface built again from its ``arrays``."""
        stored = {name: arrays[name] for name in ("constant", "linear", "square")}
        scores = Scores(**stored)
        return ScoreSurface(arrays["clean"], scores.classes, question, scores)


def _class_answers(
    question: Question, rows: FloatArray, scores: Scores
) -> NDArray[np.int64]:
    """Return the model's answers as class indices."""
    classes = getattr(question.model, "classes_", np.arange(scores.classes))
    return class_indices(np.asarray(classes), predict_batched(question.model, rows))
