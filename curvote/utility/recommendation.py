"""What to send, if anything: chosen on one half of the records, shown on the other.

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
from curvote.utility.halves import Halves, halves
from curvote.utility.known import Known
from curvote.utility.rows import Row, row
from curvote.utility.setting import Setting
from curvote.utility.wishes import Metric, Pair, Scan, Wish, Words, top


@dataclass(frozen=True)
class Recommendation:
    """A deployment, its figures on records that it was not chosen by, and why.

    ``deployment`` and ``row`` are None where no total epsilon reaches the target.
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
    known: Known,
    scan: Scan,
    *,
    target: float | None = None,
    epsilon: float | None = None,
    metric: Metric = "agreement",
    share: float | None = None,
    sample: bool = False,
    seed: int = 0,
) -> Recommendation:
    """Return the least total epsilon that reaches ``target``, or the best at most so.

    ``scan`` holds deployments, floors among them, with what they do to each record.
    One of ``target`` (strictly between 0 and 1) and ``epsilon`` is given. A target is
    for the mean of ``metric``, or with ``share`` for at least that share of records,
    each by itself. It is chosen on one half of the records (`halves`, drawn from
    ``seed``), must hold on the other, and its figures are of the other. No total is
    skipped, since agreement need not grow with epsilon. What a floor equals on either
    half is not bought; a floor is shown on all records. Randomised response on the
    answer is recommended only where clients can run the model.
    """
    if (target is None) == (epsilon is None):
        raise UserError("Give one of target and epsilon: what to reach, or to spend.")
    wish = _wish(target, metric, share)
    limit = math.inf if epsilon is None else validate.positive(epsilon=epsilon)
    within = [
        pair
        for pair in scan
        if pair[0].epsilon <= limit
        and (setting.client_side or pair[0].mechanism != OUTPUT)
    ]
    if not any(deployment.free for deployment, _ in within):
        raise UserError("A recommendation needs the floors: scan them as well.")
    dealt = halves(setting, known, seed)
    find = _best if target is None else _least
    found = find(within, wish, dealt)
    if found is None:
        words = Words(setting.names, within, wish, dealt[1])
        return Recommendation(None, None, words.none())
    which = dealt[0] | dealt[1] if found[0].free else dealt[1]
    words = Words(setting.names, within, wish, which)
    shown = row(setting, *found, which=which, target=target, sample=sample)
    return Recommendation(found[0], shown, words.why(found), found[1].confidence)


def _wish(target: float | None, metric: Metric, share: float | None) -> Wish:
    validate.one_of(("agreement", "accuracy"), metric=metric)
    if target is not None:
        validate.fraction(target=target)
    if share is not None:
        validate.fraction(share=share)
    return Wish(metric, target, share)


def _best(scan: Scan, wish: Wish, dealt: Halves) -> Pair:
    """Return the best on the first half, or the best floor where one is as good."""
    found = top(scan, wish, dealt[0])
    return found if _worth(found, scan, wish, dealt) else _floor(scan, wish, dealt)


def _least(scan: Scan, wish: Wish, dealt: Halves) -> Pair | None:
    """Return what reaches the target on both halves at the least total, if any."""
    best = _floor(scan, wish, dealt)
    if _reached(best, wish, dealt):
        return best
    for total in sorted({deployment.epsilon for deployment, _ in scan}):
        found = top([pair for pair in scan if pair[0].epsilon == total], wish, dealt[0])
        if _reached(found, wish, dealt) and _worth(found, scan, wish, dealt):
            return found
    return None


def _floor(scan: Scan, wish: Wish, dealt: Halves) -> Pair:
    """Return the best floor on all records: they are few, and none costs anything."""
    return top([pair for pair in scan if pair[0].free], wish, dealt[0] | dealt[1])


def _reached(found: Pair, wish: Wish, dealt: Halves) -> bool:
    return all(wish.value(found[1], half) >= wish.needed for half in dealt)


def _worth(found: Pair, scan: Scan, wish: Wish, dealt: Halves) -> bool:
    """Say whether it is sent, and better than every floor on both halves."""
    floors = [measured for deployment, measured in scan if deployment.free]
    return not found[0].free and all(
        wish.value(found[1], half) > wish.value(floor, half)
        for half in dealt
        for floor in floors
    )
