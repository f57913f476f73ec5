"""Exact sums of messages: a state of one size however many came, in any order.

A message is a word, or a word beside a vector of numbers. What is kept of all is how
often each word came, and for each word the sum of its vectors. A number x counts as the
integer nearest to 2^bits x, so sums are integers: whatever the order, the grouping and
the number of processes, the same messages make the same state, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import InternalError
from curvote.wire.strict_json import canonical_json

Array = NDArray[np.float64]

# 2^bits x stays below 2^46, and 2^16 rows of such numbers below 2^62, in 64 bits.
# An honest number has 53 bits: what is cut off is below 2^-46 of the largest.
NUMBER_BITS: Final = 46
ROWS: Final = 1 << 16
_LINES: Final = 1 << 12  # hashed at once


def bits_below(largest: float) -> int:
    """Return the bits that numbers of at most this size are counted with."""
    return NUMBER_BITS - math.frexp(largest * (1 + 2.0**-20))[1]


def integer_sum(rows: Array, bits: int) -> list[int]:
    """Return the sum (p,) of rows (n, p) in units of 2^-bits, each number rounded.

    Numbers beyond what `bits_below` was told are an InternalError.
    """
    total = [0] * rows.shape[1]
    for start in range(0, len(rows), ROWS):
        scaled = np.rint(np.ldexp(rows[start : start + ROWS], bits))
        if not (np.abs(scaled) <= 2.0**NUMBER_BITS).all():
            raise InternalError("a number of a message is larger than any can be")
        part = scaled.astype(np.int64).sum(axis=0).tolist()
        total = [a + b for a, b in zip(total, part, strict=True)]
    return total


def exact_mean(total: Sequence[int], n: int, bits: int) -> Array:
    """Return the mean (p,) of n vectors with this sum, each number rounded once."""
    divisor = n << bits if bits >= 0 else n
    scale = 1 if bits >= 0 else 1 << -bits
    return np.array([number * scale / divisor for number in total])


@dataclass(frozen=True)
class SumForm:
    """What is summed of a payload: the vector ``field``, in units of 2^-``bits``.

    All else of the payload is its word. Without a field there are words alone, and the
    state says of every message what it was.
    """

    field: str = ""
    bits: int = 0

    def __str__(self) -> str:
        return f"sums {self.field} {self.bits}" if self.field else "sums"

    @classmethod
    def from_text(cls, text: str | None) -> SumForm | None:
        """Return the form of a round that keeps sums; None: it keeps rows."""
        kind, *parts = (text or "rows").split()
        if kind != "sums":
            return None
        return cls(parts[0], int(parts[1])) if parts else cls()


@dataclass
class MessageSums:
    """The count of each word, and behind it the integers of its vectors' sum."""

    form: SumForm = SumForm()
    words: dict[str, list[int]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """The number of messages."""
        return sum(numbers[0] for numbers in self.words.values())

    def add(self, payloads: Iterable[Mapping[str, Any]]) -> None:
        """Add messages, as they are kept."""
        vectors: dict[str, list[Any]] = {}
        for payload in payloads:
            word = {k: v for k, v in payload.items() if k != self.form.field}
            vector = payload[self.form.field] if self.form.field else ()
            vectors.setdefault(canonical_json(word).decode(), []).append(vector)
        for text, rows in vectors.items():
            self.add_rows(text, np.array(rows, dtype=np.float64))

    def add_rows(self, word: str, rows: Array) -> None:
        """Add messages of one word: their vectors (n, p), p = 0 without any."""
        self._add_numbers(word, [len(rows), *integer_sum(rows, self.form.bits)])

    def merge(self, sums: MessageSums) -> None:
        """Add the messages of other sums of the same form."""
        if sums.form != self.form:
            raise InternalError(f"sums of another form: {sums.form}, not {self.form}")
        for word, numbers in sums.words.items():
            self._add_numbers(word, numbers)

    def _add_numbers(self, word: str, numbers: list[int]) -> None:
        before = self.words.get(word, [0] * len(numbers))
        if len(before) != len(numbers):
            raise InternalError(f"a vector of {len(numbers) - 1} numbers among others")
        self.words[word] = [a + b for a, b in zip(before, numbers, strict=True)]

    def payloads(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield each word as a payload, and how often it came, in order of words."""
        for word, numbers in sorted(self.words.items()):
            yield json.loads(word), numbers[0]

    def mean(self, word: str) -> Array:
        """Return the mean vector (p,) of a word."""
        n, *total = self.words[word]
        return exact_mean(total, n, self.form.bits)

    def digest(self) -> str | None:
        """Return the SHA-256 that names these messages; None of none.

        Of words alone it is that of all messages, sorted, a line each, as of rows.
        """
        if not self.words:
            return None
        if self.form.field:
            text = f"{self.form}\n{self.to_text()}"
            return hashlib.sha256(text.encode()).hexdigest()
        total, beginning = hashlib.sha256(), ""
        for word, (count,) in sorted(self.words.items()):
            total.update(f"{beginning}{word}".encode())
            beginning = "\n"
            for start in range(1, count, _LINES):
                total.update(f"\n{word}".encode() * min(_LINES, count - start))
        return total.hexdigest()

    def to_text(self) -> str:
        """Return the state as JSON: integers in order of words."""
        return canonical_json(self.words).decode()

    @classmethod
    def from_text(cls, form: SumForm, text: str) -> MessageSums:
        """Return the sums whose state a text is."""
        return cls(form, json.loads(text))

    @classmethod
    def of_all(cls, parts: Iterable[MessageSums]) -> MessageSums:
        """Return the sums of all parts, of which there is one at least."""
        first, *rest = parts
        total = cls(first.form, dict(first.words))
        for part in rest:
            total.merge(part)
        return total
