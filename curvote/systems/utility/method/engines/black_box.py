"""Engine of any model that answers: by draws, its own or shared, or by all outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy, SystemEntropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms.base import Law, Mixture
from curvote.systems.utility.method.channel import Channel
from curvote.systems.utility.method.engines import base
from curvote.systems.utility.method.intervals import (
    anytime_interval,
    binomial_interval,
    decide_side,
)

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
            for piece in self.ask_pieces(record, points.reshape(len(record), -1)):
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
        for which in _record_blocks(len(self.clean), number):
            record = np.repeat(np.arange(which.start, which.stop), number)
            yield from self.pieces(channel, record, entropy)

    def pieces(
        self, channel: Channel, record: Places, entropy: Entropy | None = None
    ) -> Iterator[Piece]:
        """Yield one draw for each of ``record`` (m,), in pieces of bounded size."""
        words = entropy or SystemEntropy()
        for start in range(0, len(record), self._batch_size):
            part = record[start : start + self._batch_size]
            yield self._ask(part, channel.draw(self.question.values[part], words))

    def ask_pieces(self, record: Places, values: FloatArray) -> Iterator[Piece]:
        """Yield the answers for records (m,) noised to ``values`` (m, s), in pieces."""
        for start in range(0, len(record), self._batch_size):
            part = slice(start, start + self._batch_size)
            yield self._ask(record[part], values[part])

    @property
    def _batch_size(self) -> int:
        """Number of rows that are asked at once."""
        return base.batch_size(self.question.records.shape[1])

    def _ask(self, record: Places, values: FloatArray) -> Piece:
        """Return the answers for records (m,) noised to ``values`` (m, s)."""
        rows = self.question.records[record]
        rows[:, list(self.question.sensitive)] = values
        answers = base.predict_batched(self.question.model, rows)
        return Piece(record, rows, base.class_indices(self.classes, answers))

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


# A density is the mass of this part of a feature's width, around the point.
CELL_WIDTH = 2e-6
# A smaller mass at a point is rounding.
LEAST_ATOM = 1e-12


def atom_mask(mixture: Mixture, points: FloatArray) -> NDArray[np.bool_]:
    """Return the mask of coordinates (n, m, s) that are an atom of some law."""
    mask = np.zeros(points.shape, dtype=bool)
    laws = {(i, id(law)): law for term in mixture.terms for i, law in enumerate(term)}
    for (place, _), law in laws.items():
        mask[:, :, place] |= _point_mass(law, points[:, :, place]) > LEAST_ATOM
    return mask


def mixture_density(
    mixture: Mixture, points: FloatArray, atoms: NDArray[np.bool_], widths: FloatArray
) -> FloatArray:
    """Return the density at ``points`` (n, m, s), (n, m): masses at ``atoms``.

    All laws of a ratio need the same ``atoms``. ``widths`` (s,) scale the small cell
    whose mass stands for a density; it is wrong only for points that close to where a
    density jumps.
    """
    total = np.zeros(points.shape[:2])
    cache: dict[tuple[int, int], FloatArray] = {}
    for weight, term in zip(mixture.weights.T, mixture.terms, strict=True):
        share = np.tile(weight[:, None], points.shape[1])
        for i, law in enumerate(term):
            if (i, id(law)) not in cache:
                at, half = points[:, :, i], CELL_WIDTH * widths[i] / 2
                density = (law.cdf(at + half) - law.cdf(at - half)) / (2 * half)
                if atoms[:, :, i].any():
                    density = np.where(atoms[:, :, i], _point_mass(law, at), density)
                cache[i, id(law)] = density
            share *= cache[i, id(law)]
        total += share
    return total


def _point_mass(law: Law, at: FloatArray) -> FloatArray:
    """Return one law's mass at points, (n, m)."""
    return law.cdf(at) - law.below(at)


# An interval of weighed draws takes so many for one of Clopper-Pearson's, as measured.
WEIGHTED_DRAW_COST = 4.5
# Points of a pilot, which asks the model nothing: it tells how unequal weights are.
PILOT_POINTS = 2048
# No stake is larger than this: wealth stays above zero whatever the weights.
MOST_STAKE = 0.5
BISECTIONS = 60
# More points are not held: each takes about a hundred bytes.
MOST_POOL_POINTS = 1 << 23


