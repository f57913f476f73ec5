"""Questions about a model: their words, and the figures that noised answers give.

`right`: one bit. `class`: the model's class and the true one. `calibration`: the bin of
the probability that the model states, and whether it was right. `error`: a bounded
number, such as prediction minus truth. `versus`: which of two models was right. Each
may have private groups, whose name is hidden in the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.learning import sequences
from curvote.mechanisms.labels import PureMechanism, SupportMechanism
from curvote.mechanisms.randomized_response import KRR
from curvote.systems.monitor import encoders
from curvote.systems.monitor.encoders import Encoder

RIGHT, CLASS, CALIBRATION, ERROR, VERSUS = (
    *("right", "class", "calibration", "error", "versus"),
)
QUESTIONS: Final = (RIGHT, CLASS, CALIBRATION, ERROR, VERSUS)
# Of a class and a group; of ten classes and eight groups a code still says something.
MOST_WORDS: Final = 1024
# Of fewer levels a quantile says no more than the mean.
QUANTILE_LEVELS: Final = 9
Words = NDArray[np.int64]


@dataclass(frozen=True)
class Question:
    """A question: what of a model and a record becomes which word.

    ``classes`` are the model's, for `class`. ``bins`` cut [0, 1] for `calibration`.
    ``bounds`` (low, high) hold a number for `error`, which is clipped to them; it is
    rounded at random to one of ``levels``, equally far apart, so that its mean stays;
    None: as many as leave the mean least variance. ``groups`` are private. What does
    not fit is a UserError.
    """

    name: str = RIGHT
    classes: tuple[str, ...] = ()
    bins: int = 10
    bounds: tuple[float, float] | None = None
    levels: int | None = None
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        validate.one_of(QUESTIONS, question=self.name)
        if self.name == CLASS and len(self.classes) < 2:
            raise UserError("a question of class needs two or more classes.")
        if (self.name == ERROR) != (self.bounds is not None):
            raise UserError("bounds (low, high) belong to a question of error alone.")
        if self.bounds is not None and not (
            -math.inf < self.bounds[0] < self.bounds[1] < math.inf
        ):
            raise UserError(f"bounds are {self.bounds}; the low one must be below.")
        if self.levels is not None:
            validate.at_least(2, levels=self.levels)
        validate.at_least(1, bins=self.bins)
        if len(self.groups) == 1:
            raise UserError("one group alone is everybody: name two or more, or none.")
        if self.all_words > MOST_WORDS:
            raise UserError(
                f"there are {self.all_words} words; a noised answer tells at most"
                f" {MOST_WORDS}."
            )

    @property
    def words(self) -> int:
        """The number of words of one group."""
        return {
            RIGHT: 2,
            CLASS: len(self.classes) ** 2,
            CALIBRATION: 2 * self.bins,
            ERROR: self.levels or 2,
            VERSUS: 4,
        }[self.name]

    @property
    def all_words(self) -> int:
        """The number of words of all groups."""
        return self.words * max(1, len(self.groups))

    def resolved(self, epsilon: float) -> Question:
        """Return the question with the levels that leave its mean least variance."""
        if self.name != ERROR or self.levels is not None:
            return self
        best = encoders.best_for_mean(epsilon, max(1, len(self.groups)))
        return replace(self, levels=best.words // max(1, len(self.groups)))

    def encoder(self, epsilon: float) -> Encoder:
        """Return the encoder of least variance for what is asked.

        That is the mean of an `error` whose levels nobody states, and else the shares
        of all words.
        """
        if self.name == ERROR and self.levels is None:
            return encoders.best_for_mean(epsilon, max(1, len(self.groups)))
        return encoders.best_for_shares(self.all_words, epsilon)

    def word(
        self,
        truth: ArrayLike,
        predicted: ArrayLike,
        group: ArrayLike | None,
        entropy: Entropy,
    ) -> Words:
        """Return the word (n,) of each record before noise.

        ``predicted`` is the model's answer (n,); of `versus` both models' (n, 2); of
        `calibration` the probability that the model stated, with ``truth`` saying
        whether it was right. Classes are their places. ``entropy`` rounds numbers.
        """
        if bool(self.groups) != (group is not None):
            words = "each record's group" if self.groups else "no group, as it has none"
            raise UserError(f"the question takes {words}.")
        actual, answer = np.asarray(truth), np.asarray(predicted)
        if self.name == RIGHT:
            word = (actual == answer).astype(np.int64)
        elif self.name == CLASS:
            word = answer.astype(np.int64) * len(self.classes) + actual.astype(np.int64)
        elif self.name == VERSUS:
            right = answer == actual[:, None]
            word = right @ np.array([1, 2])
        elif self.name == CALIBRATION:
            probability = np.clip(np.nan_to_num(answer.astype(np.float64)), 0, 1)
            bins = np.minimum((probability * self.bins).astype(np.int64), self.bins - 1)
            word = 2 * bins + (actual != 0)
        else:
            word = self._level(answer.astype(np.float64) - actual, entropy)
        if group is not None:
            word = word + np.asarray(group) * self.words
        return np.asarray(word, dtype=np.int64)

    def _level(self, number: FloatArray, entropy: Entropy) -> Words:
        """Return numbers clipped to the bounds and rounded at random to a level."""
        low, high = self.bounds or (0.0, 1.0)
        number = np.abs(number) if low >= 0 else number
        place = (np.clip(number, low, high) - low) / (high - low) * (self.words - 1)
        down = np.floor(place)
        # The fraction is a multiple of 2^-53: as a number of 64-bit words it is exact.
        limit = ((place - down) * 2.0**53).astype(np.uint64) << np.uint64(11)
        return np.asarray(down + (entropy.words(len(place)) < limit), dtype=np.int64)


@dataclass
class Tally:
    """Counts of decoded answers: all that any figure needs, whatever their number.

    ``total`` (W,) is the sum of decoded codes Z, ``squares`` (W, W) that of
    (Z - g)(Z - g)', g the mean of all answers of earlier looks.
    """

    mechanism: SupportMechanism
    n: int = 0
    total: FloatArray = field(default_factory=lambda: np.empty(0))
    squares: FloatArray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if not self.n:
            words = self.mechanism.n_classes
            self.total, self.squares = np.zeros(words), np.zeros((words, words))

    def add(self, codes: NDArray[Any], counts: ArrayLike | None = None) -> None:
        """Take in the codes of one look, each as often as ``counts`` (n,) says."""
        words = self.mechanism.n_classes
        guess = self.total / self.n if self.n else np.full(words, 1 / words)
        for start in range(0, len(codes), 1 << 14):
            part = slice(start, start + (1 << 14))
            z = self.mechanism.decode(codes[part])
            times = np.ones(len(z)) if counts is None else np.asarray(counts)[part]
            self.total = self.total + times @ z
            self.squares = self.squares + (z - guess).T @ (times[:, None] * (z - guess))
            self.n += int(times.sum())

    def value(self, f: FloatArray) -> float:
        """Return the unbiased mean of f . Z; nan of no answer."""
        return float(self.total @ f) / self.n if self.n else math.nan

    def interval(self, f: FloatArray, error: float) -> tuple[float, float]:
        """Return low and high for the mean of f . Z, for all looks with one ``error``.

        Not cut to what is possible. Where f . Z has two values, by the exact law of
        bits, else by its squares.
        """
        low, high = encoders.functional_range(self.mechanism, f)
        size = high - low
        if not self.n or not size:
            return low, high
        expected, spread = self.expected(f)
        if self.is_bit(f):
            total = (float(self.total @ f) - self.n * low) / size
            first, last = sequences.share_interval(
                self.n, min(max(total, 0.0), self.n), error, expected
            )
            return low + size * float(first), low + size * float(last)
        squares = max(0.0, float(f @ self.squares @ f)) / size**2
        reach = sequences.deviation(squares, error, expected * spread / size**2)
        middle, away = self.value(f), size * float(reach) / self.n
        return middle - away, middle + away

    def expected(self, f: FloatArray) -> tuple[float, float]:
        """Return for how many answers an interval is narrowest, and Var(f . Z).

        It is about as many as a fixed sample needs for the target width, where all
        words are as frequent.
        """
        spread = float(encoders.functional_variance(self.mechanism, f).mean() + f.var())
        scale = float(np.ptp(f)) * sequences.TARGET_WIDTH
        return max(1.0, (1.96 / scale) ** 2 * spread), spread

    def is_bit(self, f: FloatArray) -> bool:
        """Say whether f . Z has two values only, in one of the known ways."""
        if isinstance(self.mechanism, KRR):
            return len(np.unique(f)) == 2
        return isinstance(self.mechanism, PureMechanism) and np.count_nonzero(f) == 1

    def ratio(
        self, part: FloatArray, among: FloatArray, error: float
    ) -> tuple[float, float, float]:
        """Return value, low and high of part . Z over among . Z, in [0, 1].

        Those ratios r are left for which the mean of (part - r among) . Z may be 0.
        """
        below = self.value(among)
        # Of hardly anybody nothing is said: a ratio to what may be 0 is no estimate.
        if not below > 0 or self.interval(among, error)[0] <= 0:
            return math.nan, 0.0, 1.0
        value = min(max(self.value(part) / below, 0.0), 1.0)
        ends = (self._ratio_end(part, among, error, value, edge) for edge in (0.0, 1.0))
        return value, next(ends), next(ends)

    def _ratio_end(
        self,
        part: FloatArray,
        among: FloatArray,
        error: float,
        inner: float,
        outer: float,
    ) -> float:
        """Return, from outside, where ratios stop being possible towards ``outer``."""
        middle = outer
        for _ in range(_RATIO_HALVINGS):
            low, high = self.interval(part - middle * among, error)
            if low <= 0 <= high:
                inner = middle
            else:
                outer = middle
            middle = (inner + outer) / 2
        return outer


_RATIO_HALVINGS: Final = 12


@dataclass(frozen=True)
class Figure:
    """A number about a model, with an interval that holds at every look.

    ``share`` is the probability of error that its interval was given. ``liars`` is how
    far 1 % of people who send what they like can move it at most.
    """

    name: str
    value: float
    low: float
    high: float
    share: float
    liars: float
    group: str = ""

    def in_group(self, group: str) -> Figure:
        """Return the figure as that of a group."""
        return replace(self, group=group)


def figures(
    question: Question, tally: Tally, error: float, *, main_only: bool = False
) -> list[Figure]:
    """Return the figures of a question, the main one first, then that of each group.

    The main figure errs at any look with probability at most ``error``, and so does
    each of its companies, all members together: classes, bins, groups, cells.
    """
    reader = _Reader(question, tally)
    groups = question.groups
    rows = [reader.main("", error)]
    rows += [reader.main(group, error / len(groups)) for group in groups]
    if main_only:
        return rows
    if question.name == CLASS:
        rows += reader.class_figures(error)
    elif question.name == CALIBRATION:
        rows += reader.bin_figures(error)
    elif question.name == VERSUS:
        for name, words in (("first", (1, 3)), ("second", (2, 3))):
            rows.append(reader.mean(name, reader.words(words), error / 2))
    elif question.name == ERROR and question.words >= QUANTILE_LEVELS:
        rows += reader.quantiles(error)
    return rows


@dataclass(frozen=True)
class _Reader:
    """Figures of one tally, each a mean f . Z or a ratio of two."""

    question: Question
    tally: Tally

    def words(self, places: Iterable[int], group: str = "") -> FloatArray:
        """Return the indicator (W,) of words, in a group or in all."""
        q = self.question
        indicator = np.zeros((max(1, len(q.groups)), q.words))
        rows = q.groups.index(group) if group else slice(None)
        indicator[rows, list(places)] = 1
        return indicator.ravel()

    def main(self, group: str, error: float) -> Figure:
        """Return the figure that stands for the question, of a group or of all."""
        q = self.question
        f, start, width = main_functional(q)
        name = {ERROR: "error", VERSUS: "lead"}.get(q.name, "accuracy")
        every = self.words(range(q.words), group) if group else None
        part = f if every is None else f * every
        return _rescaled(self.share(name, part, every, error, group), start, width)

    def mean(self, name: str, f: FloatArray, error: float, group: str = "") -> Figure:
        """Return the mean of f . Z in [0, 1]; its interval is cut to that."""
        value, (low, high) = self.tally.value(f), self.tally.interval(f, error)
        ends = min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)
        return Figure(name, value, *ends, error, self._liars(f, value), group)

    def share(
        self,
        name: str,
        part: FloatArray,
        among: FloatArray | None,
        error: float,
        group: str = "",
    ) -> Figure:
        """Return part . Z over among . Z, or over everybody where that is None."""
        if among is None:
            return self.mean(name, part, error, group)
        value, low, high = self.tally.ratio(part, among, error)
        below = self.tally.value(among)
        moved = (
            self._liars(part - value * among, 0.0) / below if below > 0 else math.nan
        )
        return Figure(name, value, low, high, error, moved, group)

    def _liars(self, f: FloatArray, value: float) -> float:
        """Return how far 1 % of liars move the mean of f . Z at most."""
        low, high = encoders.functional_range(self.tally.mechanism, f)
        return 0.01 * max(high - value, value - low)

    def class_figures(self, error: float) -> Iterator[Figure]:
        """Yield recall, precision and F1 by class, their means, and all cells."""
        names = self.question.classes
        k = len(names)
        cells = np.arange(k * k).reshape(k, k)  # a row an answer, a column a truth
        by_kind: dict[str, list[Figure]] = {"recall": [], "precision": [], "f1": []}
        for c, name in enumerate(names):
            hit, truth, answer = cells[c, c], cells[:, c], cells[c]
            part, actual, predicted = (self.words(w) for w in ([hit], truth, answer))
            for kind, among in (
                ("recall", actual),
                ("precision", predicted),
                ("f1", (actual + predicted) / 2),
            ):
                by_kind[kind].append(self.share(kind, part, among, error / k, name))
        for kind, mean in (("recall", "balanced accuracy"), ("f1", "macro F1")):
            table = np.array([(f.value, f.low, f.high, f.liars) for f in by_kind[kind]])
            value, low, high, liars = table.mean(axis=0).tolist()
            yield Figure(mean, value, low, high, error, liars)
        for rows in by_kind.values():
            yield from rows
        for answer, truth in np.ndindex(k, k):
            f = self.words([cells[answer, truth]])
            label = f"{names[answer]} for {names[truth]}"
            yield self.mean("cell", f, error / k**2, label)

    def bin_figures(self, error: float) -> Iterator[Figure]:
        """Yield what share is right in each bin of stated probability."""
        bins = self.question.bins
        for b in range(bins):
            part, among = self.words([2 * b + 1]), self.words([2 * b, 2 * b + 1])
            label = f"{b / bins:g} to {(b + 1) / bins:g}"
            yield self.share("right", part, among, error / bins, label)

    def quantiles(self, error: float) -> Iterator[Figure]:
        """Yield median and 90 % quantile of the rounded number, a level at most off."""
        levels, (low, high) = self.question.words, self.question.bounds or (0.0, 1.0)
        below = [
            self.mean("", self.words(range(place + 1)), error / (levels - 1))
            for place in range(levels - 1)
        ]
        values = np.linspace(low, high, levels)
        lines = (
            [f.value for f in below],
            [f.high for f in below],
            [f.low for f in below],
            [f.value + f.liars for f in below],
            [f.value - f.liars for f in below],
        )
        for share in (0.5, 0.9):
            value, first, last, *moved = (
                float(values[np.searchsorted(np.maximum.accumulate(line), share)])
                for line in lines
            )
            liars = max(value - moved[0], moved[1] - value)
            yield Figure(f"{share:.0%} quantile", value, first, last, error, liars)


def main_functional(question: Question) -> tuple[FloatArray, float, float]:
    """Return f (W,) in [0, 1], start and width of the figure start + width f . Z.

    It is the share of right answers; of an error its mean; of two models the share that
    the first alone is right about, less that of the second.
    """
    q, start, width = question, 0.0, 1.0
    f = np.zeros(q.words)
    if q.name == ERROR:
        f = np.linspace(0, 1, q.words)
        start, end = q.bounds or (0.0, 1.0)
        width = end - start
    elif q.name == VERSUS:
        f, start, width = np.array([0.5, 1.0, 0.0, 0.5]), -1.0, 2.0
    elif q.name == CLASS:
        f[:: len(q.classes) + 1] = 1
    else:
        f[1::2] = 1
    return np.tile(f, max(1, len(q.groups))), start, width


def _rescaled(figure: Figure, start: float, width: float) -> Figure:
    """Return a figure of [0, 1] as one of a range that begins at ``start``."""
    ends = {
        name: start + width * getattr(figure, name) for name in ("value", "low", "high")
    }
    return replace(figure, **ends, liars=width * figure.liars)
