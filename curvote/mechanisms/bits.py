"""Exact random bits: independent rows, and uniform subsets of a given size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from curvote.entropy import Entropy
from curvote.mechanisms import exact

Bits = NDArray[np.bool_]
Packed = NDArray[np.uint8]
Labels = NDArray[np.int64]

_BYTE = 8
_REST_BITS = exact.WORD_BITS - _BYTE
_NORMAL = NormalDist()
# Bits worked on at once: their bytes stay in the processor's cache.
_BITS_AT_ONCE = 1 << 20


def row_chunks(n: int, width: int) -> Iterator[slice]:
    """Yield slices that cover ``n`` rows of ``width`` bits, one row at least."""
    step = max(1, _BITS_AT_ONCE // width)
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def bit_at(packed: Packed, columns: Labels) -> Bits:
    """Return one bit of each packed row (n, bytes); ``columns`` is (n,) or (1,)."""
    rows = np.arange(len(packed))
    return (packed[rows, columns // _BYTE] >> (7 - columns % _BYTE) & 1).astype(bool)


def bernoulli_bits(threshold: int, size: int, entropy: Entropy) -> Bits:
    """Return ``size`` bits, each 1 with probability threshold / 2^64 exactly.

    A bit is 1 iff a uniform word is below ``threshold`` < 2^64. The word's leading byte
    settles 255 bits of 256; its other 56 bits are drawn only where that byte ties.
    """
    lead, rest = divmod(threshold, 1 << _REST_BITS)
    leading = _random_bytes(size, entropy)
    bits: Bits = leading < np.uint8(lead)
    tied = np.flatnonzero(leading == np.uint8(lead))
    further = entropy.words(tied.size) >> np.uint64(_BYTE)
    bits[tied] = further < np.uint64(rest)
    return bits


def _random_bytes(size: int, entropy: Entropy) -> Packed:
    return entropy.words(-(-size // _BYTE)).view(np.uint8)[:size]


def random_subsets(sizes: Labels, barred: Labels, width: int, entropy: Entropy) -> Bits:
    """Return an exactly uniform subset of columns for each row, (n, width).

    Row i has ``sizes[i]`` < width columns, never column ``barred[i]``. It begins with
    independent bits of about the right number, then columns drawn at random are put in
    or taken out until the size is right. Each step treats all columns but the barred
    one alike, so all subsets of one size are equally likely, whatever the beginning.
    """
    n = sizes.size
    begin = _random_bytes(n * width, entropy) < _initial_share(
        int(sizes.max(initial=0)), width
    )
    rows: Bits = begin.reshape(n, width)
    rows[np.arange(n), barred] = False
    missing = sizes - np.count_nonzero(rows, axis=1)
    unfinished = np.flatnonzero(missing)
    while unfinished.size:
        _adjust_subsets(rows, missing, barred, unfinished, entropy)
        unfinished = unfinished[missing[unfinished] != 0]
    return rows


def _initial_share(size: int, width: int) -> int:
    """Return how many of 256 bytes to begin with as ones.

    Where a share f of the columns is wanted, a column drawn to be put in is useful with
    probability 1 - f, one to be taken out with f: fewest are drawn if the beginning has
    too many ones with probability f. So it falls short where ones are the minority.
    """
    wanted = min(size, width - size) / width
    if wanted == 0:
        return 256 * (size // width)
    spread = math.sqrt(wanted * (1 - wanted) / width)
    share = wanted + _NORMAL.inv_cdf(wanted) * spread
    begin = round(256 * max(0.0, share))
    return begin if 2 * size <= width else 256 - begin


def _adjust_subsets(
    rows: Bits, missing: Labels, barred: Labels, unfinished: Labels, entropy: Entropy
) -> None:
    """Draw a column for each unfinished row, and flip it if that helps."""
    columns = exact.uniform_below(rows.shape[1], unfinished.size, entropy)
    lacking = missing[unfinished] > 0
    helps = (rows[unfinished, columns] != lacking) & (columns != barred[unfinished])
    changed, put_in = unfinished[helps], lacking[helps]
    rows[changed, columns[helps]] = put_in
    missing[changed] += np.where(put_in, -1, 1)
