"""Engines that read a model: question, surface, answers, and the choice of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from curvote.entropy import Entropy
from curvote.utility.channel import Channel
from curvote.validate import FloatArray

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
