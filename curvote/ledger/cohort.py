"""Cohorts: the ids of a release's clients, checked and sorted in batches.

Ten million ids are never held as that many Python strings: whole numbers stay an array
of 8 bytes each, long columns of text stay in Arrow's form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.base.text import normalise_id

if TYPE_CHECKING:
    import pyarrow as pa


Ids = NDArray[np.int64] | NDArray[np.str_] | Sequence[str]
ClientIds = Ids | Iterable[NDArray[np.int64]] | Iterable[NDArray[np.str_]]
Numbers = NDArray[np.int64]

BATCH_SIZE: Final = 65_536
_DIGITS: Final = 19  # of the largest whole number of 64 bits
_POWERS: Final = 10 ** np.arange(_DIGITS, dtype=np.uint64)


class Cohort:
    """The distinct ids of clients, iterated as sorted text in batches.

    Iterating yields them as text, sorted, `BATCH_SIZE` at a time; ``n`` counts them.
    None, empty or repeated ones: UserError. Messages name no id: they may end in a log
    that the server's side reads.
    """

    def __init__(self, clients: ClientIds) -> None:
        pieces = list(_id_pieces(clients))
        self.n = sum(map(len, pieces))
        if not self.n:
            raise UserError("clients is empty; a release concerns at least one client.")
        arrays = [piece for piece in pieces if isinstance(piece, np.ndarray)]
        numbers = len(arrays) == len(pieces)
        ids = _NumberIds(arrays) if numbers else _TextIds(pieces)
        self._sorted: _NumberIds | _TextIds = ids
        if repeated := self._sorted.count_repeated():
            raise UserError(
                f"{repeated} of {self.n} client ids stand in clients a second time;"
                " a release concerns each client once."
            )

    def __iter__(self) -> Iterator[list[str]]:
        return iter(self._sorted)


def sorted_ids(clients: ClientIds) -> list[str]:
    """Return the ids (n,) as sorted text; see `Cohort`."""
    return [name for batch in Cohort(clients) for name in batch]


def _id_pieces(clients: ClientIds) -> Iterator[Numbers | list[str]]:
    """Yield ids as arrays of whole numbers or lists of checked text."""
    if isinstance(clients, str):  # a sequence of str, but never meant as one
        raise UserError("clients is a single text; give a sequence of ids.")
    single = isinstance(clients, np.ndarray) or (
        isinstance(clients, Sequence)
        and not isinstance(next(iter(clients), 0), np.ndarray)
    )
    pieces: Any = [clients] if single else clients
    for piece in pieces:
        if not isinstance(piece, np.ndarray):
            yield _ids_to_text(piece)
        elif piece.ndim != 1:
            raise UserError(f"clients has shape {piece.shape}; it must be (n,).")
        elif piece.dtype == np.uint64:
            yield list(map(str, piece.tolist()))
        elif piece.dtype.kind in "iu":
            yield piece.astype(np.int64, copy=False)
        else:
            for start in range(0, len(piece), BATCH_SIZE):
                yield _ids_to_text(piece[start : start + BATCH_SIZE].tolist())


def _ids_to_text(ids: Sequence[Any]) -> list[str]:
    ids_text = []
    for client in ids:
        text = client
        if isinstance(client, str):
            text = normalise_id(str(client))
        elif isinstance(client, float) and client.is_integer():
            text = str(int(client))
        ids_text.append(text)
    if not {type(name) for name in ids_text} <= {str}:
        raise UserError(
            "clients must be one-dimensional: whole numbers or text, every id given."
        )
    try:
        joined = "".join(ids_text).encode()
    except UnicodeEncodeError:
        raise UserError("a client id holds a character that is no text.") from None
    if "" in ids_text or b"\0" in joined:
        raise UserError("a client id is empty or holds a zero byte.")
    return ids_text


class _NumberIds:
    """Whole-number ids in the order of their decimal text."""

    def __init__(self, pieces: Sequence[Numbers]) -> None:
        ids = np.sort(np.concatenate(pieces))
        self._repeated = int(np.count_nonzero(ids[1:] == ids[:-1]))
        first = int(np.searchsorted(ids, 0))  # "-" stands before all digits
        for place, part in (
            (slice(first), ids[:first][::-1]),
            (slice(first, None), ids[first:]),
        ):
            ids[place] = part[np.argsort(_align_digits(part), kind="stable")]
        self._ids = ids

    def count_repeated(self) -> int:
        return self._repeated

    def __iter__(self) -> Iterator[list[str]]:
        return _as_text(self._ids)


def _as_text(ids: Numbers) -> Iterator[list[str]]:
    for start in range(0, len(ids), BATCH_SIZE):
        yield list(map(str, ids[start : start + BATCH_SIZE].tolist()))


def _align_digits(ids: Numbers) -> NDArray[np.uint64]:
    """Return numbers shifted left until all have as many digits.

    Where they are equal, as of 1 and 10, the smaller number is the shorter text: a
    stable sort of ascending numbers keeps them right.
    """
    aligned = np.empty(len(ids), dtype=np.uint64)
    for start in range(0, len(ids), BATCH_SIZE):
        part = ids[start : start + BATCH_SIZE]
        size = np.where(part < 0, ~part, part).astype(np.uint64)
        size += (part < 0).astype(np.uint64)
        digits = np.maximum(np.searchsorted(_POWERS, size, side="right"), 1)
        aligned[start : start + BATCH_SIZE] = size * _POWERS[_DIGITS - digits]
    return aligned


class _TextIds:
    """Ids as text, in the order of their code points."""

    def __init__(self, pieces: Sequence[Numbers | list[str]]) -> None:
        batches = (
            batch
            for piece in pieces
            for batch in ([piece] if isinstance(piece, list) else _as_text(piece))
        )
        if sum(map(len, pieces)) <= BATCH_SIZE:
            self._few = sorted(name for batch in batches for name in batch)
            self._many: pa.ChunkedArray | None = None
            return
        import pyarrow as pa
        from pyarrow import compute

        arrays = [pa.array(batch, type=pa.large_string()) for batch in batches]
        table = pa.chunked_array(arrays).combine_chunks()
        self._many = table.take(compute.sort_indices(table))

    def count_repeated(self) -> int:
        count, before = 0, None
        for batch in self:
            count += batch[0] == before
            count += sum(a == b for a, b in pairwise(batch))
            before = batch[-1]
        return count

    def __iter__(self) -> Iterator[list[str]]:
        if self._many is None:
            yield self._few
            return
        for start in range(0, len(self._many), BATCH_SIZE):
            yield self._many.slice(start, BATCH_SIZE).to_pylist()