@dataclass(frozen=True)
class PoolPoints:
    """Points of equal parts of channels, and their mean density.

    ``atoms`` (n, m, s) says which coordinates are atoms of some channel.
    """

    record: FloatArray
    values: FloatArray
    atoms: NDArray[np.bool_]
    mean: FloatArray
    widths: FloatArray

    def weights(self, channel: Channel) -> FloatArray:
        """Return the likelihood ratio of each point in a channel, (n, m).

        0 where the density is too small for a float: that makes lower ends lower.
        """
        law = _require_law(channel, self.record)
        densities = mixture_density(law, self.values, self.atoms, self.widths)
        nothing = np.zeros_like(densities)
        return np.divide(densities, self.mean, out=nothing, where=self.mean > 0)


def _require_law(channel: Channel, values: FloatArray) -> Mixture:
    """Return the channel's law; without one a UserError."""
    law = channel.law(values)
    if law is None:
        names = ", ".join(sorted({part.mechanism.name for part in channel.parts}))
        raise UserError(
            f"{names} has no law that could be weighed; draw it by itself, with"
            " `answers` of the surface."
        )
    return law


def _draw_points(
    channels: Sequence[Channel], values: FloatArray, number: int, entropy: Entropy
) -> PoolPoints:
    """Return ``number`` draws of each channel for each of ``values`` (n, s)."""
    repeated = np.repeat(values, number, axis=0)
    shape = (len(values), number, values.shape[1])
    samples = [channel.draw(repeated, entropy).reshape(shape) for channel in channels]
    points = np.concatenate(samples, axis=1)
    laws = [_require_law(channel, values) for channel in channels]
    atoms = np.logical_or.reduce([atom_mask(law, points) for law in laws])
    widths = np.diff(channels[0].bounds, axis=1)[:, 0]
    mean = sum(mixture_density(law, points, atoms, widths) for law in laws) / len(laws)
    return PoolPoints(values, points, atoms, np.asarray(mean), widths)


@dataclass(frozen=True)
class PoolSurface(base.Surface):
    """Surface of a black box with answers at points that channels share.

    ``answer`` (n, m) are places of classes, at m points of each record.
    """

    black_box: BlackBoxSurface
    points: PoolPoints
    pilot: PoolPoints
    answer: Places

    def worth(self, channel: Channel) -> float:
        """Return the number of a channel's own draws that the pool replaces.

        0 where the channel has no law.
        """
        if channel.law(self.pilot.record[:1]) is None:
            return 0.0
        squares = float(np.mean(self.pilot.weights(channel) ** 2))
        return self.answer.shape[1] / squares if squares > 0 else 0.0

    def answers(self, channel: Channel, draws: base.Draws) -> base.Answers:
        """Return the shares by the pool, or by ``draws`` where it adds too little.

        Which of them is decided by the laws, before any answer is looked at. Each
        interval covers with the confidence by itself, also for a channel that the pool
        was not drawn from. ``queries`` counts the answers on which they rest; those of
        the pool are shared by all channels.
        """
        worth = self.worth(channel)
        if worth < WEIGHTED_DRAW_COST * draws.number:
            return self.black_box.answers(channel, draws)
        m = self.answer.shape[1]
        missed = (1 - draws.confidence) / 2
        weights = self.points.weights(channel)
        hit = [self.answer == place for place in range(self.n_classes)]
        needed = -math.log(missed)
        stake = min(math.sqrt(-2 * math.log(missed) * 4 * worth) / m, MOST_STAKE)
        low, missed_low = (
            np.stack([_lower_means(weights * k, stake, needed) for k in kinds], axis=1)
            for kinds in (hit, [~hits for hits in hit])
        )
        share = np.stack([(weights * hits).mean(axis=1) for hits in hit], axis=1)
        queries, high = np.full(len(weights), m, dtype=np.int64), 1 - missed_low
        return base.Answers(np.clip(share, low, high), low, high, "draws", queries)

    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Raise NotImplementedError, as a black box does."""
        return self.black_box.holds(low, high)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the black box; the pool is drawn anew."""
        return self.black_box.arrays()


def _lower_means(values: FloatArray, stake: float, needed: float) -> FloatArray:
    """Return lower ends for the means of rows of independent values >= 0, (n,).

    Wealth is the product of 1 + stake (value - m). Whatever each value's own mean, it
    is 1 at most in the mean where m is the mean of means or more (the product of means
    is largest where they are equal), so it is 1/a with probability a (Markov).
    """
    low, high = np.zeros(len(values)), np.ones(len(values))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        wealth = np.log1p(stake * (values - middle[:, None])).sum(axis=1)
        refuted = wealth >= needed
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
        if (high - low).max() < 1e-7:
            break
    return low


