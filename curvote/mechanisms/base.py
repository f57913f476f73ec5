"""Base classes of mechanisms: claims, domains and the order of checks."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy
from curvote.base.errors import InternalError, UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms import exact
from curvote.mechanisms.law import Mixture, atomic_law, continuous_law, product_law

# Longer arrays, as a prior for each client, say nothing to a reader.
_LONGEST = 8


def format_mechanism(mechanism: object) -> str:
    """Return the call that builds ``mechanism``, as text."""
    arguments = []
    for name in inspect.signature(type(mechanism)).parameters:
        value = getattr(mechanism, name, ...)
        if isinstance(value, np.ndarray):
            value = value.tolist() if value.size <= _LONGEST else ...
        elif isinstance(value, Fraction):
            value = float(value)
        arguments.append(f"{name}={'...' if value is ... else repr(value)}")
    return f"{type(mechanism).__name__}({', '.join(arguments)})"


# The samplers hold epsilon as an integer of at least 11 bits from here on.
SMALLEST_EPSILON = 2.0**-20


class Mechanism(ABC):
    """A randomizer that is (epsilon, delta)-private for each client's input.

    ``0 < epsilon < inf``; below ``SMALLEST_EPSILON`` (2^-20) is a UserError.
    ``unbiased`` says that the output (of a label mechanism: its ``decode``) has the
    input as its mean; ``tight`` that the loss reaches epsilon to within 1e-6. A number
    of the input is in [``low``, ``high``]; ``unit_scale`` says that outputs speak of
    [0, 1], whatever the domain.
    """

    name: str
    unbiased: bool
    tight: bool = True
    low: float = -1.0
    high: float = 1.0
    unit_scale: bool = False

    def __init__(self, *, epsilon: float) -> None:
        self.epsilon = validate.positive(epsilon=epsilon)
        self.delta = 0.0
        if self.epsilon < SMALLEST_EPSILON:
            raise UserError(
                f"epsilon is {epsilon!r} for one value; the exact samplers need at"
                f" least {SMALLEST_EPSILON:.2g} (2^-20)."
            )

    def __repr__(self) -> str:
        return format_mechanism(self)

    @abstractmethod
    def clip(self, values: ArrayLike) -> tuple[NDArray[Any], int]:
        """Return the values moved into the domain, and how many were outside.

        NaN or infinity is a UserError.
        """

    def randomize(self, values: ArrayLike, entropy: Entropy) -> NDArray[Any]:
        """Return one output for each client; the first axis is clients.

        Values are checked before a single word is drawn: NaN or infinity is a UserError
        and releases nothing; values out of the domain are clipped (``clip`` counts).
        """
        clipped, _ = self.clip(values)
        return self._draw(clipped, entropy)

    def simulate(self, values: ArrayLike, entropy: Entropy) -> NDArray[Any]:
        """Return draws of the same law for a study, without protection.

        A mechanism whose exact draws are slow may take a quicker way here.
        """
        return self.randomize(values, entropy)

    @abstractmethod
    def _draw(self, values: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """Return the noised values of checked inputs in the domain."""

    @abstractmethod
    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each output whether some input can give it.

        What a server must refuse is what no honest client can have sent.
        """

    def tail_bound(self, probability: float) -> float:
        """Return the size that a number exceeds with this probability at most.

        Whatever the input, 0 < ``probability`` < 1. Infinity says that there is no
        tail: outputs are bounded, and those beyond are not possible.
        """
        validate.fraction(probability=probability)
        return math.inf

    @property
    def domain(self) -> tuple[float, float]:
        """The least and the largest value of one coordinate of an input."""
        return self.low, self.high

    @property
    def scale_of_outputs(self) -> tuple[float, float]:
        """The two outputs that stand for the ends of the domain."""
        return (0.0, 1.0) if self.unit_scale else self.domain

    @abstractmethod
    def to_inputs(self, columns: FloatArray) -> NDArray[Any]:
        """Return columns of the domain, (n, d), as ``randomize`` takes them."""

    @abstractmethod
    def law(self, x: ArrayLike) -> Mixture | None:
        """Return the outputs' laws for n inputs; None if no such mixture.

        None, too, where there would be more than ``law.MAX_TERMS`` products.
        """

    @abstractmethod
    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the exact mean of the output for each input."""

    @abstractmethod
    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the exact variance of the output for each input."""

    def log_ratio(self, x: ArrayLike, x2: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return ln P(at | x) - ln P(at | x2), one number a client.

        For possible outputs ``at``.
        """
        first, second = (self._log_likelihood(value, at) for value in (x, x2))
        return np.asarray(first - second)

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return ln P(at | x) up to a constant that does not depend on x."""
        raise NotImplementedError

    def worst_ratio(self) -> Fraction | None:
        """Return the largest likelihood ratio of two inputs, exactly.

        None where it is no fraction (the Laplace law) or unbounded (the Gaussian).
        """
        return None

    def worst_log_ratio(self) -> float:
        """Return the exact privacy loss: the least epsilon that holds.

        From the integers really used, and at most epsilon. With delta 0 that is the
        largest ``log_ratio``.
        """
        ratio = self.worst_ratio()
        if ratio is None:
            raise InternalError(f"{type(self).__name__} states no loss")
        return exact.exact_log(ratio)


class ScalarMechanism(Mechanism):
    """A mechanism for one real value; arrays are many values, each at full epsilon.

    Outputs are float64 in the input's shape.
    """

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the values clipped into the domain, and how many were outside it."""
        inputs = validate.finite(values=values)
        clipped = np.clip(inputs, self.low, self.high)
        return clipped, int(np.count_nonzero(clipped != inputs))

    def to_inputs(self, columns: FloatArray) -> FloatArray:
        """Return the one column, (n,), as values."""
        return columns[:, 0]

    @abstractmethod
    def cdf(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return the exact P(output <= at) for each input."""

    def law(self, x: ArrayLike) -> Mixture:
        """Return the outputs' laws for inputs (n,): one term, without atoms."""
        inputs = np.asarray(x, dtype=np.float64)[:, None]
        return product_law(continuous_law(inputs, self.cdf))


class LabelMechanism(Mechanism):
    """A mechanism for one of ``n_classes`` >= 2 labels, given as 0..n_classes-1.

    Outputs are codes (n,) int64, or bit-packed codes (n, ceil(n_classes/8)) uint8 in
    numpy's ``packbits`` order. ``mean`` and ``variance`` are those of ``decode``.
    """

    # The kind of number that an output is made of.
    dtype: np.dtype[Any] = np.dtype(np.int64)
    # Above it the channel is not written out; ``worst_ratio`` never needs it.
    most_outputs: ClassVar[int] = 1 << 12

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=epsilon)
        self.n_classes = validate.at_least(2, n_classes=n_classes)

    def clip(self, values: ArrayLike) -> tuple[NDArray[np.int64], int]:
        """Return the labels as int64, (n,); anything that is no label: UserError."""
        labels = validate.finite(values=values)
        rule = f"labels are whole numbers 0..{self.n_classes - 1}, one a client"
        if labels.ndim != 1:
            raise UserError(f"values has shape {labels.shape}; {rule}: (n,).")
        outside = (labels < 0) | (labels >= self.n_classes)
        invalid = labels[(labels != np.rint(labels)) | outside]
        if invalid.size:
            raise UserError(
                f"values holds {invalid.size} entries that are no label, the first is"
                f" {invalid[0]:g}; {rule}."
            )
        return labels.astype(np.int64), 0

    @property
    def domain(self) -> tuple[float, float]:
        """The first and the last label: the levels of a numbered feature."""
        return 0.0, self.n_classes - 1.0

    def to_inputs(self, columns: FloatArray) -> NDArray[Any]:
        """Return the labels nearest to the one column, (n,)."""
        return np.rint(columns[:, 0]).astype(np.int64)

    def law(self, x: ArrayLike) -> Mixture | None:
        """Return the codes' laws for labels (n,): atoms.

        None where a code is no single number, or ``outputs`` refuses to list them.
        """
        try:
            codes = self.outputs()
        except UserError:
            return None
        if codes.ndim > 1:
            return None
        order = np.argsort(codes)
        return product_law(atomic_law(codes[order], self.probabilities(x)[:, order]))

    @abstractmethod
    def decode(self, outputs: NDArray[Any]) -> FloatArray:
        """Return each client's estimate of its one-hot label, (n, n_classes).

        Unbiased where ``unbiased`` is true: its column means estimate class shares.
        """

    @abstractmethod
    def likelihood(self, outputs: NDArray[Any]) -> FloatArray:
        """Return P(output | label) up to a factor a row, (n, n_classes).

        The largest of a row is 1.
        """

    @abstractmethod
    def outputs(self) -> NDArray[Any]:
        """Return all outputs, in the form that ``randomize`` gives.

        More than ``most_outputs`` is a UserError.
        """

    @abstractmethod
    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Return the probability of each of ``outputs()``, (n, m), for labels (n,)."""

    @abstractmethod
    def channel(self) -> list[list[Fraction]]:
        """Return P(output | label) exactly: a row a label, a column an output."""


class VectorMechanism(Mechanism):
    """A mechanism for a whole record of ``d`` values; epsilon is for the record.

    Records are (n, d), anything else is a UserError; so is the output. The domain is
    [-1, 1]^d unless a subclass says otherwise. ``mean`` and ``variance`` are those of
    each coordinate, (n, d); ``log_ratio`` is one number a record, (n,).
    """

    def __init__(self, *, epsilon: float, d: int) -> None:
        super().__init__(epsilon=epsilon)
        self.d = validate.at_least(1, d=d)

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the records clipped, and how many coordinates were outside."""
        records = self._check_records(values)
        clipped = np.clip(records, self.low, self.high)
        return clipped, int(np.count_nonzero(clipped != records))

    def to_inputs(self, columns: FloatArray) -> FloatArray:
        """Return the columns unchanged, as records."""
        return columns

    def _check_records(self, values: ArrayLike) -> FloatArray:
        shape = np.shape(values)
        if len(shape) != 2 or shape[1] != self.d:
            raise UserError(
                f"values has shape {shape}; {self.name} on {self.d} coordinates takes"
                f" one row for each client: (n, {self.d})."
            )
        return validate.finite(values=values)


