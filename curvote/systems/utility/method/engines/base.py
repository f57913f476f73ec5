"""Engines that read a model: question, front, surface, answers, and their choice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.systems.utility.method.channel import Channel

Evidence = Literal["exact", "bracket", "draws"]


@dataclass(frozen=True)
class Question:
    """Model and records whose ``sensitive`` columns will be noised.

    ``records`` (n, D) are in the model's units, ``bounds`` (s, 2) are public.
    """

    model: Any
    records: FloatArray
    sensitive: tuple[int, ...]
    bounds: FloatArray

    @property
    def values(self) -> FloatArray:
        """The sensitive values of the records, (n, s)."""
        return self.records[:, list(self.sensitive)]


@dataclass(frozen=True)
class Draws:
    """Number, confidence and randomness of draws, where evidence is drawn."""

    number: int = 2000
    confidence: float = 0.95
    entropy: Entropy | None = None


@dataclass(frozen=True)
class Answers:
    """Share of each class among a record's noised answers: (n, K), with brackets.

    ``lower <= share <= upper``: equal where the evidence is exact; certain in a
    bracket; at the confidence asked for where it is drawn. ``queries`` (n,) counts the
    model's answers that were asked for. Where ``share`` is a plain count of independent
    draws, ``draw_count`` is their number for each record, else 0.
    """

    share: FloatArray
    lower: FloatArray
    upper: FloatArray
    evidence: Evidence
    queries: NDArray[np.int64]
    draw_count: int = 0


@dataclass(frozen=True)
class Surface(ABC):
    """Knowledge of a model around n records that holds for any noise.

    ``clean`` (n,) are the places in ``classes_`` of the answers without noise.
    """

    clean: NDArray[np.int64]
    n_classes: int

    @abstractmethod
    def answers(self, channel: Channel, draws: Draws) -> Answers:
        """Return the share of each class when answers pass the channel."""

    @abstractmethod
    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Return whether each record's answer is certain in a closed box.

        Everywhere in the closed box ``low`` (n, s) to ``high`` (n, s), in the model's
        units. NotImplementedError where that cannot be known.
        """

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that ``Engine.restored`` needs."""


class Engine(ABC):
    """Way from a model to a surface; ``name`` is that of the registry."""

    name: ClassVar[str]

    @abstractmethod
    def refusal(self, question: Question) -> str | None:
        """Return why the engine cannot read the model, or None."""

    @abstractmethod
    def surface(self, question: Question) -> Surface:
        """Return the surface around the question's records."""

    @abstractmethod
    def restored(self, question: Question, arrays: dict[str, NDArray[Any]]) -> Surface:
        """Return the surface built again from its ``arrays``."""


# No question to a model has more rows, or more numbers.
MOST_ROWS = 1 << 16
MOST_NUMBERS = 1 << 25


def model_input(model: Any, records: FloatArray) -> Any:
    """Return records (n, D) as the model takes them, named where it has names."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return records
    import pandas as pd

    return pd.DataFrame(records, columns=list(names))


def batch_size(columns: int) -> int:
    """Return the number of rows of one batch."""
    return max(1, min(MOST_ROWS, MOST_NUMBERS // columns))


def predict_batched(model: Any, records: FloatArray) -> NDArray[Any]:
    """Return the model's answers to records (n, D), (n,), asked a batch at a time.

    UserError where it does not give one answer for each record.
    """
    size = batch_size(records.shape[1])
    batches = [records[at : at + size] for at in range(0, len(records), size)]
    answers = [np.asarray(model.predict(model_input(model, rows))) for rows in batches]
    for rows, batch_answers in zip(batches, answers, strict=True):
        if batch_answers.shape != (len(rows),):
            raise UserError(
                f"`predict` of {type(model).__name__} gave {batch_answers.shape} for"
                f" {len(rows)} rows; it must give one class for each row."
            )
    return np.concatenate(answers)


def classes_of(model: Any, answers: NDArray[Any]) -> NDArray[Any]:
    """Return the classes in order: the model's own, else those among its answers."""
    model_classes = getattr(model, "classes_", None)
    return np.unique(answers) if model_classes is None else np.asarray(model_classes)


def class_indices(classes: NDArray[Any], answers: NDArray[Any]) -> NDArray[np.int64]:
    """Return each answer's index among the classes, -1 for none of them."""
    order = np.argsort(classes, kind="stable")
    positions = np.searchsorted(classes, answers, sorter=order)
    indices = order[positions.clip(max=len(classes) - 1)]
    return np.where(classes[indices] == answers, indices, -1).astype(np.int64)


