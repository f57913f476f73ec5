"""Engines that read a model: channel, question, front, surface, answers, choice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product as every
from typing import Any, ClassVar, Literal, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.registry import Registry
from curvote.base.validate import FloatArray
from curvote.mechanisms import base
from curvote.mechanisms.factory import make, mechanism_class

# The levels of a numeric feature that a mechanism for labels is given.
LEVELS = 101


@dataclass(frozen=True)
class Part:
    """Mechanism and the sensitive features that it noises, by index 0..s-1."""

    mechanism: base.Mechanism
    places: tuple[int, ...]


@dataclass(frozen=True)
class Channel:
    """Mechanisms in parallel; features of none are replaced by a constant.

    ``bounds`` (s, 2) are public and map onto a mechanism's domain and back; a value
    beyond them is moved to the edge. ``fill_value`` (s,) stands in the place of what is
    withheld. With ``clip`` an output beyond the bounds is moved to the edge, too.
    """

    parts: Sequence[Part]
    bounds: FloatArray
    fill_value: FloatArray
    clip: bool = True

    def law(self, values: FloatArray) -> base.Mixture | None:
        """Return the law of the model's inputs for ``values`` (n, s), in its units.

        None where a mechanism has none that is a mixture of products, or the parts
        together have more than ``law.MAX_TERMS``.
        """
        part_laws = [
            part.mechanism.law(self._to_domain(part, values)) for part in self.parts
        ]
        laws = [law for law in part_laws if law is not None]
        terms = int(np.prod([float(len(law.terms)) for law in laws]))
        if len(laws) < len(part_laws) or terms > base.MAX_TERMS:
            return None
        laws = list(map(self._map_law, self.parts, laws))
        # The joint law of all features has a term for each choice of the parts' terms.
        chosen = list(every(*(range(len(law.terms)) for law in laws)))
        weights = np.ones((len(values), len(chosen)))
        for law, picked in zip(laws, zip(*chosen, strict=True), strict=True):
            weights *= law.weights[:, list(picked)]
        ones = np.ones((len(values), 1))
        constants = [base.atomic_law([value], ones) for value in self.fill_value]
        joint = []
        for choice in chosen:
            row = list(constants)
            for part, law, which in zip(self.parts, laws, choice, strict=True):
                for place, term in zip(part.places, law.terms[which], strict=True):
                    row[place] = term
            joint.append(tuple(row))
        return base.Mixture(weights, joint)

    def draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        """Return one draw of the model's inputs for each row of ``values`` (n, s)."""
        noised = np.tile(self.fill_value, (len(values), 1))
        for part in self.parts:
            outputs = part.mechanism.simulate(self._to_domain(part, values), entropy)
            numbers = np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)
            # As ``Law.scaled`` computes them.
            scale, shift = self._output_line(part)
            units = shift + scale * numbers
            ends = self.bounds[list(part.places)].T
            noised[:, list(part.places)] = np.clip(units, *ends) if self.clip else units
        return noised

    def _to_domain(self, part: Part, values: FloatArray) -> NDArray[Any]:
        """Return the part's features on the mechanism's domain, clipped to it."""
        low, high = self.bounds[list(part.places)].T
        share = np.clip((values[:, list(part.places)] - low) / (high - low), 0, 1)
        start, stop = part.mechanism.domain
        return part.mechanism.to_inputs(start + (stop - start) * share)

    def _output_line(self, part: Part) -> tuple[FloatArray, FloatArray]:
        """Return the scale and the shift from outputs to the model's units."""
        low, high = self.bounds[list(part.places)].T
        start, stop = part.mechanism.scale_of_outputs
        scale = (high - low) / (stop - start)
        return scale, low - scale * start

    def _map_law(self, part: Part, law: base.Mixture) -> base.Mixture:
        """Return the law in the model's units; one that terms share is mapped once."""
        scale, shift = self._output_line(part)
        mapped: dict[tuple[int, int], base.Law] = {}
        for term in law.terms:
            for i, feature_law in enumerate(term):
                if (i, id(feature_law)) not in mapped:
                    new = feature_law.scaled(float(scale[i]), float(shift[i]))
                    ends = map(float, self.bounds[part.places[i]])
                    new = new.clipped(*ends) if self.clip else new
                    mapped[i, id(feature_law)] = new
        terms = [tuple(mapped[i, id(f)] for i, f in enumerate(t)) for t in law.terms]
        return base.Mixture(law.weights, terms)


def make_channel(
    mechanism: str,
    *,
    epsilon: float,
    bounds: ArrayLike,
    fill_value: ArrayLike,
    split: ArrayLike | None = None,
    clip: bool = True,
    **params: Any,
) -> Channel:
    """Return the channel of a mechanism with a total of ``epsilon`` for the record.

    ``split`` (s,) are the features' shares of it, 0 for withheld, equal if not given;
    a mechanism for whole records takes all features that have a share, at the whole
    epsilon. A mechanism for labels is given each feature on ``n_classes`` levels, 101
    if not given. ``params`` are the mechanism's own; wrong ones are a UserError.
    """
    edges, constants = np.asarray(bounds, float), np.asarray(fill_value, float)
    equal = np.full(len(edges), 1 / len(edges))
    shares = equal if split is None else np.asarray(split, float)
    kind = mechanism_class(mechanism)
    if issubclass(kind, base.VectorMechanism):
        places = tuple(np.flatnonzero(shares).tolist())
        vector = make(mechanism, epsilon=epsilon, d=len(places), **params)
        return Channel([Part(vector, places)], edges, constants, clip)
    if issubclass(kind, base.LabelMechanism):
        params = {"n_classes": LEVELS} | params
    parts = [
        Part(make(mechanism, epsilon=epsilon * float(share), **params), (place,))
        for place, share in enumerate(shares)
        if share > 0
    ]
    return Channel(parts, edges, constants, clip)


