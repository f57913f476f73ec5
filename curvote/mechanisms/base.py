"""Base classes of mechanisms, and the laws of their outputs."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy
from curvote.base.errors import InternalError, UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms import exact

# More products than these are not written out.
MAX_TERMS = 1 << 12

# Stands in for infinity, which floats cannot subtract from itself.
_FAR = 1e150

Rest = Callable[[FloatArray, FloatArray], FloatArray]
Side = Literal["left", "right"]


def _zero_rest(_: FloatArray, at: FloatArray) -> FloatArray:
    return np.zeros_like(at)


@dataclass(frozen=True)
class Law:
    """Laws on the line, one for each of n inputs: atoms and a rest.

    ``points`` (n, k), not decreasing in a row, have ``masses`` (n, k). ``rest`` takes
    the ``inputs`` (n, 1) and places (n, m) or (1, m), and returns P(the output is no
    atom and at most that), (n, m); it may be a step function. No output lies outside
    [``low``, ``high``].
    """

    points: FloatArray
    masses: FloatArray
    rest: Rest = _zero_rest
    inputs: FloatArray | None = None
    low: float = -inf
    high: float = inf

    @property
    def n(self) -> int:
        """The number of inputs."""
        return len(self.masses)

    def cdf(self, at: ArrayLike) -> FloatArray:
        """Return P(output <= at), (n, m), for ``at`` (m,) or (n, m)."""
        places = np.atleast_2d(np.asarray(at, dtype=np.float64))
        return self._rest_mass(places) + self._atom_mass(places, "right")

    def below(self, at: ArrayLike) -> FloatArray:
        """Return P(output < at), (n, m), for ``at`` (m,) or (n, m)."""
        places = np.atleast_2d(np.asarray(at, dtype=np.float64))
        rest = self._rest_mass(np.nextafter(places, -inf))
        return rest + self._atom_mass(places, "left")

    def between(self, low: ArrayLike, high: ArrayLike) -> FloatArray:
        """Return P(low <= output <= high), (n, m)."""
        return np.maximum(self.cdf(high) - self.below(low), 0.0)

    def _rest_mass(self, at: FloatArray) -> FloatArray:
        inputs = np.empty((self.n, 0)) if self.inputs is None else self.inputs
        return self.rest(inputs, np.clip(at, -_FAR, _FAR))

    def _atom_mass(self, at: FloatArray, side: Side) -> FloatArray:
        places = self._count_atoms(at, side)
        if len(places) < self.n:
            return np.asarray(np.take(self._cumulative_masses, places[0], axis=1))
        return np.asarray(np.take_along_axis(self._cumulative_masses, places, axis=1))

    @cached_property
    def _cumulative_masses(self) -> FloatArray:
        sums = np.zeros((self.n, self.masses.shape[1] + 1))
        np.cumsum(self.masses, axis=1, out=sums[:, 1:])
        return sums

    @cached_property
    def _has_shared_atoms(self) -> bool:
        """Whether all inputs have the same atoms."""
        points = self.points
        return points.strides[0] == 0 or bool((points == points[:1]).all())

    def _count_atoms(self, at: FloatArray, side: Side) -> NDArray[np.intp]:
        """Return how many atoms lie before each place."""
        if self._has_shared_atoms:
            row = self.points[0] if self.n else np.empty(0)
            return np.asarray(np.searchsorted(row, at, side=side))
        all_places = np.broadcast_to(at, (self.n, at.shape[1]))
        pairs = zip(self.points, all_places, strict=True)
        counts = [np.searchsorted(row, places, side=side) for row, places in pairs]
        return np.stack(counts)

    def scaled(self, scale: float, shift: float) -> Law:
        """Return the laws of ``shift + scale * output``, ``scale`` > 0.

        As floats compute it: a place is asked for the last output that lands there.
        """

        def rest(inputs: FloatArray, at: FloatArray) -> FloatArray:
            return self.rest(inputs, _largest_preimage(at, scale, shift))

        points = shift + scale * self.points
        low, high = shift + scale * self.low, shift + scale * self.high
        return replace(self, points=points, rest=rest, low=low, high=high)

    def clipped(self, low: float, high: float) -> Law:
        """Return the laws of the output clipped to [low, high]."""
        if self.low >= low and self.high <= high:
            return self
        edges = np.array([[low, high]])
        inner = np.where((self.points > low) & (self.points < high), self.masses, 0)
        ends = self.cdf(edges[:, :1]), 1 - self.below(edges[:, 1:])
        masses = np.hstack([ends[0], inner, np.maximum(ends[1], 0)])
        # The rest in the open interval.
        within = np.array([[low, np.nextafter(high, -inf)]])

        def rest(inputs: FloatArray, at: FloatArray) -> FloatArray:
            start = self.rest(inputs, within)[:, :1]
            mass = self.rest(inputs, np.minimum(at, within[:, 1:])) - start
            return np.where(at < low, 0.0, np.maximum(mass, 0.0))

        points = self._with_edges(low, high)
        return Law(points, masses, rest, self.inputs, low, high)

    def _with_edges(self, low: float, high: float) -> FloatArray:
        """Return the atoms clipped to [low, high], with an atom at each edge."""
        places = self.points[:1] if self._has_shared_atoms else self.points
        ends = [np.full((len(places), 1), edge) for edge in (low, high)]
        moved = np.hstack([ends[0], np.clip(places, low, high), ends[1]])
        return np.broadcast_to(moved, (self.n, moved.shape[1]))

    def select(self, which: slice | NDArray[np.intp]) -> Law:
        """Return the laws of some of the inputs."""
        return replace(
            self,
            points=self.points[which],
            masses=self.masses[which],
            inputs=None if self.inputs is None else self.inputs[which],
        )


def _largest_preimage(at: FloatArray, scale: float, shift: float) -> FloatArray:
    """Return the largest float x with ``shift + scale * x`` <= at.

    Rounding moves the quotient by a few units in the last place of what is subtracted;
    those are bracketed and halved until no float is left between.
    """
    slack = 2.0**-50 * (np.abs(at) + abs(shift)) / scale
    low = (at - shift) / scale - slack
    high = low + 2 * slack
    while True:
        middle = low + (high - low) / 2
        between = (middle > low) & (middle < high)
        if not between.any():
            return low
        fits = shift + scale * middle <= at
        low = np.where(between & fits, middle, low)
        high = np.where(between & ~fits, middle, high)


def atomic_law(points: ArrayLike, masses: ArrayLike) -> Law:
    """Return laws of atoms only: ``points`` (k,) or (n, k), ``masses`` (n, k)."""
    weights = np.asarray(masses, dtype=np.float64)
    where = np.broadcast_to(np.asarray(points, dtype=np.float64), weights.shape)
    low, high = (float(where.min()), float(where.max())) if where.size else (-inf, inf)
    return Law(where, weights, low=low, high=high)


def continuous_law(
    inputs: FloatArray, cdf: Rest, low: float = -inf, high: float = inf
) -> Law:
    """Return laws without atoms, given by P(output <= at | input).

    ``cdf`` takes ``inputs`` (n, 1) and places (n, m) or (1, m), and returns (n, m).
    """
    none = np.empty((len(inputs), 0))
    return Law(none, none, cdf, inputs, low, high)


@dataclass(frozen=True)
class Mixture:
    """Laws of n records of d values: mixtures of products of laws on the line.

    ``weights`` (n, m) add up to one in each row; ``terms`` are m tuples of d laws.
    """

    weights: FloatArray
    terms: Sequence[tuple[Law, ...]]

    @property
    def d(self) -> int:
        """The number of values of a record."""
        return len(self.terms[0])

    def box(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return P(low <= output <= high in each coordinate), (n,)."""
        total = np.zeros(len(self.weights))
        cached: dict[tuple[int, int], FloatArray] = {}
        for weight, term in zip(self.weights.T, self.terms, strict=True):
            share = weight.copy()
            for i, law in enumerate(term):
                if (i, id(law)) not in cached:
                    probability = law.between(low[:, [i]], high[:, [i]])
                    cached[i, id(law)] = probability[:, 0]
                share *= cached[i, id(law)]
            total += share
        return total

    def select(self, which: slice | NDArray[np.intp]) -> Mixture:
        """Return the laws of some of the records."""
        selected = {id(law): law.select(which) for term in self.terms for law in term}
        terms = [tuple(selected[id(law)] for law in term) for term in self.terms]
        return Mixture(self.weights[which], terms)


def product_law(*laws: Law) -> Mixture:
    """Return the laws of independent coordinates."""
    return Mixture(np.ones((laws[0].n, 1)), (laws,))


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
