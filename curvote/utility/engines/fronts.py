"""What stands in front of an estimator, undone: affine in the sensitive columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curvote.utility.engines.asking import table
from curvote.utility.engines.base import Question
from curvote.validate import FloatArray


@dataclass(frozen=True)
class Front:
    """The steps before an estimator, which takes D' features.

    ``slopes`` (s, D') are what a unit of each sensitive column adds to the features,
    everywhere; other columns may be encoded in any way.
    """

    model: Any
    steps: Sequence[Any]
    slopes: FloatArray

    def features(self, records: FloatArray) -> FloatArray:
        """Return the estimator's features of records (n, D), (n, D'), as it sees them.

        Those of other sensitive values v are these and (v - their own) @ ``slopes``.
        """
        seen = table(self.model, records) if self.steps else records
        for step in self.steps:
            seen = step.transform(seen)
        dense = seen.toarray() if hasattr(seen, "toarray") else seen
        return np.asarray(dense, dtype=np.float64)


@dataclass(frozen=True)
class _Step:
    """How columns enter features: by ``matrix`` (D, D'), or not so: why, by column."""

    matrix: FloatArray
    bent: Mapping[int, str]

    @property
    def unknown(self) -> bool:
        """Whether no feature that it makes is known."""
        return bool(self.bent) and not self.matrix.shape[1]

    def then(self, after: _Step) -> _Step:
        """Return both steps in turn."""
        into = {
            int(column): why
            for place, why in after.bent.items()
            for column in np.flatnonzero(self.matrix[:, place])
        }
        return _Step(self.matrix @ after.matrix, {**into, **self.bent})


def undone(question: Question) -> tuple[Any, Front | str]:
    """Return the estimator of a model, and the front before it, or why there is none.

    A bare estimator has a front that changes nothing; a search stands for its best.
    """
    parts = _parts(question.model)
    step = _chain(parts[:-1], question.records.shape[1])
    why = next((step.bent[i] for i in question.sensitive if i in step.bent), None)
    kept = [part for part in parts[:-1] if not _idle(part)]
    front = Front(question.model, kept, step.matrix[list(question.sensitive)])
    return parts[-1], why or front


def _parts(model: Any) -> list[Any]:
    """Return the steps of a model and its estimator, whatever is within what."""
    if hasattr(model, "best_estimator_"):
        return _parts(model.best_estimator_)
    if not hasattr(model, "steps"):
        return [model]
    steps = [part for _, part in model.steps]
    return [*steps[:-1], *_parts(steps[-1])]


def _idle(part: Any) -> bool:
    return part is None or part == "passthrough"


def _chain(parts: Sequence[Any], width: int) -> _Step:
    found = _straight(np.eye(width))
    for part in parts:
        step = _step(part, found.matrix.shape[1])
        if step.unknown:
            whole = dict.fromkeys(range(width), step.bent[0])
            return _Step(np.empty((width, 0)), whole)
        found = found.then(step)
    return found


def _straight(matrix: FloatArray) -> _Step:
    return _Step(matrix, {})


def _step(part: Any, width: int) -> _Step:
    if _idle(part):
        return _straight(np.eye(width))
    if hasattr(part, "steps"):
        return _chain([each for _, each in part.steps], width)
    if hasattr(part, "transformers_"):
        return _columns(part, width)
    matrix = _matrix(part, width)
    return _bent(part, width) if matrix is None else _straight(matrix)


def _bent(part: Any, width: int) -> _Step:
    """Return a step of which nothing is known but its name: it has no features."""
    why = f"{type(part).__name__} in front of the model bends a sensitive feature."
    return _Step(np.empty((width, 0)), dict.fromkeys(range(width), why))


def _matrix(part: Any, width: int) -> FloatArray | None:
    """Return the matrix (width, D') of an affine transformer, None if it is not one."""
    if hasattr(part, "slopes_"):
        return np.asarray(part.slopes_, dtype=np.float64)
    if hasattr(part, "get_support"):
        return np.eye(width)[:, part.get_support()]
    rule = _AFFINE.get(type(part).__name__)
    return None if rule is None else rule(part, width)


def _divided(part: Any, width: int) -> FloatArray:
    scale = getattr(part, "scale_", None)
    return np.diag(np.ones(width) if scale is None else 1 / scale)


def _min_max(part: Any, width: int) -> FloatArray | None:
    return None if part.clip else np.diag(part.scale_)


def _components(part: Any, width: int) -> FloatArray:
    matrix = np.asarray(part.components_.T, dtype=np.float64)
    whiten = getattr(part, "whiten", False)
    return matrix / np.sqrt(part.explained_variance_) if whiten else matrix


def _function(part: Any, width: int) -> FloatArray | None:
    return np.eye(width) if part.func is None else None


def _imputer(part: Any, width: int) -> FloatArray | None:
    """Return how it treats complete records: columns that it never saw are dropped."""
    if part.add_indicator or not np.isnan(part.missing_values):
        return None
    kept = ~np.isnan(np.asarray(part.statistics_, dtype=np.float64))
    return np.eye(width)[:, kept | part.keep_empty_features]


_Rule = Callable[[Any, int], FloatArray | None]
_AFFINE: dict[str, _Rule] = {
    "StandardScaler": _divided,
    "MaxAbsScaler": _divided,
    "RobustScaler": _divided,
    "MinMaxScaler": _min_max,
    "PCA": _components,
    "IncrementalPCA": _components,
    "TruncatedSVD": _components,
    "FunctionTransformer": _function,
    "SimpleImputer": _imputer,
}


def _columns(part: Any, width: int) -> _Step:
    """Return the step of a ColumnTransformer: each part on columns of its own."""
    outputs = part.output_indices_
    out = max(where.stop for where in outputs.values())
    matrix, bent = np.zeros((width, out)), {}
    for name, each, chosen in part.transformers_:
        columns = _numbers(part, chosen, width)
        if each == "drop" or not len(columns):
            continue
        step = _step(each, len(columns))
        if not step.unknown:
            matrix[columns, outputs[name]] = step.matrix
        bent.update({int(columns[at]): why for at, why in step.bent.items()})
    return _Step(matrix, bent)


def _numbers(part: Any, chosen: Any, width: int) -> Any:
    """Return the numbers of columns that are chosen by name, number, slice or mask."""
    names = getattr(part, "feature_names_in_", np.arange(width))
    places = {name: place for place, name in enumerate(names)}
    if isinstance(chosen, slice) and isinstance(chosen.stop, str):
        start = places.get(chosen.start, 0)
        return np.arange(start, places[chosen.stop] + 1)
    if isinstance(chosen, slice):
        return np.arange(width)[chosen]
    given = np.atleast_1d(np.asarray(chosen))
    if given.dtype.kind in "OU":
        return np.array([places.get(name, name) for name in given], dtype=int)
    return np.arange(width)[given]