Evidence = Literal["exact", "bracket", "draws"]
EvidenceWanted = Literal["auto", "exact", "bracket", "draws"]


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


def predict_indices(
    model: Any, records: FloatArray, n_classes: int | None = None
) -> NDArray[np.int64]:
    """Return the class indices of the answers to records (n, D), (n,).

    The classes are the model's own; without any 0 to ``n_classes`` - 1, else those
    among the answers.
    """
    answers = predict_batched(model, records)
    named = answers if n_classes is None else np.arange(n_classes)
    return class_indices(classes_of(model, named), answers)


_ENGINES = {
    "linear": "curvote.systems.utility.method.engines.discriminants:Linear",
    "trees": "curvote.systems.utility.method.engines.trees.engine:Trees",
    "branched_trees": (
        "curvote.systems.utility.method.engines.branched_trees:BranchedTrees"
    ),
    "closed_form": "curvote.systems.utility.method.engines.discriminants:ClosedForm",
    "network": "curvote.systems.utility.method.engines.network:Network",
    "black_box": "curvote.systems.utility.method.engines.black_box:BlackBox",
}
ENGINES = Registry("engine", _ENGINES)


# The engine that takes every model, and can only draw.
LAST_ENGINE = "black_box"


def make_engine(name: str) -> Engine:
    """Return the engine ``name`` of the registry."""
    return cast(Engine, ENGINES.load(name)())


ReadPart = TypeVar("ReadPart")


def require(read: ReadPart | str) -> ReadPart:
    """Return what was read of a model; why it could not be is a UserError."""
    if isinstance(read, str):
        raise UserError(read)
    return read


def choose_engine(
    question: Question, evidence: EvidenceWanted = "auto"
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
    parts = flatten_steps(question.model)
    step = _chain_steps(parts[:-1], question.records.shape[1])
    why = next((step.reasons[i] for i in question.sensitive if i in step.reasons), None)
    steps = [part for part in parts[:-1] if part not in _IDLE]
    front = Front(question.model, steps, step.matrix[list(question.sensitive)])
    return parts[-1], why or front


def flatten_steps(model: Any) -> list[Any]:
    """Return the steps of a model and its estimator, nested ones flattened."""
    if hasattr(model, "best_estimator_"):
        return flatten_steps(model.best_estimator_)
    if not hasattr(model, "steps"):
        return [model]
    steps = [part for _, part in model.steps]
    return [*steps[:-1], *flatten_steps(steps[-1])]


# Steps that do nothing.
_IDLE = (None, "passthrough")


def _chain_steps(parts: Sequence[Any], width: int) -> _Step:
    result = _Step(np.eye(width))
    for part in parts:
        step = _read_step(part, result.matrix.shape[1])
        if step.is_opaque:
            reasons = dict.fromkeys(range(width), step.reasons[0])
            return _Step(np.empty((width, 0)), reasons)
        result = result.compose(step)
    return result


def _read_step(part: Any, width: int) -> _Step:
    if part in _IDLE:
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
    scale = getattr(part, "scale_", None)
    return np.diag(np.ones(width) if scale is None else 1 / scale)


def _components_matrix(part: Any, width: int) -> FloatArray:
    matrix = np.asarray(part.components_.T, dtype=np.float64)
    whiten = getattr(part, "whiten", False)
    return matrix / np.sqrt(part.explained_variance_) if whiten else matrix


def _imputer_matrix(part: Any, width: int) -> FloatArray | None:
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
    outputs, every = part.output_indices_, np.arange(width)
    out = max(where.stop for where in outputs.values())
    matrix, reasons = np.zeros((width, out)), {}
    named = getattr(part, "feature_names_in_", every)
    places = {name: place for place, name in enumerate(named)}
    for name, transformer, chosen in part.transformers_:
        if isinstance(chosen, slice) and isinstance(chosen.stop, str):
            start = places.get(chosen.start, 0)
            columns = every[start : places[chosen.stop] + 1]
        elif isinstance(chosen, slice):
            columns = every[chosen]
        else:  # names, numbers or a mask
            picked = np.atleast_1d(np.asarray(chosen))
            if picked.dtype.kind in "OU":
                picked = np.array([places.get(x, x) for x in picked], dtype=int)
            columns = every[picked]
        if transformer == "drop" or not len(columns):
            continue
        step = _read_step(transformer, len(columns))
        if not step.is_opaque:
            matrix[columns, outputs[name]] = step.matrix
        reasons.update({int(columns[at]): why for at, why in step.reasons.items()})
    return _Step(matrix, reasons)
