"""Whether comparisons use all 64 bits of a word: next to each bound, exactly.

Chance never shows the low half of a word, so words are put where it decides.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from decimal import Decimal

import numpy as np

from curvote.audit.row import Finding
from curvote.audit.tape import Given
from curvote.entropy import SeededEntropy
from curvote.mechanisms import bits, exact

WORDS = 1 << 64
NEAR = (-(1 << 33), -1, 0, 1, 1 << 33)
_CONTEXT = decimal.Context(prec=60)


def check() -> Finding:
    """Say which comparison of `exact` or `bits` is settled by too few bits."""
    wrong = next((why for why in _faults() if why), None)
    return Finding("primitives", wrong)


def _faults() -> Iterator[str | None]:
    yield from (_exp(numerator, 40) for numerator in (1, 12_345, 987_654_321))
    yield from (_power(k) for k in range(1, 44))
    yield from (_modulus(n) for n in (3, 1000, (1 << 21) + 1, (1 << 62) + 1))
    yield from (_coin(t) for t in (WORDS // 3, WORDS - 12_345, 77, 1 << 63))


def _floor(exponent: Decimal) -> int:
    """Return floor(2^64 e^exponent)."""
    return int(_CONTEXT.multiply(_CONTEXT.exp(exponent), Decimal(WORDS)))


def _exp(numerator: int, bits_: int) -> str | None:
    bound = _floor(_CONTEXT.divide(Decimal(-numerator), Decimal(1 << bits_)))
    for off in NEAR:
        if off and 0 <= bound + off < WORDS:
            words = np.array([bound + off], dtype=np.uint64)
            given = np.array([numerator], dtype=np.int64)
            (below,) = exact.below_exp(words, given, bits_, SeededEntropy(1))
            if below != (off < 0):
                return f"below_exp is settled by another word than the first, by {off}"
    return None


def _power(k: int) -> str | None:
    bound = _floor(Decimal(-k))
    for off in (-1, 1):
        word = np.array([max(bound + off, 0)], dtype=np.uint64)
        (found,) = exact.geometric(word, 2047, SeededEntropy(1))
        if bound + off > 0 and (found >= k) != (off < 0):
            return f"geometric does not reach {k} at floor(2^64 e^-{k}) exactly"
    return None


def _chosen(*answers: list[int]) -> Given:
    """Return entropy that gives these words, in calls that ask for as many."""
    return Given([np.array(words, dtype=np.uint64).tobytes() for words in answers])


def _modulus(n: int) -> str | None:
    whole = WORDS // n * n
    for word in (0, 1, n - 1, n, whole - 1):
        if exact.below(n, 1, _chosen([word]))[0] != word % n:
            return f"below({n}) does not use the whole word {word}"
    if whole < WORDS and exact.below(n, 1, _chosen([whole], [5]))[0] != 5 % n:
        return f"below({n}) takes a word of the last, incomplete run"
    return None


def _coin(threshold: int) -> str | None:
    """Check the bits of `bernoulli`: a leading byte, and 56 more where it ties."""
    lead, rest = divmod(threshold, 1 << 56)
    for off in (-1, 0):
        further = (rest + off) % (1 << 56)
        chosen = _chosen([lead * 0x0101010101010101], [further << 8] * 8)
        found = bits.bernoulli(threshold, 8, chosen)
        if rest and (found != (off < 0)).any():
            return f"bernoulli({threshold}) is not settled by all 64 bits"
    return None
