"""Falsification of a privacy claim about anybody's code, from its outputs alone.

Nothing is known of the code. Records are searched for those that stand out, pairs of
them are ranked by what tells them apart, and the best are drawn anew: events are chosen
on a third of these draws and judged on the rest (`curvote.checks.events`).
"""

import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from curvote.audit.caller import (
    FEW,
    PER_CHILD,
    Caller,
    Draw,
    compared_columns,
    run_command,
)
from curvote.audit.outcomes import Columns, number_text, outcome_columns
from curvote.audit.record_search import FEWEST_DRAWS, Records, RecordSearch
from curvote.audit.scorer import Scorer
from curvote.base.errors import UserError
from curvote.checks import events
from curvote.checks.events import Event, Scores

# Shares of the runs: for records that stand out, the ranking of pairs, calls between
# two others, and calls in children; the proof has the rest.
SCREEN, RANK, BETWEEN, CHILDREN = 0.15, 0.2, 0.1, 0.05
SUSPECT = 0.4  # of what is left, where a way of calling looks suspicious
DRAWS_OF_RECORD = 100  # at least, for the ranking of pairs
# Pairs that are drawn anew, with their shares of what is left for the proof.
PROVED = (0.5, 0.25, 0.25)
# Default runs: what a call costs decides, up to so many; seconds that they may take.
MOST_RUNS, FEWEST_RUNS, SECONDS = 400_000, 1000, 15.0


@dataclass(frozen=True)
class OutputEvent:
    """An event in words, and as a predicate of what was released.

    That is an output, or the error that was raised; where the words say that the call
    stands between two others, or in a child, the tuple of all three outputs.
    """

    words: str
    test: Callable[[Any], bool] = field(repr=False)

    def __call__(self, output: Any) -> bool:
        """Return whether the event holds for what was released."""
        return self.test(output)

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class Falsification:
    """What draws proved of a claim.

    ``proved`` is the largest epsilon that holds with ``confidence``: ``event`` has
    ``hits`` of ``n`` draws of the first of the ``records`` and ``hits2`` of ``n`` of
    the second. ``runs`` calls were made in all. ``verdict`` is "violated" where
    ``proved`` exceeds ``epsilon``, else "held".
    """

    epsilon: float
    delta: float
    proved: float
    event: OutputEvent
    verdict: str
    records: Records = field(repr=False)
    hits: int
    hits2: int
    n: int
    runs: int
    confidence: float

    def __str__(self) -> str:
        claim = f"epsilon {self.epsilon:g}, delta {self.delta:g}"
        first, second = map(_short, self.records)
        return (
            f"{self.verdict}: {claim} is claimed, at least {self.proved:.3g} is proved"
            f" (confidence {self.confidence:g}, {self.runs} runs): {self.event} in"
            f" {self.hits} of {self.n} draws of {first} and {self.hits2} of {second}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the facts as plain JSON values."""
        texts = {"event": str(self.event), "records": [*map(_short, self.records)]}
        return vars(self) | texts


def _short(record: Any) -> str:
    text = " ".join(repr(record).split())
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True)
class _Way:
    """A way of drawing records, and of what is drawn as columns."""

    draw: Callable[..., list[Columns]]
    columns: Callable[[Sequence[Any]], Columns] = outcome_columns
    share: float = 0.0
    words: str = ""


@dataclass(frozen=True)
class _Trial:
    """A pair to be drawn n times, with the scorer of what tells it apart."""

    way: _Way
    pair: Records
    scorer: Scorer
    n: int

    def sides(self) -> tuple[Scores, Scores]:
        """Return the scores of n draws of each record."""
        first, second = map(self.scorer.scores, self.way.draw(self.pair, n=self.n))
        return first, second

    def output_event(self, event: Event) -> OutputEvent:
        """Return an event in words, and as a predicate of what is released."""
        words, text = str(event), number_text(event.score, event.low)
        if event.low == event.high and text is not None:
            words = f"{event.score} is {text!r}"

        def test(output: Any) -> bool:
            scores = self.scorer.scores(self.way.columns([output]))
            return bool(event.holds(scores[event.score])[0])

        return OutputEvent(words + self.way.words, test)