class FiniteMechanism(ScalarMechanism):
    """A scalar mechanism with few outputs, given by its channel.

    ``outputs`` is increasing, [k]; ``probabilities`` is the channel.
    """

    outputs: FloatArray

    @abstractmethod
    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Return the probability of each output, [..., k], for each input [...]."""

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each output whether it is one of ``outputs``."""
        return np.isin(outputs, self.outputs)

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the mean of the output, from the channel."""
        return np.asarray(self.probabilities(x) @ self.outputs)

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the variance of the output, from the channel."""
        centred = self.outputs - self.mean(x)[..., None]
        return np.asarray(np.sum(self.probabilities(x) * centred**2, axis=-1))

    def cdf(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return the exact P(output <= at) for each input."""
        reached = self.outputs <= np.asarray(at)[..., None]
        return np.asarray(np.sum(self.probabilities(x) * reached, axis=-1))

    def law(self, x: ArrayLike) -> Mixture:
        """Return the outputs' laws for inputs (n,): atoms."""
        return product_law(atomic_law(self.outputs, self.probabilities(x)))

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        values, outputs = np.asarray(x), np.asarray(at)
        inputs, index = np.unique(values, return_inverse=True)
        place = np.searchsorted(self.outputs, outputs).clip(max=len(self.outputs) - 1)
        chances = self.probabilities(inputs)[index.reshape(values.shape), place]
        possible = self.outputs[place] == outputs
        return np.asarray(np.log(np.where(possible, chances, 0.0)))
