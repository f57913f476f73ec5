"""Lower bound on epsilon from draws alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from curvote.audit.bounds import least_epsilon
from curvote.audit.events import Event, best_events, event_scores
from curvote.audit.row import Finding
from curvote.audit.subject import Subject
from curvote.validate import FloatArray

# How many events are judged on the held-out draws; each shares the error rate.
JUDGED = 8
# How sure the choice is of what an event promises: rare events must not be passed over.
CHOICE_ALPHA = 1e-4
SLACK = 1e-9
Drawn = tuple[Any, Any]


@dataclass(frozen=True)
class Pair:
    """Two inputs, their draws, and the declared loss of x over x2."""

    x: Any
    x2: Any
    outputs: Any
    outputs2: Any
    loss: FloatArray
    loss2: FloatArray

    @classmethod
    def of(cls, subject: Subject, first: Drawn, second: Drawn) -> Pair:
        """Return the pair of two inputs with their outputs."""
        inputs, outputs = (first[0], second[0]), (first[1], second[1])
        losses = (subject.log_ratio(*inputs, some) for some in outputs)
        return cls(*inputs, *outputs, *losses)

    @property
    def sides(self) -> tuple[tuple[Any, Any, FloatArray], ...]:
        """Each input with its outputs and their losses."""
        return (
            (self.x, self.outputs, self.loss),
            (self.x2, self.outputs2, self.loss2),
        )


def candidate_events(subject: Subject, pair: Pair) -> list[Event]:
    """Return the most telling event of each score, in both directions."""
    first, other = (
        event_scores(subject, (pair.x, pair.x2), outputs, loss)
        for _, outputs, loss in pair.sides
    )
    second = dict(other)
    delta = subject.budget.delta
    return [
        event
        for name, draws in first
        if name in second
        for event in best_events(name, draws, second[name], delta, CHOICE_ALPHA)
    ]


def lower_bound(
    subject: Subject, pairs: Sequence[Pair], alpha: float
) -> tuple[float, Event]:
    """Return an epsilon that the draws prove, and the event that proves it.

    Too large with probability ``alpha`` at most: Clopper-Pearson bounds, Bonferroni
    over the ``JUDGED`` events and their two sides.
    """
    event_alpha = alpha / (2 * JUDGED)
    events = [event for pair in pairs for event in candidate_events(subject, pair)]
    events.sort(key=lambda event: -event.promise)
    delta = subject.budget.delta

    def proven_epsilon(event: Event) -> float:
        bound = least_epsilon(event.hits, event.hits2, event.n, delta, event_alpha)
        return float(bound)

    top = max(events[:JUDGED], key=proven_epsilon)
    return max(proven_epsilon(top), 0.0), top


def check_lower_bound(subject: Subject, bound: float, event: Event) -> Finding:
    """Check that the draws prove no larger loss than the claim."""
    claimed = subject.budget.epsilon
    if bound <= claimed + SLACK:
        return Finding("statistical")
    shares = f"{event.hits} and {event.hits2} of {event.n}"
    return Finding(
        "statistical",
        f"epsilon is at least {bound:.3f}, not {claimed:g} ({event}: {shares} draws)",
    )
