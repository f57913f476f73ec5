"""The likelihood of every public bin, for records and for public points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from curvote.mechanisms.law import Law, Mixture
from curvote.utility.deployments.bins import edges, masses, wanted
from curvote.validate import FloatArray

# Bins of two features together: what more of them gain is below .001.
MOST_BINS = 1 << 12
# More terms of a mixture than these are drawn from.
MOST_TERMS = 64
# Numbers in a block of bins and records.
_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Binned:
    """Laws of n inputs on a grid of bins of one or two numbers.

    ``terms`` holds for each term of the mixture the masses (n, b) of each number's
    bins; ``weights`` (n, t) are the terms'.
    """

    weights: FloatArray
    terms: Sequence[Sequence[FloatArray]]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of bins of the first and of the second number (1: none)."""
        first, *others = self.terms[0]
        return first.shape[1], others[0].shape[1] if others else 1

    def block(self, which: slice) -> FloatArray:
        """Return P(bin), (n, bins), for some bins of the first number, all others."""
        parts = [
            weight[:, None] * self._term(term, which)
            for weight, term in zip(self.weights.T, self.terms, strict=True)
        ]
        return np.asarray(sum(parts))

    @staticmethod
    def _term(term: Sequence[FloatArray], which: slice) -> FloatArray:
        first, *others = term
        found = first[:, which]
        for other in others:
            found = (found[:, :, None] * other[:, None]).reshape(len(found), -1)
        return found


def writable(prior: Mixture, sent: Sequence[int]) -> bool:
    """Say whether the bins of what is sent can be written out: one number or two."""
    return len(sent) <= 2 and len(prior.terms) <= MOST_TERMS


def binned(prior: Mixture, own: Mixture, sent: Sequence[int]) -> tuple[Binned, Binned]:
    """Return both laws on the same bins, made for the public ``prior`` alone.

    ``sent`` are the places of the one or two numbers that are sent.
    """
    found = [[term[place] for term in prior.terms] for place in sent]
    cuts = [
        edges(laws, number) for laws, number in zip(found, _numbers(found), strict=True)
    ]
    return _of(prior, sent, cuts), _of(own, sent, cuts)


def _numbers(found: Sequence[Sequence[Law]]) -> list[int]:
    """Return the numbers of bins: as many as are wanted, or fewer in proportion."""
    numbers = [wanted(laws) for laws in found]
    if len(numbers) == 1:
        return numbers
    shrink = min(1.0, np.sqrt(MOST_BINS / np.prod(numbers)))
    return [max(4, round(each * shrink)) for each in numbers]


def _of(law: Mixture, sent: Sequence[int], cuts: Sequence[FloatArray]) -> Binned:
    terms = [
        [masses(term[place], ends) for place, ends in zip(sent, cuts, strict=True)]
        for term in law.terms
    ]
    return Binned(law.weights, terms)


def blocks(shape: tuple[int, int], n: int) -> Iterator[slice]:
    """Return slices of the first number's bins that n records can be held for."""
    size = max(1, _AT_ONCE // (n * shape[1]))
    for start in range(0, shape[0], size):
        yield slice(start, start + size)