def falsify(
    call: Callable[..., Any] | list[str],
    inputs: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    runs: int | None = None,
    confidence: float = 0.999,
    odd: bool = False,
    forks: bool | None = None,
) -> Falsification:
    """Try to prove that a call tells more of its record than is claimed.

    Parameters
    ----------
    call : callable or list of str
        ``call(record)`` draws once and returns what leaves: numbers, texts, bytes,
        arrays, JSON, or any mix; ``call(record, n)`` returns n draws. An exception is
        an outcome like any other, by its type and text. Each call claims to be a draw
        of its own: one that gives the same again proves that it is none. A list is a
        command with its options, which gets a record, a text, where {} stands, or else
        on its standard input; its exit code and what it prints are the outcome.
    inputs : tuple or list
        A tuple of two numbers is an interval to search (where both are integers, and
        the call answers with integers or takes no others, of integers), a tuple of two
        other things two neighbours, a list the records to compare pairwise.
    epsilon : float
        The claim, for each call and any two of these records.
    delta : float, default=0.0
        The probability that is claimed to be beyond epsilon.
    runs : int, default=None
        Calls in all; None is as many as take half a minute, 400,000 at most.
    confidence : float, default=0.999
        The probability that a claim that holds is not called violated.
    odd : bool, default=False
        Whether NaN, infinities, huge numbers and None are records of an interval, too.
        A refusal of them then tells who has one.
    forks : bool, default=None
        Whether calls in children of a fork are compared with their parent's. None is
        yes, but generators of NumPy and Python are seeded anew in each child.

    Returns
    -------
    Falsification
        ``proved``, ``event``, ``verdict`` ("violated" or "held"), ``records``,
        ``hits``, ``hits2``, ``n``, ``runs``, ``confidence``.

    Raises
    ------
    UserError
        The claim is none, there are no two records, or too few runs.

    Notes
    -----
    Clopper-Pearson bounds on draws that chose nothing, Bonferroni over all events that
    are judged. Where the event is of a call between two others, these are about a
    record that the adversary knows, so that all three tell epsilon at most of the one
    between them.

    Examples
    --------
    >>> import random
    >>> from curvote import falsify
    >>> flip = lambda bit: bit ^ (random.random() < 0.25)  # ln 3 is its epsilon
    >>> falsify(flip, [0, 1], epsilon=1.2, runs=20_000).verdict
    'held'
    >>> falsify(flip, [0, 1], epsilon=0.9, runs=20_000).verdict
    'violated'
    """
    _check_claim(epsilon, delta, runs, confidence)
    if isinstance(call, list):
        if not call or shutil.which(call[0]) is None:
            raise UserError(f"{' '.join(call[:1])!r} is no command that can be run.")
        call, forks = partial(run_command, call), False  # each is a new process
    caller = Caller(call)
    search = RecordSearch(caller, inputs, odd=odd)
    budget = runs or _affordable_runs(caller, search.anchors[:2])
    most = max(int(RANK * budget / DRAWS_OF_RECORD), 3)
    pairs = search.pairs(int(SCREEN * budget), most)
    ranked = _rank_pairs(caller, pairs, int(RANK * budget), delta)
    rest = budget - caller.runs
    # No event of a claim that holds differs by more than tanh(epsilon / 2) + delta.
    widest = (1 + math.tanh(epsilon / 2) + delta) / 2
    pair, _, gap = ranked[0]
    widest = widest if gap <= widest else 1.0  # then no other way is needed
    trials: list[_Trial] = []
    probe = min(max(2 * FEWEST_DRAWS, budget // 100), budget // 60)
    for way in _ways(caller, pair[0], forks) if probe >= FEWEST_DRAWS else ():
        sides = way.draw(pair, n=probe)
        scorer, gap = _learn(sides, delta)[:2]
        share = SUSPECT if gap > widest else way.share
        n = max(int(rest * share / 6), FEWEST_DRAWS)
        trials.append(_Trial(way, pair, scorer, n))
    rest = budget - caller.runs - sum(6 * trial.n for trial in trials)
    shares = PROVED[: len(ranked)]
    for (pair, scorer, _), share in zip(ranked, shares, strict=True):
        n = max(int(rest * share / sum(shares) / 2), FEWEST_DRAWS)
        trials.insert(0, _Trial(_Way(caller.columns), pair, scorer, n))
    proved, event = events.strongest_event(
        (trial.sides() for trial in trials), delta, 1 - confidence
    )
    trial = trials[event.pair]
    return Falsification(
        epsilon=epsilon,
        delta=delta,
        proved=proved,
        event=trial.output_event(event),
        verdict="violated" if proved > epsilon + events.SLACK else "held",
        records=trial.pair[::-1] if event.turned else trial.pair,
        hits=event.hits,
        hits2=event.hits2,
        n=event.n,
        runs=caller.runs,
        confidence=confidence,
    )


def _ways(caller: Caller, public: Any, forks: bool | None) -> Iterator[_Way]:
    """Yield ways of calling between calls about a public record."""

    def beside(draw: Draw, share: float, words: str, block: int) -> _Way:
        draw_columns = partial(
            caller.interleaved, draw, columns=compared_columns, block=block
        )
        return _Way(draw_columns, compared_columns, share, words)

    between = partial(caller.between, public)
    words = ", between two calls of the first record"
    yield beside(between, BETWEEN, words, FEW if caller.takes_count else 1)
    if forks is not False and hasattr(os, "fork"):
        in_child = partial(caller.in_child, public, forks is None)
        yield beside(in_child, CHILDREN, ", in a child, beside its parent", PER_CHILD)


def _learn(sides: Sequence[Columns], delta: float) -> tuple[Scorer, float, float]:
    """Return what tells a pair apart: a scorer, the widest gap, and a promise."""
    scorer = Scorer.learn(*sides)
    first, second = map(scorer.scores, sides)
    proposals = [*events.propose_events(first, second, delta)]
    gap = max((event.hits - event.hits2) / event.n for event in proposals)
    return scorer, gap, max(event.promise for event in proposals)


def _check_claim(
    epsilon: float, delta: float, runs: int | None, confidence: float
) -> None:
    if not 0 <= epsilon < math.inf:
        raise UserError(f"epsilon is {epsilon!r}; a claim is a number from 0 on.")
    if not 0 <= delta < 1:
        raise UserError(f"delta is {delta!r}, not in [0, 1).")
    if not 0 < confidence < 1:
        raise UserError(f"confidence is {confidence!r}, not between 0 and 1.")
    if runs is not None and runs < 100:
        raise UserError(f"{runs} runs prove nothing; take 100 at least.")


def _affordable_runs(caller: Caller, records: Sequence[Any]) -> int:
    """Return how many runs take the seconds that the default may take."""
    seconds: dict[int, float] = {}
    n, start = FEW, time.perf_counter()
    while n < 2000 and time.perf_counter() - start < 0.2:
        begin = time.perf_counter()
        caller.columns(records, n)
        seconds[n] = (time.perf_counter() - begin) / len(records)
        n *= 2
    cost = min(seconds[k] / k for k in seconds) + seconds[FEW] * BETWEEN / FEW
    return int(min(max(SECONDS / cost, FEWEST_RUNS), MOST_RUNS))


def _rank_pairs(
    caller: Caller, pairs: Sequence[Records], budget: int, delta: float
) -> list[tuple[Records, Scorer, float]]:
    """Return pairs with their scorers and gaps.

    Those that draws tell apart best, and the first of all, which is the widest.
    """
    records = {id(x): x for pair in pairs for x in pair}
    n = max(budget // len(records), FEWEST_DRAWS)
    every = caller.columns([*records.values()], n)
    draws = dict(zip(records, every, strict=True))
    ranked: list[tuple[float, tuple[Records, Scorer, float]]] = []
    for pair in pairs:
        scorer, gap, promise = _learn([draws[id(x)] for x in pair], delta)
        ranked.append((promise, (pair, scorer, gap)))
    best = sorted(ranked, key=lambda entry: -entry[0])[: len(PROVED)]
    if ranked[0] not in best:
        best[-1] = ranked[0]
    return [entry for _, entry in best]
