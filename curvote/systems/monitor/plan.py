"""Plan of a watch: how many people, how often, and when a drop would be found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from curvote.base.errors import UserError
from curvote.learning.sequences import DropDetector, deviation, share_interval
from curvote.systems.monitor import encoders
from curvote.systems.monitor.messages import question_of
from curvote.systems.monitor.questions import ERROR, Question, Tally
from curvote.systems.monitor.settings import panel_count, times_asked
from curvote.systems.monitor.stages import main_bound
from curvote.systems.monitor.watch import drop_detector, main_figure

# What a trusted collector would see: no noise, as near as makes no difference.
CLEAN: Final = 40.0
# Where nobody states how good the model is.
USUAL: Final = 0.9
DROP: Final = 0.05
# Looks before the drop of which a plan tells: it is found later, the later it comes.
QUIET: Final = 4
MOST_PEOPLE: Final = 10_000_000
_STEPS: Final = 4


@dataclass(frozen=True)
class Outlook:
    """What a watch at one ``epsilon`` is expected to say.

    ``width`` (2,) is half the interval's after one window and after all; ``windows`` is
    how many a drop of ``drop`` takes until the alarm, the mean, and ``late`` how many
    it takes at most in nine of ten cases. Infinite: never, where the drop is within
    the margin.
    """

    epsilon: float
    people: int
    width: tuple[float, float]
    windows: float
    late: float


@dataclass(frozen=True)
class PlannedWatch:
    """A watch as settings state it, at a figure that is ``usual`` until it drops."""

    question: Question
    people: int
    rounds: int
    error: float
    bound: float
    usual: float

    @classmethod
    def of_settings(cls, terms: Any, answering: float = 1.0) -> PlannedWatch:
        """Return the watch of settings; UserError: it knows no reference."""
        question = question_of(terms.model_dump(mode="json"))
        usual = terms.reference
        if usual is None and question.name == ERROR:
            raise UserError("state monitor.reference, the error that is usual.")
        usual = USUAL if usual is None else usual
        bound = main_bound(question, usual, terms.margin)
        people = max(1, round(terms.people * answering))
        return cls(question, people, terms.rounds, terms.error, bound, usual)

    def outlook(self, epsilon: float, drop: float = DROP) -> Outlook:
        """Return what it says at one epsilon, where the main figure drops so far."""
        question = self.question.resolved(epsilon)
        tally = Tally(question.encoder(epsilon).mechanism(epsilon))
        detector, fallen = self._detector(tally, question), self._fallen(question, drop)
        main, mechanism = main_figure(question), tally.mechanism
        shares = [main.share(mechanism, value) for value in (fallen, self.usual)]
        times = detector.time_to_detection(
            shares[0],
            usual=shares[1],
            before=QUIET * self.people,
            step=self.people,
            variance=_variance(tally, main.f),
        )
        widths = [
            self._half_width(tally, main.f, main.width, n)
            for n in (self.people, self.people * self.rounds)
        ]
        windows = times / self.people
        late = math.inf if np.isinf(windows).any() else float(np.quantile(windows, 0.9))
        width = widths[0], widths[1]
        return Outlook(epsilon, self.people, width, float(windows.mean()), late)

    def people_needed(self, epsilon: float, within: float, drop: float = DROP) -> int:
        """Return how many must answer in a window to find a drop within so many."""
        # The answers that a drop takes hardly depend on how they are cut into windows.
        needed = self.outlook(epsilon, drop).windows * self.people / within
        for _ in range(_STEPS):
            if not 0 < needed <= MOST_PEOPLE:
                raise UserError(
                    f"no {MOST_PEOPLE:,} people a window find a drop of {drop:g} within"
                    f" {within:g} windows: the margin leaves too little of it."
                )
            people = max(1, math.ceil(needed))
            windows = self._with_people(people).outlook(epsilon, drop).windows
            needed = people * windows / within
        return max(1, math.ceil(needed))

    def _with_people(self, people: int) -> PlannedWatch:
        terms = self.rounds, self.error, self.bound, self.usual
        return PlannedWatch(self.question, people, *terms)

    def _detector(self, tally: Tally, question: Question) -> DropDetector:
        detector = drop_detector(tally, question, self.bound, self.error)
        return DropDetector(detector.bound, detector.error)  # a beginning each window

    def _fallen(self, question: Question, drop: float) -> float:
        sign = 1 if question.name == ERROR else -1
        return self.usual + sign * drop * main_figure(question).width

    def _half_width(self, tally: Tally, f: np.ndarray, width: float, n: int) -> float:
        """Return half the width of the main figure's interval after n answers."""
        low, high = encoders.functional_range(tally.mechanism, f)
        expected, spread = tally.expected(f)
        size = high - low
        if tally.is_bit(f):
            main = main_figure(self.question)
            share = main.share(tally.mechanism, self.usual)
            ends = share_interval(n, n * share, self.error, expected)
            ends_cut = [min(max(low + size * float(end), 0.0), 1.0) for end in ends]
            return width * (ends_cut[1] - ends_cut[0]) / 2
        squares = n * spread / size**2
        reach = deviation(squares, self.error, expected * spread / size**2)
        return width * min(0.5, size * float(reach) / n)


def _variance(tally: Tally, f: np.ndarray) -> float | None:
    """Return the variance of a code's number in [0, 1]; None: it is a bit."""
    if tally.is_bit(f):
        return None
    low, high = encoders.functional_range(tally.mechanism, f)
    return tally.expected(f)[1] / (high - low) ** 2


def plan_document(
    terms: Any, epsilons: Sequence[float], within: float, drop: float, answering: float
) -> dict[str, Any]:
    """Return the plan as plain values: rows by epsilon, a trusted collector last."""
    watch = PlannedWatch.of_settings(terms, answering)
    rows = []
    for epsilon in (*epsilons, CLEAN):
        view = watch.outlook(epsilon, drop)
        needed: int | None = None
        if math.isfinite(view.windows):
            needed = math.ceil(watch.people_needed(epsilon, within, drop) / answering)
        clean = epsilon == CLEAN
        rows.append(
            {
                "epsilon": None if clean else epsilon,
                "people": terms.people,
                "answers": watch.people,
                "interval_window": view.width[0],
                "interval_all": view.width[1],
                "windows_to_alarm": _finite(view.windows),
                "windows_late": _finite(view.late),
                "people_needed": needed,
                "times_asked": None if clean else times_asked(terms, epsilon),
                "panels": None if clean else panel_count(terms, epsilon),
                "people_in_all": None
                if clean
                else panel_count(terms, epsilon) * terms.people,
            }
        )
    return {
        "question": terms.question,
        "window": terms.window,
        "rounds": terms.rounds,
        "usual": watch.usual,
        "bound": watch.bound,
        "drop": drop,
        "within": within,
        "error": terms.error,
        "encoder": watch.question.encoder(epsilons[0]).reason,
        "rows": rows,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
