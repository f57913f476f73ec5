"""What label mechanisms share: outputs that support labels, and packed rows of bits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms import bits
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.bits import Bits, Labels, Packed
from curvote.validate import FloatArray

# Far above it the 2^64 words would be too few for the smallest epsilon.
MOST_CLASSES = 1 << 31

Chances = tuple[Fraction, Fraction]


def are_codes(outputs: NDArray[Any], size: int) -> Bits:
    """Say which of ``outputs`` are whole numbers in [0, size); none if not (n,)."""
    if outputs.ndim != 1:
        return np.zeros(outputs.shape[:1], dtype=bool)
    inside = (outputs >= 0) & (outputs < size)
    return np.asarray(inside & (outputs == np.floor(outputs)))


def in_blocks(
    outputs: NDArray[Any], n_classes: int, make: Callable[[NDArray[Any]], Any]
) -> FloatArray:
    """Return what ``make`` gives for all rows, (n, n_classes).

    It is asked for few at a time: nothing as large as the result is made beside it.
    """
    out = np.empty((len(outputs), n_classes))
    for part in bits.chunks(len(outputs), n_classes):
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
        if self.n_classes > MOST_CLASSES:
            raise UserError(
                f"n_classes is {n_classes!r}; it must be at most {MOST_CLASSES} (2^31)."
            )

    @abstractmethod
    def _supports(self, outputs: NDArray[Any], labels: Labels) -> Bits:
        """Say whether each output supports its label; either may be a single one."""

    @abstractmethod
    def _table(self, outputs: NDArray[Any]) -> Bits:
        """Say which labels each output supports, (n, n_classes)."""

    @abstractmethod
    def _chances(self, outputs: NDArray[Any]) -> list[Chances]:
        """Return P(output | label) of each: for labels not supported, and supported."""

    @abstractmethod
    def pair(self) -> Chances:
        """Return P(the label is supported, another is not), and the other way round.

        For the labels 0 and 1. Between these two outputs both bits change: the first
        over the second is the worst ratio.
        """

    def _few(self, count: int) -> int:
        """Return the number of outputs if they are few enough to be written out."""
        if count > self.most_outputs:
            raise UserError(
                f"n_classes is {self.n_classes}: {self.name} then has more than"
                f" {self.most_outputs} outputs, too many to write out."
            )
        return count

    def worst_ratio(self) -> Fraction:
        """Return the ratio of a supporting output to another, from the thresholds."""
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
        less = float(1 / self.worst_ratio())

        def block(rows: NDArray[Any]) -> FloatArray:
            table = self._table(rows)
            # An output that supports no label is as likely for each.
            return np.where(table | ~table.any(axis=1, keepdims=True), 1.0, less)

        return in_blocks(outputs, self.n_classes, block)

    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Return the probability of each of ``outputs()``, (n, m), for labels (n,)."""
        labels, _ = self.clip(x)
        outputs = self.outputs()
        low, high = np.array(self._chances(outputs), dtype=np.float64).T
        return np.asarray(np.where(self._table(outputs).T[labels], high, low))

    def channel(self) -> list[list[Fraction]]:
        """Return P(output | label) exactly: a row a label, a column an output."""
        outputs = self.outputs()
        chances = self._chances(outputs)
        return [
            [chance[hit] for chance, hit in zip(chances, row, strict=True)]
            for row in self._table(outputs).T.tolist()
        ]


class PureMechanism(SupportMechanism):
    """One whose output supports each wrong label equally often.

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
        return in_blocks(
            outputs,
            self.n_classes,
            lambda rows: np.where(self._table(rows), high, low),
        )

    def pair_variance(self) -> Fraction:
        """Return the variance of the decoded label's number less another one."""
        own, other = self.pair()
        return (own + other) / (own - other) ** 2 - 1

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return p(1-p)/(p-q)^2 for the label, q(1-q)/(p-q)^2 for the others."""
        own, other = (
            float(share * (1 - share) / (self.p - self.q) ** 2)
            for share in (self.p, self.q)
        )
        return np.where(self._one_hot(x), own, other)


class PackedMechanism(PureMechanism):
    """A pure mechanism whose output is the row of supported labels itself, packed.

    Outputs are (n, ceil(n_classes/8)) uint8 in ``packbits`` order, padding bits 0.
    """

    dtype = np.dtype(np.uint8)
    _BYTE: ClassVar[int] = 8

    @property
    def width(self) -> int:
        """The number of bytes of one output."""
        return -(-self.n_classes // self._BYTE)

    @abstractmethod
    def _rows(self, labels: Labels, entropy: Entropy) -> Bits:
        """Return the supported labels of each client, (n, n_classes)."""

    def _draw(self, values: Labels, entropy: Entropy) -> Packed:
        out = np.empty((values.size, self.width), dtype=np.uint8)
        for part in bits.chunks(values.size, self.n_classes):
            out[part] = np.packbits(self._rows(values[part], entropy), axis=1)
        return out

    def possible(self, outputs: NDArray[Any]) -> Bits:
        """Say for each output whether it has the right bytes and no padding bit set."""
        if outputs.dtype != np.uint8 or outputs.shape[1:] != (self.width,):
            return np.zeros(outputs.shape[:1], dtype=bool)
        padding = (1 << (self.width * self._BYTE - self.n_classes)) - 1
        return np.asarray(outputs[:, -1] & padding == 0)

    def _supports(self, outputs: Packed, labels: Labels) -> Bits:
        return bits.at(outputs, labels)

    def _table(self, outputs: Packed) -> Bits:
        rows = np.unpackbits(outputs, axis=1, count=self.n_classes)
        return rows.view(np.bool_)
