"""Decisions from contrasts: scores for classes of equal frequency, or as they are.

A contrast is p_c (mu_c - mu), mu_c the mean of class c and mu that of all records,
averaged over servers. `balanced` compares mu_c - mu. `prior` adds the logarithms of the
target's rates, in units of such a difference: those are log-odds but for a factor if
all classes spread alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.curves.columns import select_columns
from curvote.systems.transfer.method.task import Array, Task, form
from curvote.systems.transfer.method.weights import QueryReading, query_rule
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
        task = Task.from_json(document["task"])
        reading_args = document["reading"]
        return cls(
            task=task,
            target=document["target"],
            weights=document["weights"],
            decision=Decision.from_json(document["decision"]),
            servers=tuple(ServerSummary(**summary) for summary in document["servers"]),
            rows=np.array(document["rows"], dtype=np.float64),
            reading=reading_args
            and query_rule(form(task.release), document["weights"])(**reading_args),
            inside=document["inside"],
        )
