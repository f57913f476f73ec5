"""Engine of any model that answers: by draws, or by all outputs."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy, SystemEntropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.learning.intervals import binomial_interval
from curvote.mechanisms.base import Law, Mixture
from curvote.systems.utility.method.engines import base
from curvote.systems.utility.method.engines.base import Channel

# What the masses may lack of one by rounding.
ROUNDING = 1e-9


def list_outputs(
    mixture: Mixture | None, most: int
) -> tuple[FloatArray, FloatArray] | None:
    """Return all outputs of discrete noise, (n, m, d), and their probabilities.

    A feature sent by k-RR on 101 levels has 101 outputs, two by Duchi's method four.
    None where they are more than ``most``, or not atoms alone. One output may stand
    there several times.
    """
    if mixture is None:
        return None
    laws = [law for term in mixture.terms for law in term]
    if any((law.masses.sum(axis=1) < 1 - ROUNDING).any() for law in laws):
        return None
    possible = []
    for term in mixture.terms:
        used = [(law.masses > 0).any(axis=0) for law in term]  # by some record
        pairs = zip(term, used, strict=True)
        possible.append([Law(law.points[:, i], law.masses[:, i]) for law, i in pairs])
    if sum(math.prod(law.masses.shape[1] for law in term) for term in possible) > most:
        return None
    points, shares = [], []
    for i, laws in enumerate(possible):
        # Every choice of one atom from each law, and its probability.
        sizes = [law.masses.shape[1] for law in laws]
        chosen = np.indices(sizes).reshape(len(sizes), -1)
        choices = list(zip(laws, chosen, strict=True))
        points.append(np.stack([law.points[:, at] for law, at in choices], axis=2))
        masses = np.prod([law.masses[:, at] for law, at in choices], axis=0)
        shares.append(masses * mixture.weights[:, [i]])
    return np.concatenate(points, axis=1), np.hstack(shares)


Places = NDArray[np.int64]

# Points of so many records are laid out at once.
MOST_POINTS = 1 << 20


@dataclass(frozen=True)
class Piece:
    """Piece of draws: record indices (m,), noised rows (m, D), answers (m,)."""

    record: Places
    rows: FloatArray
    answer: Places


@dataclass(frozen=True)
class BlackBoxSurface(base.Surface):
    """Surface of a model that must be asked for each answer.

    An answer that is none of the classes counts for none of them.
    """

    question: base.Question
    classes: NDArray[Any]

    def answers(self, channel: Channel, draws: base.Draws) -> base.Answers:
        """Return the shares of so many draws of each record.

        The intervals are Clopper-Pearson's: each one, of a record and a class, covers
        with the confidence by itself. For two classes those of a record are one. Where
        the noise has fewer outputs than draws were allowed, all of them are asked for
        instead, and the shares are exact. No draws at all are a UserError.
        """
        validate.at_least(1, draws=draws.number)
        exact = self.exact_answers(channel, draws.number)
        if exact is not None:
            return exact
        counts = self.counts(channel, draws.number, draws.entropy)
        low, high = binomial_interval(counts, draws.number, draws.confidence)
        queries = np.full(len(counts), draws.number, dtype=np.int64)
        return base.Answers(
            counts / draws.number, low, high, "draws", queries, draws.number
        )

    def exact_answers(self, channel: Channel, most: int) -> base.Answers | None:
        """Return exact shares from all outputs of the noise, None above ``most``."""
        law = channel.law(self.question.values)
        n = len(self.clean)
        share, queries = np.zeros(n * self.n_classes), np.zeros(n, dtype=np.int64)
        for block in _record_blocks(n, most):
            outputs = None if law is None else list_outputs(law.select(block), most)
            if outputs is None:
                return None
            points, chances = outputs
            m = queries[block] = chances.shape[1]
            record, weights = np.repeat(np.arange(n)[block], m), chances.ravel()
            added, start = np.zeros_like(share), 0
            for piece in self.pieces(record, points.reshape(len(record), -1)):
                valid, stop = piece.answer >= 0, start + len(piece.answer)
                where = (piece.record * self.n_classes + piece.answer)[valid]
                added += np.bincount(where, weights[start:stop][valid], len(share))
                start = stop
            share += added
        shares = np.clip(share.reshape(n, -1), 0, 1)
        return base.Answers(shares, shares, shares, "exact", queries)

    def counts(
        self, channel: Channel, number: int, entropy: Entropy | None = None
    ) -> NDArray[np.int64]:
        """Return the number of draws of each class for each record, (n, K)."""
        n, k = len(self.clean), self.n_classes
        counted = np.zeros(n * k, dtype=np.int64)
        for piece in self.repeated(channel, number, entropy):
            hits = (piece.record * k + piece.answer)[piece.answer >= 0]
            counted += np.bincount(hits, minlength=n * k)
        return counted.reshape(n, k)

    def repeated(
        self, channel: Channel, number: int, entropy: Entropy | None = None
    ) -> Iterator[Piece]:
        """Yield ``number`` draws of each record, in pieces of bounded size."""
        values, words = self.question.values, entropy or SystemEntropy()

        def noised(record: Places) -> FloatArray:
            return channel.draw(values[record], words)

        for which in _record_blocks(len(self.clean), number):
            record = np.repeat(np.arange(which.start, which.stop), number)
            yield from self.pieces(record, noised)

    def pieces(
        self, record: Places, values: FloatArray | Callable[[Places], FloatArray]
    ) -> Iterator[Piece]:
        """Yield the answers for ``record`` (m,) with noised values, in pieces.

        The ``values`` are (m, s), or what draws them for some of the records.
        """
        question = self.question
        size = base.batch_size(question.records.shape[1])
        for start in range(0, len(record), size):
            at = slice(start, start + size)
            rows = question.records[record[at]]
            noised = values(record[at]) if callable(values) else values[at]
            rows[:, list(question.sensitive)] = noised
            answers = base.predict_batched(question.model, rows)
            yield Piece(record[at], rows, base.class_indices(self.classes, answers))

    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Raise NotImplementedError: answers that were not asked for are unknown."""
        raise NotImplementedError("a black box cannot be known in a whole box")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the answers without noise, and the classes: words as plain ones."""
        words = self.classes.dtype == object
        classes = self.classes.astype(str) if words else self.classes
        return {"clean": self.clean, "classes": classes}


def _record_blocks(n: int, points: int) -> Iterator[slice]:
    """Yield slices of n records, with so many points each, of bounded size."""
    size = max(1, MOST_POINTS // points)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def draw_answers(
    surface: base.Surface, question: base.Question, channel: Channel, draws: base.Draws
) -> base.Answers:
    """Return drawn shares of a known model, where a channel has no law to add up."""
    k = surface.n_classes
    classes = base.classes_of(question.model, np.arange(k))
    return BlackBoxSurface(surface.clean, k, question, classes).answers(channel, draws)


class BlackBox(base.Engine):
    """Engine for anything with `predict`."""

    name = "black_box"

    def refusal(self, question: base.Question) -> str | None:
        """Return why the model cannot be asked, or None."""
        return None if hasattr(question.model, "predict") else "it has no `predict`"

    def surface(self, question: base.Question) -> base.Surface:
        """Return the surface with the clean answers, asked for twice.

        UserError if the two differ: agreement with what is not fixed says nothing.
        """
        model, records = question.model, question.records
        first, second = (base.predict_batched(model, records) for _ in range(2))
        if differ := int(np.count_nonzero(first != second)):
            raise UserError(
                f"The model answered {differ} of {len(first)} records differently when"
                " asked twice. Fix its random state or its temperature, or hand over a"
                " model whose `predict` gives the most frequent of several answers."
            )
        classes = base.classes_of(model, first)
        clean = base.class_indices(classes, first)
        return BlackBoxSurface(clean, len(classes), question, classes)

    def restored(
        self, question: base.Question, arrays: dict[str, NDArray[Any]]
    ) -> base.Surface:
        """Return the surface built from ``arrays``; the model is not asked."""
        classes = arrays["classes"]
        return BlackBoxSurface(arrays["clean"], len(classes), question, classes)
