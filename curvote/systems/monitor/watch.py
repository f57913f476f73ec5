"""A watch over a model: answers as people would send them, and what they say so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy, SeededEntropy, SystemEntropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.learning.sequences import DropDetector
from curvote.systems.monitor import encoders
from curvote.systems.monitor.questions import (
    CALIBRATION,
    CLASS,
    ERROR,
    RIGHT,
    VERSUS,
    Figure,
    Question,
    Tally,
    figures,
    main_functional,
)

# An alarm's bets begin anew so many times while a drop of five points is being found:
# more of them win little, as each counts less. Chosen on bits of .5 to .98.
_BEGINNINGS: Final = 8
_DROP: Final = 0.05


def resolve_question(
    question: str | Question,
    epsilon: float,
    classes: Sequence[Any] = (),
    bounds: tuple[float, float] | None = None,
) -> Question:
    """Return the question of a name, with the levels that a number is rounded to."""
    if isinstance(question, str):
        names = tuple(map(str, classes)) if question == CLASS else ()
        question = Question(question, classes=names, bounds=bounds)
    return question.resolved(epsilon)


def answers(
    truth: ArrayLike,
    predicted: ArrayLike,
    *,
    question: str | Question = RIGHT,
    epsilon: float = 1.0,
    group: ArrayLike | None = None,
    classes: Sequence[Any] = (),
    bounds: tuple[float, float] | None = None,
    random_state: int | None = None,
) -> NDArray[Any]:
    """Return what people would send: one noised code for each of n records.

    Parameters
    ----------
    truth, predicted : array-like of shape (n,)
        What is true, and what the model says. For `versus` ``predicted`` is (n, 2), the
        answers of both models; for `calibration` it is the probability that the model
        stated, and ``truth`` says whether it was right; for `error` both are numbers.
    question : str or Question, default="right"
        What is asked: right, class, calibration, error or versus.
    epsilon : float, default=1.0
        What each person spends on the one answer.
    group : array-like of shape (n,), optional
        The place of each person's private group, where the question has groups.
    classes : sequence, optional
        The model's classes for `class`, those of ``truth`` and ``predicted`` otherwise.
    bounds : (low, high), optional
        For `error`: to what the number is clipped; a low bound of 0 asks for its size.
    random_state : int, optional
        Noise of a study, which can be drawn again; None: of the operating system.

    Returns
    -------
    ndarray of shape (n,) or (n, bytes)
        Codes, as `Watch.add` takes them.

    Examples
    --------
    >>> from curvote.monitor import answers
    >>> answers(["no", "yes"], ["no", "no"], epsilon=50, random_state=0)
    array([1, 0])
    """
    actual, output = np.asarray(truth), np.asarray(predicted)
    name = question if isinstance(question, str) else question.name
    shape = (len(actual), 2) if name == VERSUS else (len(actual),)
    if output.shape != shape:
        raise UserError(
            f"truth has shape {actual.shape} and predicted {output.shape}: they hold"
            " one value for each record, and predicted two for versus."
        )
    if name == CLASS:
        named = question.classes if isinstance(question, Question) else classes
        if not len(named):
            named = sorted({*actual.tolist(), *output.tolist()})
        classes = [*named]
        actual, output = (_places(values, classes) for values in (actual, output))
    elif name in (ERROR, CALIBRATION):
        actual, output = (
            validate.finite(truth=actual),
            validate.finite(predicted=output),
        )
    resolved = resolve_question(question, epsilon, classes, bounds)
    entropy: Entropy = (
        SystemEntropy() if random_state is None else SeededEntropy(random_state)
    )
    word = resolved.word(actual, output, group, entropy)
    mechanism = resolved.encoder(epsilon).mechanism(epsilon)
    return mechanism.randomize(word, entropy)


def _places(values: NDArray[Any], classes: Sequence[Any]) -> NDArray[np.int64]:
    place = {value: k for k, value in enumerate(classes)}
    place |= {str(value): k for k, value in enumerate(classes)}
    try:
        return np.array([place[value] for value in values.tolist()], dtype=np.int64)
    except KeyError as error:
        raise UserError(f"{error.args[0]!r} is none of the classes.") from None


class Watch:
    """What noised answers say of a model, at every look.

    Parameters
    ----------
    question : str or Question, default="right"
        What was asked; see `answers`.
    epsilon : float, default=1.0
        What each answer spends.
    error : float, default=0.05
        The probability that the interval ever misses, over all looks; and that of ever
        giving a false alarm.
    reference, margin : float, optional
        An alarm is given once the accuracy has fallen below ``reference`` by more than
        ``margin`` (none: by anything); for `right` alone.
    classes, bounds : optional
        As for `answers`.

    Attributes
    ----------
    alarm : int or None
        The number of answers at which the drop was found.

    Examples
    --------
    >>> from curvote.monitor import Watch, answers
    >>> watch = Watch(epsilon=1, reference=0.9, margin=0.05)
    >>> watch.interval()
    (nan, 0.0, 1.0)
    >>> watch.add(answers([1] * 4000, ([1] * 9 + [0]) * 400, random_state=0))
    >>> value, low, high = watch.interval()
    >>> bool(low < 0.9 < high), watch.alarm
    (True, None)
    """

    def __init__(
        self,
        question: str | Question = RIGHT,
        *,
        epsilon: float = 1.0,
        error: float = 0.05,
        reference: float | None = None,
        margin: float | None = None,
        classes: Sequence[Any] = (),
        bounds: tuple[float, float] | None = None,
    ) -> None:
        self.epsilon = validate.positive(epsilon=epsilon)
        self.error = validate.fraction(error=error)
        self.question = resolve_question(question, epsilon, classes, bounds)
        self.encoder = self.question.encoder(epsilon)
        self.tally = Tally(self.encoder.mechanism(epsilon))
        self.detector: DropDetector | None = None
        if reference is not None:
            if self.question != Question(RIGHT):
                raise UserError("a reference is for question right, without groups.")
            bound = validate.fraction(reference=reference) - (margin or 0.0)
            self.detector = drop_detector(self.tally, self.question, bound, self.error)
        elif margin is not None:
            raise UserError("a margin needs the reference that it is below.")

    def add(self, codes: ArrayLike) -> None:
        """Take in the codes of more answers, in the order in which they came.

        Codes that no honest client sends are a UserError.
        """
        values = np.asarray(codes, dtype=self.tally.mechanism.dtype)
        if not np.asarray(self.tally.mechanism.possible_mask(values)).all():
            raise UserError("some of the codes are none that this question can give.")
        if self.detector is not None:
            self.detector.add(values)
        self.tally.add(values)

    @property
    def alarm(self) -> int | None:
        """The number of answers at which a drop was found; None: none was."""
        return self.detector.alarm if self.detector else None

    def interval(self) -> tuple[float, float, float]:
        """Return value, low and high of the main figure, which hold at every look.

        That is the accuracy, the mean error, or by how much the first model is more
        often right. Nan, and all that is possible, before the first answer.
        """
        main = figures(self.question, self.tally, self.error, main_only=True)[0]
        return main.value, main.low, main.high

    def detection(
        self, accuracy: float, *, before: int = 0, usual: float | None = None
    ) -> float:
        """Return how many answers an alarm takes in the mean, once it is so bad.

        They come behind ``before`` answers with the ``usual`` accuracy (none: that
        below which an alarm is given). Simulated: about 2 % off, as is its seed's luck.
        """
        if self.detector is None:
            raise UserError("there is no reference, so there is no alarm.")
        main, mechanism = main_figure(self.question), self.tally.mechanism
        share = main.share(mechanism, accuracy)
        quiet = None if usual is None else main.share(mechanism, usual)
        times = self.detector.time_to_detection(share, before=before, usual=quiet)
        return float(times.mean())

    def figures(self) -> list[Figure]:
        """Return all figures of the question, the main one first."""
        return figures(self.question, self.tally, self.error)


@dataclass(frozen=True)
class MainFigure:
    """The main figure of a question as the mean of a number in [0, 1] of each code.

    ``f`` (W,) makes it of words, in [0, 1]; it is ``start`` + ``width`` f . Z. Of an
    error what grows is worse.
    """

    f: FloatArray
    start: float
    width: float
    rises: bool

    def share(self, mechanism: Any, value: float) -> float:
        """Return the mean in [0, 1] of codes' numbers where the figure is ``value``."""
        low, high = encoders.functional_range(mechanism, self.f)
        share = ((value - self.start) / self.width - low) / (high - low)
        return 1 - share if self.rises else share

    def feed(
        self, detector: DropDetector, mechanism: Any, n: int, total: FloatArray
    ) -> None:
        """Give an alarm the sum of n codes' numbers, from that of decoded codes."""
        low, high = encoders.functional_range(mechanism, self.f)
        added = min(max((float(total @ self.f) - n * low) / (high - low), 0.0), n)
        detector.add_counts(n, n - added if self.rises else added)


def main_figure(question: Question) -> MainFigure:
    """Return the main figure of a question, over all groups."""
    f, start, width = main_functional(question)
    return MainFigure(f, start, width, rises=question.name == ERROR)


def drop_detector(
    tally: Tally, question: Question, bound: float, error: float
) -> DropDetector:
    """Return the alarm for a main figure worse than ``bound``, on numbers of codes."""
    main, mechanism = main_figure(question), tally.mechanism
    share = main.share(mechanism, bound)
    if not 0 < share < 1 or not 0 < abs(bound - main.start) < main.width:
        raise UserError(
            f"reference and margin make a bound of {bound:g}; it must lie strictly"
            f" between {main.start:g} and {main.start + main.width:g}."
        )
    drop = abs(share - main.share(mechanism, bound + _DROP * main.width))
    needed = 2 * share * (1 - share) * math.log(1 / error) / drop**2
    return DropDetector(share, error, max(1, round(needed / _BEGINNINGS)))
