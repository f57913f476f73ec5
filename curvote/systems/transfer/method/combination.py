"""Combination of the servers' releases into a model for the target."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.systems.transfer.method import weights as rules
from curvote.systems.transfer.method.model import (
    DECISIONS,
    Decision,
    Model,
    ServerSummary,
)
from curvote.systems.transfer.method.release import Release
from curvote.systems.transfer.method.task import Array, Task, form
from curvote.systems.transfer.method.weights import (
    QueryReading,
)

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
        A rule of `curvote.systems.transfer.method.weights`, or what is stated: 0 for
        those not named.
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
    prior = (kind.decides or validate.one_of(DECISIONS, decide=decide)) == "prior"
    by_server: dict[str, Release] = {}
    for release in releases:
        digest = task.for_server(release.server).digest()
        if release.task != digest:
            raise UserError(
                f"the release of {release.server} is for task {release.task[:12]}; it"
                f" is asked {digest[:12]}."
            )
        if release.server in by_server:
            raise UserError(f"there are two releases of {release.server}.")
        by_server[release.server] = release
    if target not in by_server:
        raise UserError(f"the release of the target, {target}, is missing.")
    ordered = [by_server[server] for server in task.servers if server in by_server]
    sides = [kind.side(task, release) for release in ordered]
    names = [side.server for side in sides]
    place = names.index(target)
    if isinstance(weights, str):
        rule_name, rule = weights, rules.fixed_rule(weights)
        fixed = None if rule is None else rule(sides, place)
    else:
        rule_name, fixed = "stated", normalize_weights(weights, names)
    shares = rules.precision_weights(sides, place) if fixed is None else fixed
    rows = np.concatenate([side.rows for side in sides])
    rows = kind.refined(task, sides, shares)(rows)
    decision = Decision(tuple(tuple(side.rates.tolist()) for side in sides))
    if prior:
        # The logarithms of the target's class rates, in units of the scores.
        rows = np.concatenate([rows, kind.constant(task)[np.newaxis]])
        clear = float(shares @ [side.clear for side in sides])
        main = np.tensordot(shares, [side.main for side in sides], 1) / clear
        noise = float(shares**2 @ [side.noise for side in sides]) / clear**2
        odds = max(kind.odds(task, main, noise), LEAST_ODDS)
        offsets = tuple((np.log(sides[place].rates) / odds).tolist())
        decision = replace(decision, offsets=offsets)
    reading: QueryReading | None = None
    if fixed is None:
        reading = rules.query_rule(kind, rule_name).of(sides, place)
    elif kind.has_several_bandwidths(task):
        reading = rules.query_rule(kind, rules.STEADY).of(sides, place, fixed)
    else:
        rows = decision.row(rows, fixed)
    triples = zip(ordered, sides, rules.agreements(sides, place), strict=True)
    summaries = tuple(
        ServerSummary(
            server=side.server,
            n=side.n,
            epsilon=release.budget.epsilon if release.budget else None,
            sigma=release.sigma,
            weight=None if fixed is None else float(fixed[j]),
            agreement=agreement.slope,
            agreement_se=agreement.se if math.isfinite(agreement.se) else None,
            rate=float(side.rates[-1]),
            noise=side.noise,
        )
        for j, (release, side, agreement) in enumerate(triples)
    )
    inside = any(release.kept for release in ordered)
    return Model(task, target, rule_name, decision, summaries, rows, reading, inside)


def normalize_weights(weights: Mapping[str, float], servers: Sequence[str]) -> Array:
    """Return user-given weights of ``servers`` (J,), scaled to sum 1."""
    values = validate.finite(weights=[weights.get(name, 0.0) for name in servers])
    if (values < 0).any() or not values.any():
        raise UserError(
            f"weights are {validate.format_value(dict(weights))}; they must be at least"
            f" 0, and above for one of {', '.join(servers)}."
        )
    return rules.normalize(values)
