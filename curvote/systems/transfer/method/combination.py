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
from curvote.systems.transfer.method.task import Array, Contrasts, Form, Task, form
from curvote.systems.transfer.method.weights import (
    QueryReading,
    agreements,
    normalize,
    precision_weights,
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
    form_of_release = form(task.release)
    validate.one_of(task.servers, target=target)
    prior = (
        form_of_release.decides or validate.one_of(DECISIONS, decide=decide)
    ) == "prior"
    by_server: dict[str, Release] = {}
    for release in releases:
        server_task = task.for_server(release.server)
        if release.task != server_task.digest():
            raise UserError(
                f"the release of {release.server} is for task {release.task[:12]}; it"
                f" is asked {server_task.digest()[:12]}."
            )
        if release.server in by_server:
            raise UserError(f"there are two releases of {release.server}.")
        by_server[release.server] = release
    if target not in by_server:
        raise UserError(f"the release of the target, {target}, is missing.")
    ordered_releases = [
        by_server[server] for server in task.servers if server in by_server
    ]
    sides = [form_of_release.side(task, item) for item in ordered_releases]
    place = [side.server for side in sides].index(target)
    fixed = _fixed_weights(form_of_release, sides, place, weights)
    shares = precision_weights(sides, place) if fixed is None else fixed
    rows = form_of_release.refined(task, sides, shares)(
        np.concatenate([s.rows for s in sides])
    )
    decision = Decision(tuple(tuple(item.rates.tolist()) for item in sides))
    if prior:
        rows = np.concatenate([rows, form_of_release.constant(task)[np.newaxis]])
        decision = replace(
            decision, offsets=_rate_offsets(form_of_release, task, sides, shares, place)
        )
    rule_name = weights if isinstance(weights, str) else "stated"
    read = _query_reading(
        form_of_release, task, sides, place, rule_name if fixed is None else fixed
    )
    return Model(
        task=task,
        target=target,
        weights=rule_name,
        decision=decision,
        servers=_summarize_servers(ordered_releases, sides, place, fixed),
        rows=decision.row(rows, fixed) if read is None and fixed is not None else rows,
        reading=read,
        inside=any(item.kept for item in ordered_releases),
    )


def _query_reading(
    kind: Form, task: Task, sides: Sequence[Contrasts], place: int, weights: str | Array
) -> QueryReading | None:
    """Return the per-query reading, None if one row serves all queries.

    ``weights`` are a rule's name or hold for all queries, (J,).
    """
    if isinstance(weights, str):
        read: QueryReading = rules.query_rule(kind, weights).of(sides, place)
        return read
    if not kind.has_several_bandwidths(task):
        return None
    steady: QueryReading = rules.query_rule(kind, rules.STEADY).of(
        sides, place, weights
    )
    return steady


def _rate_offsets(
    kind: Form, task: Task, sides: Sequence[Contrasts], shares: Array, place: int
) -> tuple[float, ...]:
    """Return the logarithms of the target's class rates in units of the scores."""
    clear = float(shares @ [side.clear for side in sides])
    main = np.tensordot(shares, [side.main for side in sides], 1) / clear
    noise = float(shares**2 @ [side.noise for side in sides]) / clear**2
    odds = max(kind.odds(task, main, noise), LEAST_ODDS)
    return tuple((np.log(sides[place].rates) / odds).tolist())


def _fixed_weights(
    kind: Form,
    sides: Sequence[Contrasts],
    place: int,
    weights: str | Mapping[str, float],
) -> Array | None:
    """Return weights (J,) that hold for all queries, None if found by query."""
    if isinstance(weights, str):
        rule = rules.fixed_rule(kind, weights)
        return None if rule is None else rule(sides, place)
    return normalize_weights(weights, [side.server for side in sides])


def normalize_weights(weights: Mapping[str, float], servers: Sequence[str]) -> Array:
    """Return user-given weights of ``servers`` (J,), scaled to sum 1."""
    values = validate.finite(weights=[weights.get(name, 0.0) for name in servers])
    if (values < 0).any() or not values.any():
        raise UserError(
            f"weights are {validate.format_value(dict(weights))}; they must be at least"
            f" 0, and above for one of {', '.join(servers)}."
        )
    return normalize(values)


def _summarize_servers(
    releases: Sequence[Release],
    sides: Sequence[Contrasts],
    place: int,
    fixed: Array | None,
) -> tuple[ServerSummary, ...]:
    """Return the summary of each server for the model."""
    triples = zip(releases, sides, agreements(sides, place), strict=True)
    return tuple(
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