def predict_indices(model: Any, records: FloatArray) -> NDArray[np.int64]:
    """Return the class indices of the answers to records (n, D), (n,)."""
    answers = predict_batched(model, records)
    return class_indices(classes_of(model, answers), answers)


ENGINES = {
    "linear": "curvote.systems.utility.method.engines.discriminants:Linear",
    "trees": "curvote.systems.utility.method.engines.trees.engine:Trees",
    "branched_trees": (
        "curvote.systems.utility.method.engines.branched_trees:BranchedTrees"
    ),
    "closed_form": "curvote.systems.utility.method.engines.discriminants:ClosedForm",
    "network": "curvote.systems.utility.method.engines.network:Network",
    "black_box": "curvote.systems.utility.method.engines.black_box:BlackBox",
}


# The engine that takes every model, and can only draw.
LAST_ENGINE = "black_box"


def make_engine(name: str) -> Engine:
    """Return the engine ``name`` of the registry."""
    module, _, cls = ENGINES[name].partition(":")
    return cast(Engine, getattr(import_module(module), cls)())


def choose_engine(
    question: Question, evidence: Evidence | Literal["auto"] = "auto"
) -> tuple[Engine, str]:
    """Return the engine for a model, and why those before it refused.

    The reasons are a sentence each, what several say once, "" where the first takes it.
    ``evidence`` "draws" asks for the black box at once. "exact" and "bracket" are a
    UserError with the reasons where the model could only be drawn.
    """
    if evidence == "draws":
        return make_engine(LAST_ENGINE), "Draws were asked for."
    reasons: dict[str, None] = {}
    for name in ENGINES:
        candidate = make_engine(name)
        reason = candidate.refusal(question)
        if reason is None and (name != LAST_ENGINE or evidence == "auto"):
            return candidate, " ".join(reasons)
        if reason is not None:
            reasons[reason] = None
    raise UserError(
        f"No {evidence} answer is known for {type(question.model).__name__}:"
        f" {' '.join(reasons)} Let it be drawn (evidence 'draws' or 'auto')."
    )


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
    reasons: Mapping[int, str] = field(default_factory=dict)

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
    result = _Step(np.eye(width))
    for part in parts:
        step = _read_step(part, result.matrix.shape[1])
        if step.is_opaque:
            reasons = dict.fromkeys(range(width), step.reasons[0])
            return _Step(np.empty((width, 0)), reasons)
        result = result.compose(step)
    return result


def _read_step(part: Any, width: int) -> _Step:
    """Return a transformer as a step."""
    if _is_idle(part):
        return _Step(np.eye(width))
    if hasattr(part, "steps"):
        return _chain_steps([inner for _, inner in part.steps], width)
    if hasattr(part, "transformers_"):
        return _read_columns(part, width)
    matrix: FloatArray | None
    if hasattr(part, "slopes_"):
        matrix = np.asarray(part.slopes_, dtype=np.float64)
    elif hasattr(part, "get_support"):
        matrix = np.eye(width)[:, part.get_support()]
    else:
        rule = _AFFINE.get(type(part).__name__)
        matrix = None if rule is None else rule(part, width)
    if matrix is not None:
        return _Step(matrix)
    # Nothing but the name is known.
    why = f"{type(part).__name__} in front of the model bends a sensitive feature."
    return _Step(np.empty((width, 0)), dict.fromkeys(range(width), why))


def _scaler_matrix(part: Any, width: int) -> FloatArray:
    """Return the matrix of a scaler."""
    scale = getattr(part, "scale_", None)
    return np.diag(np.ones(width) if scale is None else 1 / scale)


def _components_matrix(part: Any, width: int) -> FloatArray:
    """Return the matrix of a projection on components."""
    matrix = np.asarray(part.components_.T, dtype=np.float64)
    whiten = getattr(part, "whiten", False)
    return matrix / np.sqrt(part.explained_variance_) if whiten else matrix


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
    "MinMaxScaler": lambda part, _: None if part.clip else np.diag(part.scale_),
    "PCA": _components_matrix,
    "IncrementalPCA": _components_matrix,
    "TruncatedSVD": _components_matrix,
    "FunctionTransformer": lambda part, d: np.eye(d) if part.func is None else None,
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
