"""The likelihood of every public bin, for records and for public points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from curvote.mechanisms.law import Law, Mixture
from curvote.utility.deployments.bins import bin_edges, bin_masses, count_bins
from curvote.validate import FloatArray

# Bins of two features together: what more of them gain is below .001.
MOST_BINS = 1 << 12
# More terms of a mixture than these are drawn from.
MOST_TERMS = 64
# Numbers in a block of bins and records.
_BLOCK_NUMBERS = 1 << 22


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
        """Numbers of bins of the first and of the second number (1: none)."""
        first, *remaining = self.terms[0]
        return first.shape[1], remaining[0].shape[1] if remaining else 1

    def block(self, which: slice) -> FloatArray:
        """Return P(bin), (n, bins), for some bins of the first number."""
        parts = [
            weight[:, None] * self._term(term, which)
            for weight, term in zip(self.weights.T, self.terms, strict=True)
        ]
        return np.asarray(sum(parts))

    @staticmethod
    def _term(term: Sequence[FloatArray], which: slice) -> FloatArray:
        """Return P(bin) of one term, (n, bins)."""
        first, *remaining = term
        masses_of_bins = first[:, which]
        for other in remaining:
            masses_of_bins = (masses_of_bins[:, :, None] * other[:, None]).reshape(
                len(masses_of_bins), -1
            )
        return masses_of_bins


def can_enumerate(prior: Mixture, places: Sequence[int]) -> bool:
    """Return whether all bins can be enumerated: one number or two."""
    return len(places) <= 2 and len(prior.terms) <= MOST_TERMS


def bin_laws(
    prior: Mixture, law: Mixture, places: Sequence[int]
) -> tuple[Binned, Binned]:
    """Return both laws on the same bins, made for the public ``prior`` alone.

    ``places`` are the places of the one or two numbers that are sent.
    """
    laws_by_number = [[term[place] for term in prior.terms] for place in places]
    cuts = [
        bin_edges(laws, number)
        for laws, number in zip(
            laws_by_number, _bin_counts(laws_by_number), strict=True
        )
    ]
    return _bin_law(prior, places, cuts), _bin_law(law, places, cuts)


def _bin_counts(laws_by_number: Sequence[Sequence[Law]]) -> list[int]:
    """Return the numbers of bins of each number, reduced to fit together."""
    numbers = [count_bins(laws) for laws in laws_by_number]
    if len(numbers) == 1:
        return numbers
    shrink = min(1.0, np.sqrt(MOST_BINS / np.prod(numbers)))
    return [max(4, round(number * shrink)) for number in numbers]


def _bin_law(law: Mixture, places: Sequence[int], cuts: Sequence[FloatArray]) -> Binned:
    """Return a law's masses on given bins."""
    terms = [
        [
            bin_masses(term[place], ends)
            for place, ends in zip(places, cuts, strict=True)
        ]
        for term in law.terms
    ]
    return Binned(law.weights, terms)


def bin_blocks(shape: tuple[int, int], n: int) -> Iterator[slice]:
    """Return slices of the first number's bins that fit into memory."""
    size = max(1, _BLOCK_NUMBERS // (n * shape[1]))
    for start in range(0, shape[0], size):
        yield slice(start, start + size)
