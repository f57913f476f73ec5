"""A model for the target from what the servers released: post-processing only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from curvote import validate
from curvote.errors import UserError
from curvote.transfer import rules
from curvote.transfer.agreement import agreements
from curvote.transfer.decision import DECIDE, Decision
from curvote.transfer.forms import form
from curvote.transfer.forms.base import Array, Form
from curvote.transfer.model import Model, Standing
from curvote.transfer.releasing import Release
from curvote.transfer.sides import Side
from curvote.transfer.task import Task
from curvote.transfer.weighing import Reading, normalised, precision

# Where differences drown in noise, rates alone decide.
LEAST_ODDS = 1e-9


def combine(
    task: Task,
    releases: Iterable[Release],
    target: str,
    weights: str | Mapping[str, float] = "aligned",
    decide: str = "balanced",
) -> Model:
    """Return the classifier of ``target`` from releases for ``task``.

    Parameters
    ----------
    task : curvote.transfer.Task
        What all servers were asked.
    releases : iterable of Release
        At most one of each server; a source without a release is left out.
    target : str
        The server that the classifier is for; its release must be among them.
    weights : str or mapping from server to a number >= 0, default="aligned"
        A rule of `curvote.transfer.weighing`, or what is stated: 0 for those not named.
    decide : "balanced" or "prior", default="balanced"
        As if classes were equally frequent, or as they are at the target.

    Returns
    -------
    Model
        A classifier of raw records.

    Raises
    ------
    UserError
        No release of the target, a release for another task, two of one server, an
        unknown name.

    Examples
    --------
    >>> import numpy as np
    >>> from curvote.transfer import Task, release
    >>> X, y = np.tile([[30], [70]], (500, 1)), np.tile(["no", "yes"], 500)
    >>> task = Task([("age", 20, 90)], classes=("no", "yes"), servers={"a": 2, "b": 4})
    >>> sent = [release(task, server, X, y) for server in ("a", "b")]
    >>> print(*combine(task, sent, target="a").predict([[32], [71]]))
    no yes
    """
    kind = form(task.release)
    validate.one_of(task.servers, target=target)
    prior = (kind.decides or validate.one_of(DECIDE, decide=decide)) == "prior"
    told = _checked(task, releases, target)
    sides = [kind.side(task, each) for each in told]
    place = [side.server for side in sides].index(target)
    fixed = _fixed(kind, sides, place, weights)
    shares = precision(sides, place) if fixed is None else fixed
    rows = kind.refined(task, sides, shares)(np.concatenate([s.rows for s in sides]))
    decision = Decision(tuple(tuple(each.rates.tolist()) for each in sides))
    if prior:
        rows = np.concatenate([rows, kind.constant(task)[np.newaxis]])
        decision = replace(decision, offsets=_offsets(kind, task, sides, shares, place))
    named = weights if isinstance(weights, str) else "stated"
    read = _reading(kind, task, sides, place, named if fixed is None else fixed)
    return Model(
        task=task,
        target=target,
        weights=named,
        decision=decision,
        servers=_standings(told, sides, place, fixed),
        rows=decision.row(rows, fixed) if read is None and fixed is not None else rows,
        reading=read,
        inside=any(each.kept for each in told),
    )


def _reading(
    kind: Form, task: Task, sides: Sequence[Side], place: int, weights: str | Array
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


def _offsets(
    kind: Form, task: Task, sides: Sequence[Side], shares: Array, place: int
) -> tuple[float, ...]:
    """Return the logarithms of the target's rates in units of the scores."""
    clear = float(shares @ [side.clear for side in sides])
    main = np.tensordot(shares, [side.main for side in sides], 1) / clear
    noise = float(shares**2 @ [side.noise for side in sides]) / clear**2
    odds = max(kind.odds(task, main, noise), LEAST_ODDS)
    return tuple((np.log(sides[place].rates) / odds).tolist())


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
    return stated_weights(weights, [side.server for side in sides])


def stated_weights(weights: Mapping[str, float], servers: Sequence[str]) -> Array:
    """Return stated weights of ``servers`` (J,), which sum to 1; else UserError."""
    named = validate.finite(weights=[weights.get(name, 0.0) for name in servers])
    if (named < 0).any() or not named.any():
        raise UserError(
            f"weights are {validate.shown(dict(weights))}; they must be at least 0, and"
            f" above for one of {', '.join(servers)}."
        )
    return normalised(named)


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
