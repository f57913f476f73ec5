"""Engines that read a model: question, surface, answers, and the choice of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
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
    positions = np.searchsorted(classes, answers, sorter=order).clip(
        max=len(classes) - 1
    )
    indices = order[positions]
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
