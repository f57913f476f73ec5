"""Recommendation: chosen on one half of the records, shown on the other.

A recommendation speaks of a population. A client must never choose epsilon, or whether
to take part, by the figure of its own record: the figure depends on the record, so the
choice would tell about it, outside of any epsilon.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from curvote import validate
from curvote.errors import UserError
from curvote.utility.deployments.deployment import OUTPUT, Deployment
from curvote.utility.halves import Halves, split_halves
from curvote.utility.known import Profile
from curvote.utility.rows import Row, make_row
from curvote.utility.setting import Setting
from curvote.utility.wishes import Explanation, Goal, Metric, Pair, Scan, best_pair


@dataclass(frozen=True)
class Recommendation:
    """Recommended deployment, its figures, and the reason.

    ``deployment`` and ``make_row`` are None where no total epsilon reaches the target.
    ``confidence`` is that of the row's interval where evidence is drawn, else None.
    """

    deployment: Deployment | None
    row: Row | None
    reason: str
    confidence: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the row's keys, all None where there is none, and ``reason``."""
        if self.row is None:
            return {**dict.fromkeys(Row.__dataclass_fields__), "reason": self.reason}
        return {**asdict(self.row), "reason": self.reason}


def recommend(
    setting: Setting,
    profile: Profile,
    scan: Scan,
    *,
    target: float | None = None,
    epsilon: float | None = None,
    metric: Metric = "agreement",
    share: float | None = None,
    sample: bool = False,
    seed: int = 0,
) -> Recommendation:
    """Return the least total epsilon that reaches ``target``, or the best.

    ``scan`` holds deployments, floors among them, with what they do to each record.
    One of ``target`` (strictly between 0 and 1) and ``epsilon`` is given. A target is
    for the mean of ``metric``, or with ``share`` for at least that share of records,
    each by itself. It is chosen on one half of the records (`split_halves`, drawn from
    ``seed``), must hold on the other, and its figures are of the other. No total is
    skipped, since agreement need not grow with epsilon. What a floor equals on either
    half is not bought; a floor is shown on all records. Randomised response on the
    answer is recommended only where clients can run the model.
    """
    if (target is None) == (epsilon is None):
        raise UserError("Give one of target and epsilon: what to reach, or to spend.")
    goal = _make_goal(target, metric, share)
    limit = math.inf if epsilon is None else validate.positive(epsilon=epsilon)
    within = [
        pair
        for pair in scan
        if pair[0].epsilon <= limit
        and (setting.client_side or pair[0].mechanism != OUTPUT)
    ]
    if not any(deployment.free for deployment, _ in within):
        raise UserError("A recommendation needs the floors: scan them as well.")
    halves_of_records = split_halves(setting, profile, seed)
    find = _best_pair if target is None else _least_pair
    choice = find(within, goal, halves_of_records)
    if choice is None:
        reasons = Explanation(setting.names, within, goal, halves_of_records[1])
        return Recommendation(None, None, reasons.explain_failure())
    display_mask = (
        halves_of_records[0] | halves_of_records[1]
        if choice[0].free
        else halves_of_records[1]
    )
    reasons = Explanation(setting.names, within, goal, display_mask)
    figures = make_row(
        setting, *choice, which=display_mask, target=target, sample=sample
    )
    return Recommendation(choice[0], figures, reasons.why(choice), choice[1].confidence)


def _make_goal(target: float | None, metric: Metric, share: float | None) -> Goal:
    """Return the checked goal of a recommendation."""
    validate.one_of(("agreement", "accuracy"), metric=metric)
    if target is not None:
        validate.fraction(target=target)
    if share is not None:
        validate.fraction(share=share)
    return Goal(metric, target, share)


def _best_pair(scan: Scan, goal: Goal, halves: Halves) -> Pair:
    """Return the best pair on the first half, or the best floor if as good."""
    candidate = best_pair(scan, goal, halves[0])
    return (
        candidate
        if _beats_floors(candidate, scan, goal, halves)
        else _best_floor(scan, goal, halves)
    )


def _least_pair(scan: Scan, goal: Goal, halves: Halves) -> Pair | None:
    """Return the pair that reaches the target at the least total, if any."""
    best = _best_floor(scan, goal, halves)
    if _reaches_goal(best, goal, halves):
        return best
    for total in sorted({deployment.epsilon for deployment, _ in scan}):
        candidate = best_pair(
            [pair for pair in scan if pair[0].epsilon == total], goal, halves[0]
        )
        if _reaches_goal(candidate, goal, halves) and _beats_floors(
            candidate, scan, goal, halves
        ):
            return candidate
    return None


def _best_floor(scan: Scan, goal: Goal, halves: Halves) -> Pair:
    """Return the best floor on all records."""
    return best_pair(
        [pair for pair in scan if pair[0].free], goal, halves[0] | halves[1]
    )


def _reaches_goal(pair: Pair, goal: Goal, halves: Halves) -> bool:
    """Return whether a pair reaches the goal on both halves."""
    return all(goal.value(pair[1], half) >= goal.needed for half in halves)


def _beats_floors(pair: Pair, scan: Scan, goal: Goal, halves: Halves) -> bool:
    """Return whether a pair sends something and beats every floor twice."""
    floors = [measured for deployment, measured in scan if deployment.free]
    return not pair[0].free and all(
        goal.value(pair[1], half) > goal.value(floor, half)
        for half in halves
        for floor in floors
    )
