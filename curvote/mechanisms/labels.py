"""Base classes of label mechanisms: supported labels, and packed rows of bits."""

from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base.blanket import Blanket
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms import exact
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.exact import Bits, Labels, Packed

# Far above it the 2^64 words would be too few for the smallest epsilon.
MAX_LABELS = 1 << 31

ProbabilityPair = tuple[Fraction, Fraction]


def valid_codes(outputs: NDArray[Any], size: int) -> Bits:
    """Return which outputs are whole numbers in [0, size)."""
    if outputs.ndim != 1:
        return np.zeros(outputs.shape[:1], dtype=bool)
    inside = (outputs >= 0) & (outputs < size)
    return np.asarray(inside & (outputs == np.floor(outputs)))


def fill_in_blocks(
    outputs: NDArray[Any], n_classes: int, make: Callable[[NDArray[Any]], Any]
) -> FloatArray:
    """Return the rows that ``make`` gives, computed a block at a time.

    It is asked for few at a time: nothing as large as the result is made beside it.
    """
    out = np.empty((len(outputs), n_classes))
    for part in exact.row_chunks(len(outputs), n_classes):
        out[part] = make(outputs[part])
    return out


class SupportMechanism(LabelMechanism):
    """A label mechanism each output of which supports some of the labels.

    An output is ``worst_ratio()`` times as likely for a label that it supports as for
    one that it does not, and for labels that it treats alike equally likely.
    """

    unbiased = True
    _ratio: Fraction

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=epsilon, n_classes=n_classes)
        if self.n_classes > MAX_LABELS:
            raise UserError(
                f"n_classes is {n_classes!r}; it must be at most {MAX_LABELS} (2^31)."
            )

    @abstractmethod
    def _supports(self, outputs: NDArray[Any], labels: Labels) -> Bits:
        """Return whether each output supports its label."""

    @abstractmethod
    def _support_table(self, outputs: NDArray[Any]) -> Bits:
        """Return which labels each output supports, (n, n_classes)."""

    @abstractmethod
    def _output_probabilities(self, outputs: NDArray[Any]) -> list[ProbabilityPair]:
        """Return P(output | label) for unsupported and supported labels."""

    def blanket(self) -> Blanket:
        """Return what all laws of outputs have in common, against any two labels."""
        more, less = self.pair()
        return Blanket.pure(self.epsilon, float(more - less))

    @abstractmethod
    def pair(self) -> ProbabilityPair:
        """Return P(supports 0, not 1), and P(supports 1, not 0), given label 0.

        For the labels 0 and 1. Between these two outputs both bits change: the first
        over the second is the worst ratio.
        """

    def _check_output_count(self, count: int) -> int:
        if count > self.most_outputs:
            raise UserError(
                f"n_classes is {self.n_classes}: {self.name} then has more than"
                f" {self.most_outputs} outputs, too many to write out."
            )
        return count

    def worst_ratio(self) -> Fraction:
        """Return the exact likelihood ratio of supported to other labels."""
        return self._ratio

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the mean of ``decode``: the one-hot labels, (n, n_classes)."""
        return self._one_hot(x).astype(np.float64)

    def _one_hot(self, x: ArrayLike) -> Bits:
        labels, _ = self.clip(x)
        return np.asarray(labels[:, None] == np.arange(self.n_classes))

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        supported = self._supports(np.asarray(at), self.clip(x)[0])
        return np.asarray(supported * self.worst_log_ratio())

    def likelihood(self, outputs: NDArray[Any]) -> FloatArray:
        """Return P(output | label) up to a factor a row, (n, n_classes)."""
        unsupported = float(1 / self.worst_ratio())

        def block_likelihood(rows: NDArray[Any]) -> FloatArray:
            table = self._support_table(rows)
            # An output that supports no label is as likely for each.
            return np.where(table | ~table.any(axis=1, keepdims=True), 1.0, unsupported)

        return fill_in_blocks(outputs, self.n_classes, block_likelihood)

    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Return the probability of each of ``outputs()``, (n, m), for labels (n,)."""
        labels, _ = self.clip(x)
        outputs = self.outputs()
        low, high = np.array(self._output_probabilities(outputs), dtype=np.float64).T
        return np.asarray(np.where(self._support_table(outputs).T[labels], high, low))

    def channel(self) -> list[list[Fraction]]:
        """Return P(output | label) exactly: a row a label, a column an output."""
        outputs = self.outputs()
        chances = self._output_probabilities(outputs)
        return [
            [chance[hit] for chance, hit in zip(chances, row, strict=True)]
            for row in self._support_table(outputs).T.tolist()
        ]


class PureMechanism(SupportMechanism):
    """A support mechanism that supports all wrong labels equally often.

    A pure protocol (Wang et al. 2017, section 3): the output supports the client's
    label with probability ``p`` and any other with probability ``q`` < p, both exact.
    ``decode`` is (z - q)/(p - q), z the row of supported labels.
    """

    p: Fraction
    q: Fraction

    def decode(self, outputs: NDArray[Any]) -> FloatArray:
        """Return the unbiased estimate (z - q)/(p - q), (n, n_classes)."""
        gap = self.p - self.q
        high, low = float((1 - self.q) / gap), float(-self.q / gap)

        def block_estimate(rows: NDArray[Any]) -> FloatArray:
            return np.where(self._support_table(rows), high, low)

        return fill_in_blocks(outputs, self.n_classes, block_estimate)

    def pair_variance(self) -> Fraction:
        """Return the variance of the difference of two decoded numbers."""
        supports, misses = self.pair()
        return (supports + misses) / (supports - misses) ** 2 - 1

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return p(1-p)/(p-q)^2 for the label, q(1-q)/(p-q)^2 for the others."""
        square = (self.p - self.q) ** 2
        label, other = (float(p * (1 - p) / square) for p in (self.p, self.q))
        return np.where(self._one_hot(x), label, other)


class PackedMechanism(PureMechanism):
    """A pure mechanism whose output is the packed row of supported labels.

    Outputs are (n, ceil(n_classes/8)) uint8 in ``packbits`` order, padding bits 0.
    """

    dtype = np.dtype(np.uint8)
    _BYTE: ClassVar[int] = 8

    @property
    def width(self) -> int:
        """The number of bytes of one output."""
        return -(-self.n_classes // self._BYTE)

    @abstractmethod
    def _draw_rows(self, labels: Labels, entropy: Entropy) -> Bits:
        """Return the supported labels of each client, (n, n_classes)."""

    def _draw(self, values: Labels, entropy: Entropy) -> Packed:
        out = np.empty((values.size, self.width), dtype=np.uint8)
        for part in exact.row_chunks(values.size, self.n_classes):
            out[part] = np.packbits(self._draw_rows(values[part], entropy), axis=1)
        return out

    def possible_mask(self, outputs: NDArray[Any]) -> Bits:
        """Return for each output whether its bytes and padding are valid."""
        if outputs.dtype != np.uint8 or outputs.shape[1:] != (self.width,):
            return np.zeros(outputs.shape[:1], dtype=bool)
        padding = (1 << (self.width * self._BYTE - self.n_classes)) - 1
        return np.asarray(outputs[:, -1] & padding == 0)

    def _supports(self, outputs: Packed, labels: Labels) -> Bits:
        return exact.bit_at(outputs, labels)

    def _support_table(self, outputs: Packed) -> Bits:
        rows = np.unpackbits(outputs, axis=1, count=self.n_classes)
        return rows.view(np.bool_)