def draw_pool(
    black_box: BlackBoxSurface, channels: Sequence[Channel], draws: base.Draws
) -> PoolSurface:
    """Return the pool of ``draws.number`` draws of each channel.

    The channels have the surface's bounds and each a law; one that has none is a
    UserError, and so are more than ``MOST_POOL_POINTS`` points.
    """
    entropy, values = draws.entropy or SystemEntropy(), black_box.question.values
    total = len(values) * len(channels) * draws.number
    if total > MOST_POOL_POINTS:
        raise UserError(
            f"A pool of {total:,} points does not fit; at most {MOST_POOL_POINTS:,} do."
            " Take fewer draws or fewer records at a time, or draw each channel by"
            " itself."
        )
    points = _draw_points(channels, values, draws.number, entropy)
    pilot_size = max(1, PILOT_POINTS // (len(values) * len(channels)))
    pilot = _draw_points(channels, values, pilot_size, entropy)
    n, m, s = points.values.shape
    record = np.repeat(np.arange(n), m)
    pieces = black_box.ask_pieces(record, points.values.reshape(-1, s))
    answer = np.concatenate([piece.answer for piece in pieces]).reshape(n, m)
    clean, k = black_box.clean, black_box.n_classes
    return PoolSurface(clean, k, black_box, points, pilot, answer)


# Draws between two looks: a call of a model is dear, a look is not.
DRAWS_BETWEEN_LOOKS = 50
MOST_DRAWS = 20_000


@dataclass(frozen=True)
class SideDecision:
    """Sides of n agreements against a target, with their intervals.

    ``side`` is 1 above the target, -1 below, 0 where the draws ran out; the wrong side
    is named with probability at most 1 - confidence. ``lower`` and ``upper`` cover
    with the confidence though one looked often. ``queries`` counts the draws.
    """

    side: NDArray[np.int8]
    lower: FloatArray
    upper: FloatArray
    queries: NDArray[np.int64]


def decide_records(
    surface: BlackBoxSurface,
    channel: Channel,
    target: float,
    *,
    confidence: float = 0.95,
    most: int = MOST_DRAWS,
    entropy: Entropy | None = None,
) -> SideDecision:
    """Return the side of the target on which each record's agreement lies.

    At most ``most`` draws of a record; each decision has the confidence by itself.
    """
    hits, number = np.zeros((2, len(surface.clean)), dtype=np.int64)
    side = np.zeros(len(hits), dtype=np.int8)
    for size in _look_sizes(most):
        unknown = np.flatnonzero(side == 0)
        hits += _count_hits(surface, channel, np.repeat(unknown, size), entropy)
        number[unknown] += size
        side = decide_side(hits, number, target, confidence)
        if side.all():
            break
    return SideDecision(side, *anytime_interval(hits, number, confidence), number)


def decide_average(
    surface: BlackBoxSurface,
    channel: Channel,
    target: float,
    *,
    confidence: float = 0.95,
    most: int = MOST_DRAWS,
    entropy: Entropy | None = None,
) -> SideDecision:
    """Return the side of the target on which the average agreement lies.

    Every draw is of a record drawn at random, so that all draws together have one
    share, the average. The arrays of the decision have one entry.
    """
    words = entropy or SystemEntropy()
    pick = np.random.default_rng(words.words(4))
    hits, number = np.zeros((2, 1), dtype=np.int64)
    side = np.zeros(1, dtype=np.int8)
    for size in _look_sizes(most):
        record = pick.integers(len(surface.clean), size=size)
        hits = hits + _count_hits(surface, channel, record, words).sum()
        number = number + size
        side = decide_side(hits, number, target, confidence)
        if side.all():
            break
    return SideDecision(side, *anytime_interval(hits, number, confidence), number)


def _look_sizes(most: int) -> list[int]:
    """Return the number of draws before each look."""
    step = DRAWS_BETWEEN_LOOKS
    return [min(step, most - done) for done in range(0, most, step)]


def _count_hits(
    surface: BlackBoxSurface,
    channel: Channel,
    record: NDArray[np.int64],
    entropy: Entropy | None,
) -> NDArray[np.int64]:
    """Return the number of clean answers of each record, (n,)."""
    hits = np.zeros(len(surface.clean), dtype=np.int64)
    for piece in surface.pieces(channel, record, entropy):
        right = piece.record[piece.answer == surface.clean[piece.record]]
        hits += np.bincount(right, minlength=len(hits))
    return hits
