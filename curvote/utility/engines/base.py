"""What every engine shares: the question, the surface, and the answers it gives."""

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
    """A model, and the records whose ``sensitive`` columns will be noised.

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
    """How evidence is drawn, where it is: so many of each record, at a confidence."""

    number: int = 2000
    confidence: float = 0.95
    entropy: Entropy | None = None


@dataclass(frozen=True)
class Answers:
    """How often each record's noised answer is each class: (n, K), with brackets.

    ``lower <= share <= upper``: equal where the evidence is exact; certain in a
    bracket; at the confidence asked for where it is drawn. ``queries`` (n,) counts the
    model's answers that were asked for. Where ``share`` is a plain count of independent
    draws, ``drawn`` is their number for each record, else 0.
    """

    share: FloatArray
    lower: FloatArray
    upper: FloatArray
    evidence: Evidence
    queries: NDArray[np.int64]
    drawn: int = 0


@dataclass(frozen=True)
class Surface(ABC):
    """What an engine knows of a model around n records, whatever the noise.

    ``clean`` (n,) are the places in ``classes_`` of the answers without noise.
    """

    clean: NDArray[np.int64]
    n_classes: int

    @abstractmethod
    def answers(self, channel: Channel, draws: Draws) -> Answers:
        """Return how often each class is answered when the channel stands between."""

    @abstractmethod
    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Say for each record whether its answer is certainly the clean one.

        Everywhere in the closed box ``low`` (n, s) to ``high`` (n, s), in the model's
        units. NotImplementedError where that cannot be known.
        """

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what ``Engine.restored`` needs, as arrays that a file can hold."""


class Engine(ABC):
    """A way from a model to a surface; ``name`` is that of the registry."""

    name: ClassVar[str]

    @abstractmethod
    def refusal(self, question: Question) -> str | None:
        """Return why the model cannot be read in this way, or None."""

    @abstractmethod
    def surface(self, question: Question) -> Surface:
        """Return what is known around the records."""

    @abstractmethod
    def restored(self, question: Question, arrays: dict[str, NDArray[Any]]) -> Surface:
        """Return the surface whose ``arrays`` are given."""
