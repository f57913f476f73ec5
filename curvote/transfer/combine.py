"""A model for the target from what the servers released: post-processing only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from curvote import validate
from curvote.errors import UserError
from curvote.transfer import rules
from curvote.transfer.agreement import agreements
from curvote.transfer.decision import DECIDE, Decision
from curvote.transfer.forms import form
from curvote.transfer.forms.base import Array, Form
from curvote.transfer.model import Model, Standing
from curvote.transfer.release import Release
from curvote.transfer.sides import Side
from curvote.transfer.task import Task
from curvote.transfer.weighing import Reading, normalised, precision


def combine(
    task: Task,
    releases: Iterable[Release],
    target: str,
    weights: str | Mapping[str, float] = "aligned",
    decide: str = "balanced",
) -> Model:
    """Return the classifier of ``target`` from releases for ``task``.

    ``weights`` names a rule (`curvote.transfer.weighing`) or states a number >= 0 for
    each server, 0 for those not named; ``decide`` is ``balanced`` (as if classes were
    equally frequent) or ``prior`` (as they are at the target). A source without a
    release is left out. UserError: no release of the target, a release for another
    task, two of one server, an unknown name.
    """
    kind = form(task.release)
    validate.one_of(task.servers, target=target)
    decide = kind.decides or validate.one_of(DECIDE, decide=decide)
    told = _checked(task, releases, target)
    sides = [kind.side(task, each) for each in told]
    place = [side.server for side in sides].index(target)
    prior = tuple(sides[place].rates.tolist()) if decide == "prior" else None
    decision = Decision(tuple(tuple(each.rates.tolist()) for each in sides), prior)
    fixed = _fixed(kind, sides, place, weights)
    read = _reading(kind, task, sides, place, weights if fixed is None else fixed)
    if read is None and fixed is not None:
        rows = _together(kind, task, sides, fixed, decision)
    else:
        rows = _apart(kind, task, sides)
    return Model(
        task=task,
        target=target,
        weights=weights if isinstance(weights, str) else "stated",
        decision=decision,
        servers=_standings(told, sides, place, fixed),
        rows=rows,
        reading=read,
        inside=any(each.kept for each in told),
    )


def _reading(
    kind: Form, task: Task, sides: Sequence[Side], place: int, weights: Any
) -> Reading | None:
    """Return what reads every query by itself, if weights or bandwidths are chosen so.

    ``weights`` are a rule's name or hold for all queries, (J,).
    """
    if isinstance(weights, str):
        read: Reading = rules.reading(kind, weights).of(sides, place)
        return read
    if not kind.several(task):
        return None
    steady: Reading = rules.reading(kind, rules.STEADY).of(sides, place, weights)
    return steady


def _together(
    kind: Form, task: Task, sides: Sequence[Side], shares: Array, decision: Decision
) -> Array:
    """Return the rows of the scores for weights (J,) that hold for all queries."""
    refine = kind.refined(task, sides, shares)
    return decision.row(refine(_pooled(sides, shares)), shares, _level(sides, shares))


def _apart(kind: Form, task: Task, sides: Sequence[Side]) -> Array:
    """Return the contrasts of one server after the other, and mu."""
    shares = precision(sides, 0)
    refine = kind.refined(task, sides, shares)
    level = _level(sides, shares)
    return np.concatenate([*(refine(side.rows) for side in sides), level[np.newaxis]])


def _pooled(sides: Sequence[Side], shares: Array) -> Array:
    return np.asarray(np.tensordot(shares, [side.rows for side in sides], 1))


def _level(sides: Sequence[Side], shares: Array) -> Array:
    """Return mu (m,)."""
    return np.asarray(shares @ np.array([side.level for side in sides]))


def _checked(task: Task, releases: Iterable[Release], target: str) -> list[Release]:
    """Return the releases in the task's order; one that does not fit: UserError."""
    found: dict[str, Release] = {}
    for each in releases:
        asked = task.only(each.server)
        if each.task != asked.digest():
            raise UserError(
                f"the release of {each.server} is for task {each.task[:12]}; it is"
                f" asked {asked.digest()[:12]}."
            )
        if each.server in found:
            raise UserError(f"there are two releases of {each.server}.")
        found[each.server] = each
    if target not in found:
        raise UserError(f"the release of the target, {target}, is missing.")
    return [found[server] for server in task.servers if server in found]


def _fixed(
    kind: Form, sides: Sequence[Side], place: int, weights: str | Mapping[str, float]
) -> Array | None:
    """Return weights (J,) that sum to 1, None where they are found by query."""
    if isinstance(weights, str):
        rule = rules.fixed(kind, weights)
        return None if rule is None else rule(sides, place)
    named = [weights.get(side.server, 0.0) for side in sides]
    stated = validate.finite(weights=named)
    if (stated < 0).any() or not stated.any():
        raise UserError(
            f"weights are {validate.shown(dict(weights))}; they must be at least 0, and"
            f" above for one of {', '.join(side.server for side in sides)}."
        )
    return normalised(stated)


def _standings(
    told: Sequence[Release],
    sides: Sequence[Side],
    place: int,
    fixed: Array | None,
) -> tuple[Standing, ...]:
    known = zip(told, sides, agreements(sides, place), strict=True)
    return tuple(
        Standing(
            server=side.server,
            n=side.n,
            epsilon=each.budget.epsilon if each.budget else None,
            sigma=each.sigma,
            weight=None if fixed is None else float(fixed[j]),
            agreement=agreement.slope,
            agreement_se=agreement.se if math.isfinite(agreement.se) else None,
            rate=float(side.rates[-1]),
            noise=side.noise,
        )
        for j, (each, side, agreement) in enumerate(known)
    )
