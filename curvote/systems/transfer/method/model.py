"""Decisions from contrasts: scores for classes of equal frequency, or as they are.

A contrast is p_c (mu_c - mu), mu_c the mean of class c and mu that of all records,
averaged over servers. `balanced` compares mu_c - mu. `prior` adds the logarithms of the
target's rates, in units of such a difference: those are log-odds but for a factor if
all classes spread alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.curves.columns import select_columns
from curvote.systems.transfer.method import weights as rules
from curvote.systems.transfer.method.release import Release
from curvote.systems.transfer.method.task import Array, Task, form
from curvote.systems.transfer.method.weights import QueryReading
from curvote.wire.strict_json import canonical_json, parse_json

DECISIONS: Final = ("balanced", "prior")


@dataclass(frozen=True)
class Decision:
    """Map from contrasts to scores: ``rates`` (J, K) are the servers' class rates.

    ``offsets`` (K,) times the public constant are added to scores: None if balanced.
    """

    rates: tuple[tuple[float, ...], ...]
    offsets: tuple[float, ...] | None = None

    def row(self, rows: Array, shares: Array) -> Array:
        """Return score rows (C, m), C = 1 for two classes, else K.

        ``rows`` are all servers' contrasts, and the constant's row if there are
        ``offsets``; ``shares`` (J,) the servers' weights.
        """
        contrasts, constant = self._split_contrasts(rows.T)
        pooled = contrasts @ shares
        return self._scores(pooled, shares @ np.array(self.rates), constant).T

    def query_scores(self, values: Array, reading: QueryReading) -> Array:
        """Return scores (q, C) from the rows' products (B, q, r) by a reading."""
        parts = [self._split_contrasts(part) for part in values]
        contrasts, weights = reading.read(np.stack([part for part, _ in parts]))
        server_rates = np.array(self.rates)
        if weights.shape[1] == 1:
            rates = weights[:, 0] @ server_rates
        else:
            rates = np.einsum("qkj,jk->qk", weights, server_rates)
        return self._scores(contrasts, rates, parts[0][1])

    def _split_contrasts(self, values: Array) -> tuple[Array, Array | None]:
        """Return contrasts (n, R, J) and the constant (n,) from columns (n, r)."""
        constant = None
        if self.offsets is not None:
            values, constant = values[:, :-1], values[:, -1]
        apart = values.reshape(len(values), len(self.rates), -1)
        return apart.swapaxes(1, 2), constant

    def _scores(self, contrasts: Array, rates: Array, constant: Array | None) -> Array:
        """Return scores (n, C) from contrasts (n, R), whose ``rates`` are (..., K)."""
        if contrasts.shape[1] == 1:
            contrasts = np.concatenate([-contrasts, contrasts], axis=1)
        scores = contrasts / rates
        if self.offsets is not None and constant is not None:
            scores = scores + np.outer(constant, self.offsets)
        if scores.shape[1] == 2:
            scores = scores[:, 1:] - scores[:, :1]
        return np.asarray(scores)

    def to_json(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON values."""
        offsets = None if self.offsets is None else list(self.offsets)
        return {"rates": [list(row) for row in self.rates], "offsets": offsets}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Decision:
        """Build the decision that `to_json` wrote."""
        offsets = None if document["offsets"] is None else tuple(document["offsets"])
        return cls(tuple(tuple(row) for row in document["rates"]), offsets)


LARGEST = 1 << 30


@dataclass(frozen=True)
class ServerSummary:
    """Summary of one server in a model, public or from noised values.

    ``weight`` is None where weights are found at each query anew, ``epsilon`` None
    where there is no noise; ``agreement`` with the target has the standard error
    ``agreement_se``, None where the target's contrast tells nothing; ``rate`` is the
    share of the last class, ``noise`` the variance of one number of the contrast.
    """

    server: str
    n: int
    epsilon: float | None
    sigma: float
    weight: float | None
    agreement: float
    agreement_se: float | None
    rate: float
    noise: float


@dataclass(frozen=True, eq=False)
class Model:
    """A classifier for the target, combined from the releases of several servers.

    Pickles as it is; `to_bytes` and `from_bytes` are its file.

    Parameters
    ----------
    task : curvote.transfer.Task
        What the servers were asked.
    target : str
        The server that it is for.
    weights : str
        The rule of the weights.
    decision : Decision
        From scores to classes.
    servers : tuple of ServerSummary
        What is said of each server.
    rows : array
        Multiplied with the features of a query: the scores themselves, or, where there
        is a ``query_rule``, every server's contrasts.
    reading : Reading or None, default=None
        Weighs the contrasts at each query.
    inside : bool, default=False
        Whether a server's own records stand in it without noise: it is for use there
        only.

    Examples
    --------
    >>> import numpy as np
    >>> from curvote.transfer import Task, combine, release
    >>> X, y = np.tile([[30], [70]], (500, 1)), np.tile(["no", "yes"], 500)
    >>> task = Task([("age", 20, 90)], classes=("no", "yes"), servers={"a": 4})
    >>> model = combine(task, [release(task, "a", X, y)], target="a")
    >>> print(*model.predict([[32], [71]]), [each.server for each in model.servers])
    no yes ['a']
    >>> Model.from_bytes(model.to_bytes()).target
    'a'
    """

    task: Task
    target: str
    weights: str
    decision: Decision
    servers: tuple[ServerSummary, ...]
    rows: Array
    reading: QueryReading | None = None
    inside: bool = False

    @property
    def classes_(self) -> NDArray[Any]:
        """The task's classes, in its order."""
        return np.array(self.task.classes)

    def decision_function(self, X: Any) -> Array:
        """Return scores: (n,) of the second of two classes, else (n, K).

        X is (n, d) in the task's order, or a DataFrame with its columns in any; a
        column missing, another width, NaN and infinity are a UserError.
        """
        values: ArrayLike = X
        if hasattr(X, "columns"):  # matched by name, not place
            names = [feature.name for feature in self.task.features]
            values = select_columns(X, names).to_numpy()
        cube, kind = self.task.cube(validate.finite(X=values)), form(self.task.release)
        if self.reading is None:
            scores = kind.product(self.task, cube, self.rows)
        else:
            products = kind.multiply_all(self.task, cube, self.rows)
            scores = self.decision.query_scores(products, self.reading)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def codes(self, X: Any) -> NDArray[np.int64]:
        """Return the class index of each record; a score of 0 is the first one."""
        scores = self.decision_function(X)
        binary = scores.ndim == 1
        places = scores > 0 if binary else scores.argmax(axis=1)
        return np.asarray(places, dtype=np.int64)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each record."""
        return np.asarray(self.classes_[self.codes(X)])

    def to_json(self) -> dict[str, Any]:
        """Return the model as plain JSON values."""
        return {
            "task": self.task.to_json(),
            "target": self.target,
            "weights": self.weights,
            "decision": self.decision.to_json(),
            "servers": [asdict(summary) for summary in self.servers],
            "rows": self.rows.tolist(),
            "reading": None if self.reading is None else self.reading.to_json(),
            "inside": self.inside,
        }

    def to_bytes(self) -> bytes:
        """Return the model as a file."""
        return canonical_json(self.to_json())

    @classmethod
    def from_bytes(cls, data: bytes) -> Model:
        """Return the model that `to_bytes` wrote."""
        return cls.from_json(parse_json(data, LARGEST))

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Model:
        """Return the model that `to_json` wrote."""
        task, reading = Task.from_json(document["task"]), document["reading"]
        if reading:
            kind = form(task.release)
            reading = rules.query_rule(kind, document["weights"])(**reading)
        return cls(
            task=task,
            target=document["target"],
            weights=document["weights"],
            decision=Decision.from_json(document["decision"]),
            servers=tuple(ServerSummary(**summary) for summary in document["servers"]),
            rows=np.array(document["rows"], dtype=np.float64),
            reading=reading,
            inside=document["inside"],
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
    rows = kind.refined(task, sides, shares, place)(rows)
    decision = Decision(tuple(tuple(side.rates.tolist()) for side in sides))
    if prior:
        # The logarithms of the target's class rates, in units of the scores.
        rows = np.concatenate([rows, kind.constant(task)[np.newaxis]])
        clear = float(shares @ [side.clear for side in sides])
        main = np.tensordot(shares, [side.main for side in sides], 1) / clear
        noise = float(shares**2 @ [side.noise for side in sides]) / clear**2
        odds = max(kind.odds(task, main, noise), LEAST_ODDS)
        offsets = tuple((np.log(sides[place].likely_rates) / odds).tolist())
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
