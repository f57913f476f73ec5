"""What the target gets: a classifier of raw records, all of whose parts are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.named_columns import chosen
from curvote.strict_json import canonical, parse
from curvote.transfer.decision import Decision
from curvote.transfer.forms import form
from curvote.transfer.forms.base import Array
from curvote.transfer.rules import reading
from curvote.transfer.task import Task
from curvote.transfer.weighing import Reading

LARGEST = 1 << 30


@dataclass(frozen=True)
class Standing:
    """What the model says of one server, all of it public or from noised values.

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
    servers : tuple of Standing
        What is said of each server.
    rows : array
        Multiplied with the features of a query: the scores themselves, or, where there
        is a ``reading``, every server's contrasts.
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
    servers: tuple[Standing, ...]
    rows: Array
    reading: Reading | None = None
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
        cube = self.task.cube(_matrix(X, [each.name for each in self.task.features]))
        kind = form(self.task.release)
        if self.reading is None:
            scores = kind.product(self.task, cube, self.rows)
        else:
            values = kind.products(self.task, cube, self.rows)
            scores = self.decision.by_query(values, self.reading)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def codes(self, X: Any) -> NDArray[np.int64]:
        """Return the place of each record's class; a score of 0 is the first one."""
        scores = self.decision_function(X)
        one = scores.ndim == 1
        places = scores > 0 if one else scores.argmax(axis=1)
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
            "servers": [asdict(each) for each in self.servers],
            "rows": self.rows.tolist(),
            "reading": None if self.reading is None else self.reading.to_json(),
            "inside": self.inside,
        }

    def to_bytes(self) -> bytes:
        """Return the model as a file."""
        return canonical(self.to_json())

    @classmethod
    def from_bytes(cls, data: bytes) -> Model:
        """Return the model that `to_bytes` wrote."""
        return cls.from_json(parse(data, LARGEST))

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Model:
        """Return the model that `to_json` wrote."""
        task = Task.from_json(told["task"])
        known = told["reading"]
        return cls(
            task=task,
            target=told["target"],
            weights=told["weights"],
            decision=Decision.from_json(told["decision"]),
            servers=tuple(Standing(**each) for each in told["servers"]),
            rows=np.array(told["rows"], dtype=np.float64),
            reading=known and reading(form(task.release), told["weights"])(**known),
            inside=told["inside"],
        )


def _matrix(X: Any, columns: list[str]) -> ArrayLike:
    """Return records as numbers; DataFrame columns are matched by name, not place."""
    given: ArrayLike = X
    if hasattr(X, "columns"):
        given = chosen(X, columns).to_numpy()
    return validate.finite(X=given)
