"""Check that comparisons use all 64 bits of a word.

Chance never shows the low half of a word, so words are put where it decides.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from decimal import Decimal

import numpy as np

from curvote.audit.row import Finding
from curvote.audit.tape import ReplayedEntropy
from curvote.entropy import SeededEntropy
from curvote.mechanisms import bits, exact

PRIMITIVE_WORDS = 1 << 64
PRIMITIVE_NEAR = (-(1 << 33), -1, 0, 1, 1 << 33)
_CONTEXT = decimal.Context(prec=60)


def check_primitives() -> Finding:
    """Return the finding on comparisons of `exact` and `bits`."""
    wrong = next((why for why in _primitive_faults() if why), None)
    return Finding("primitives", wrong)


def _primitive_faults() -> Iterator[str | None]:
    yield from (_check_exp(numerator, 40) for numerator in (1, 12_345, 987_654_321))
    yield from (_check_geometric(k) for k in range(1, 44))
    yield from (_check_modulus(n) for n in (3, 1000, (1 << 21) + 1, (1 << 62) + 1))
    yield from (
        _check_coin(t)
        for t in (PRIMITIVE_WORDS // 3, PRIMITIVE_WORDS - 12_345, 77, 1 << 63)
    )


def _floor_exp(exponent: Decimal) -> int:
    """Return floor(2^64 e^exponent)."""
    return int(_CONTEXT.multiply(_CONTEXT.exp(exponent), Decimal(PRIMITIVE_WORDS)))


def _check_exp(numerator: int, bits_: int) -> str | None:
    bound = _floor_exp(_CONTEXT.divide(Decimal(-numerator), Decimal(1 << bits_)))
    for off in PRIMITIVE_NEAR:
        if off and 0 <= bound + off < PRIMITIVE_WORDS:
            words = np.array([bound + off], dtype=np.uint64)
            numerators = np.array([numerator], dtype=np.int64)
            (below,) = exact.bernoulli_exp(words, numerators, bits_, SeededEntropy(1))
            if below != (off < 0):
                return f"below_exp is settled by another word than the first, by {off}"
    return None


def _check_geometric(k: int) -> str | None:
    bound = _floor_exp(Decimal(-k))
    for off in (-1, 1):
        word = np.array([max(bound + off, 0)], dtype=np.uint64)
        (power,) = exact.geometric_draws(word, 2047, SeededEntropy(1))
        if bound + off > 0 and (power >= k) != (off < 0):
            return f"geometric does not reach {k} at floor(2^64 e^-{k}) exactly"
    return None


def _chosen_entropy(*answers: list[int]) -> ReplayedEntropy:
    """Return entropy that gives these words."""
    return ReplayedEntropy(
        [np.array(words, dtype=np.uint64).tobytes() for words in answers]
    )


def _check_modulus(n: int) -> str | None:
    limit = PRIMITIVE_WORDS // n * n
    for word in (0, 1, n - 1, n, limit - 1):
        if exact.uniform_below(n, 1, _chosen_entropy([word]))[0] != word % n:
            return f"below({n}) does not use the whole word {word}"
    if (
        limit < PRIMITIVE_WORDS
        and exact.uniform_below(n, 1, _chosen_entropy([limit], [5]))[0] != 5 % n
    ):
        return f"below({n}) takes a word of the last, incomplete run"
    return None


def _check_coin(threshold: int) -> str | None:
    """Check the bits of `bernoulli`: a leading byte, and 56 more where it ties."""
    lead, rest = divmod(threshold, 1 << 56)
    for off in (-1, 0):
        further = (rest + off) % (1 << 56)
        chosen = _chosen_entropy([lead * 0x0101010101010101], [further << 8] * 8)
        outcomes = bits.bernoulli_bits(threshold, 8, chosen)
        if rest and (outcomes != (off < 0)).any():
            return f"bernoulli({threshold}) is not settled by all 64 bits"
    return None
