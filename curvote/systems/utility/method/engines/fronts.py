"""Fronts: preprocessing steps before an estimator, affine in the sensitive columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curvote.base.validate import FloatArray
from curvote.systems.utility.method.engines.base import Question, model_input


@dataclass(frozen=True)
class Front:
    """Preprocessing steps before an estimator, which takes D' features.

    ``slopes`` (s, D') are what a unit of each sensitive column adds to the features,
    everywhere; other columns may be encoded in any way.
    """

    model: Any
    steps: Sequence[Any]
    slopes: FloatArray

    def features(self, records: FloatArray) -> FloatArray:
        """Return the estimator's features of records (n, D), (n, D').

        Those of other sensitive values v are these and (v - their own) @ ``slopes``.
        """
        values = model_input(self.model, records) if self.steps else records
        for step in self.steps:
            values = step.transform(values)
        dense = values.toarray() if hasattr(values, "toarray") else values
        return np.asarray(dense, dtype=np.float64)


@dataclass(frozen=True)
class _Step:
    """Affine ``matrix`` (D, D') of a step; ``reasons`` why columns are not affine."""

    matrix: FloatArray
    reasons: Mapping[int, str]

    @property
    def is_opaque(self) -> bool:
        """Whether no output of the step is known."""
        return bool(self.reasons) and not self.matrix.shape[1]

    def compose(self, after: _Step) -> _Step:
        """Return both steps in turn."""
        inherited = {
            int(column): why
            for place, why in after.reasons.items()
            for column in np.flatnonzero(self.matrix[:, place])
        }
        return _Step(self.matrix @ after.matrix, {**inherited, **self.reasons})


def split_front(question: Question) -> tuple[Any, Front | str]:
    """Return a model's estimator and the front before it, or why there is none.

    A bare estimator has a front that changes nothing; a search stands for its best.
    """
    parts = _flatten_steps(question.model)
    step = _chain_steps(parts[:-1], question.records.shape[1])
    why = next((step.reasons[i] for i in question.sensitive if i in step.reasons), None)
    steps = [part for part in parts[:-1] if not _is_idle(part)]
    front = Front(question.model, steps, step.matrix[list(question.sensitive)])
    return parts[-1], why or front


def _flatten_steps(model: Any) -> list[Any]:
    """Return the steps of a model and its estimator, nested ones flattened."""
    if hasattr(model, "best_estimator_"):
        return _flatten_steps(model.best_estimator_)
    if not hasattr(model, "steps"):
        return [model]
    steps = [part for _, part in model.steps]
    return [*steps[:-1], *_flatten_steps(steps[-1])]


def _is_idle(part: Any) -> bool:
    """Return whether a step does nothing."""
    return part is None or part == "passthrough"


def _chain_steps(parts: Sequence[Any], width: int) -> _Step:
    """Return the composition of some steps."""
    result = _affine_step(np.eye(width))
    for part in parts:
        step = _read_step(part, result.matrix.shape[1])
        if step.is_opaque:
            reasons = dict.fromkeys(range(width), step.reasons[0])
            return _Step(np.empty((width, 0)), reasons)
        result = result.compose(step)
    return result


def _affine_step(matrix: FloatArray) -> _Step:
    """Return an affine step."""
    return _Step(matrix, {})


def _read_step(part: Any, width: int) -> _Step:
    """Return a transformer as a step."""
    if _is_idle(part):
        return _affine_step(np.eye(width))
    if hasattr(part, "steps"):
        return _chain_steps([part_of_chain for _, part_of_chain in part.steps], width)
    if hasattr(part, "transformers_"):
        return _read_columns(part, width)
    matrix = _affine_matrix(part, width)
    return _opaque_step(part, width) if matrix is None else _affine_step(matrix)


def _opaque_step(part: Any, width: int) -> _Step:
    """Return a step of which nothing but the name is known."""
    why = f"{type(part).__name__} in front of the model bends a sensitive feature."
    return _Step(np.empty((width, 0)), dict.fromkeys(range(width), why))


def _affine_matrix(part: Any, width: int) -> FloatArray | None:
    """Return the matrix (width, D') of an affine transformer, None if it is not one."""
    if hasattr(part, "slopes_"):
        return np.asarray(part.slopes_, dtype=np.float64)
    if hasattr(part, "get_support"):
        return np.eye(width)[:, part.get_support()]
    rule = _AFFINE.get(type(part).__name__)
    return None if rule is None else rule(part, width)


def _scaler_matrix(part: Any, width: int) -> FloatArray:
    """Return the matrix of a scaler."""
    scale = getattr(part, "scale_", None)
    return np.diag(np.ones(width) if scale is None else 1 / scale)


def _min_max_matrix(part: Any, width: int) -> FloatArray | None:
    """Return the matrix of a min-max scaler, None if it clips."""
    return None if part.clip else np.diag(part.scale_)


def _components_matrix(part: Any, width: int) -> FloatArray:
    """Return the matrix of a projection on components."""
    matrix = np.asarray(part.components_.T, dtype=np.float64)
    whiten = getattr(part, "whiten", False)
    return matrix / np.sqrt(part.explained_variance_) if whiten else matrix


def _function_matrix(part: Any, width: int) -> FloatArray | None:
    """Return the identity for a transformer without a function."""
    return np.eye(width) if part.func is None else None


def _imputer_matrix(part: Any, width: int) -> FloatArray | None:
    """Return the matrix of an imputer on complete records."""
    if part.add_indicator or not np.isnan(part.missing_values):
        return None
    usable = ~np.isnan(np.asarray(part.statistics_, dtype=np.float64))
    return np.eye(width)[:, usable | part.keep_empty_features]


_MatrixRule = Callable[[Any, int], FloatArray | None]
_AFFINE: dict[str, _MatrixRule] = {
    "StandardScaler": _scaler_matrix,
    "MaxAbsScaler": _scaler_matrix,
    "RobustScaler": _scaler_matrix,
    "MinMaxScaler": _min_max_matrix,
    "PCA": _components_matrix,
    "IncrementalPCA": _components_matrix,
    "TruncatedSVD": _components_matrix,
    "FunctionTransformer": _function_matrix,
    "SimpleImputer": _imputer_matrix,
}


def _read_columns(part: Any, width: int) -> _Step:
    """Return the step of a ColumnTransformer: each part on columns of its own."""
    outputs = part.output_indices_
    out = max(where.stop for where in outputs.values())
    matrix, reasons = np.zeros((width, out)), {}
    for name, transformer, chosen in part.transformers_:
        columns = _column_numbers(part, chosen, width)
        if transformer == "drop" or not len(columns):
            continue
        step = _read_step(transformer, len(columns))
        if not step.is_opaque:
            matrix[columns, outputs[name]] = step.matrix
        reasons.update({int(columns[at]): why for at, why in step.reasons.items()})
    return _Step(matrix, reasons)


def _column_numbers(part: Any, chosen: Any, width: int) -> Any:
    """Return the numbers of columns that are chosen by name, number, slice or mask."""
    names = getattr(part, "feature_names_in_", np.arange(width))
    places = {name: place for place, name in enumerate(names)}
    if isinstance(chosen, slice) and isinstance(chosen.stop, str):
        start = places.get(chosen.start, 0)
        return np.arange(start, places[chosen.stop] + 1)
    if isinstance(chosen, slice):
        return np.arange(width)[chosen]
    selection = np.atleast_1d(np.asarray(chosen))
    if selection.dtype.kind in "OU":
        return np.array([places.get(name, name) for name in selection], dtype=int)
    return np.arange(width)[selection]
