"""Subjects of the audit: mechanisms and messages that draw an output for an input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from curvote.audit.row import Finding
from curvote.entropy import Entropy
from curvote.privacy import Budget
from curvote.validate import FloatArray


@dataclass(frozen=True)
class Loss:
    """The declared law's loss as a number, and as a fraction where it is one."""

    log: float
    ratio: Fraction | None = None


@dataclass(frozen=True, eq=False)
class OddInput:
    """An input that must be refused, or give the very bytes of its ``twin``.

    ``twin`` is None where only a refusal will do.
    """

    name: str
    value: Any
    twin: Any = None


class Subject(ABC):
    """Something that releases one output for one sender's input, at a stated budget.

    An input, a record or a table of them, is opaque to the audit; ``draw`` releases it
    for n senders ("clients") at once. The ``budget`` is what is claimed of one output
    for each record that it is about.
    """

    name: str
    params: Mapping[str, Any]
    budget: Budget
    # Drawn for one input: wide outputs get fewer draws than were asked for.
    most_numbers: ClassVar[int] = 8_000_000
    # Clients with inputs of their own, where an output has few numbers, and many.
    crowd: ClassVar[tuple[int, int]] = (200_000, 70_000)
    # Whether one call draws for many clients, who may then share a path or noise.
    batched: ClassVar[bool] = True

    @property
    def said(self) -> Mapping[str, Any]:
        """The parameters, and more, for the subject's row."""
        return self.params

    @property
    @abstractmethod
    def stands_for(self) -> str:
        """The shipped name with the same known answers; "" for none."""

    @property
    @abstractmethod
    def deciding(self) -> tuple[int, ...]:
        """The declared words at which the output changes."""

    @property
    @abstractmethod
    def rejects(self) -> bool:
        """Whether candidates are drawn until one fits the input."""

    @abstractmethod
    def inputs(self, rng: np.random.Generator) -> list[Any]:
        """Return some inputs, those furthest apart first."""

    @abstractmethod
    def draw(self, x: Any, n: int, entropy: Entropy) -> Any:
        """Return the outputs of ``n`` clients that all hold ``x``, in one call."""

    @abstractmethod
    def view(self, outputs: Any) -> FloatArray:
        """Return the outputs as numbers, one row a client, (n, k)."""

    @abstractmethod
    def shown(self, x: Any) -> FloatArray | None:
        """Return the input in the form of an output's row (k,), or None."""

    @abstractmethod
    def log_ratio(self, x: Any, x2: Any, outputs: Any) -> FloatArray:
        """Return the declared ln P(output | x) - ln P(output | x2), (n,)."""

    @abstractmethod
    def possible(self, outputs: Any) -> NDArray[np.bool_]:
        """Return a mask of the outputs that the declared law can give, (n,)."""

    @abstractmethod
    def loss(self) -> Loss:
        """Return the loss of the declared law."""

    @abstractmethod
    def odd_inputs(self) -> list[OddInput]:
        """Return invalid or unusual inputs that must be handled."""

    @abstractmethod
    def release(self, given: Any, entropy: Entropy) -> bytes:
        """Release an odd input or its twin, and return the bytes."""

    @abstractmethod
    def many(self, n: int, rng: np.random.Generator) -> Any:
        """Return ``n`` clients with inputs from the whole domain."""

    @abstractmethod
    def send(self, many: Any, entropy: Entropy) -> Any:
        """Return the outputs of such clients, in one call."""

    @abstractmethod
    def part(self, many: Any, rows: slice) -> Any:
        """Return some rows of such clients."""

    @abstractmethod
    def together(self, outputs: list[Any]) -> Any:
        """Return the outputs of several calls as those of one call."""

    @abstractmethod
    def places(self, many: Any) -> FloatArray:
        """Return the clients' inputs as numbers (n, k)."""

    @abstractmethod
    def residuals(
        self, many: Any, outputs: Any, rng: np.random.Generator
    ) -> FloatArray | None:
        """Return outputs with the inputs taken out, (n, k)."""

    def law_gap(self, x: Any, outputs: Any, alpha: float) -> str | None:
        """Return how ``outputs`` depart from the declared law of ``x``.

        Wrong with probability ``alpha`` at most. None here: the law has no such form.
        """
        del x, outputs, alpha
        return None

    @abstractmethod
    def own_checks(self) -> list[Finding]:
        """Return the findings of checks of this kind of subject alone."""
