"""The ids of a cohort: checked, in the order of their text, batch by batch.

Ten million ids are never held as that many Python strings: whole numbers stay an array
of 8 bytes each, long columns of text stay in Arrow's form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.identifier import normal

if TYPE_CHECKING:
    import pyarrow as pa

Ids = NDArray[np.int64] | NDArray[np.str_] | Sequence[str]
Clients = Ids | Iterable[NDArray[np.int64]] | Iterable[NDArray[np.str_]]
Numbers = NDArray[np.int64]

BATCH: Final = 65_536
_DIGITS: Final = 19  # of the largest whole number of 64 bits
_POWERS: Final = 10 ** np.arange(_DIGITS, dtype=np.uint64)


class Cohort:
    """The ids ``clients``, each once: one array or sequence, or an iterable of arrays.

    Iterating yields them as text, sorted, `BATCH` at a time; ``n`` counts them. None,
    empty or repeated ones: UserError. Messages name no id: they may end in a log that
    the server's side reads.
    """

    def __init__(self, clients: Clients) -> None:
        pieces = list(_pieces(clients))
        self.n = sum(map(len, pieces))
        if not self.n:
            raise UserError("clients is empty; a release concerns at least one client.")
        whole = [piece for piece in pieces if isinstance(piece, np.ndarray)]
        numbers = len(whole) == len(pieces)
        self._sorted: _Numbers | _Texts = _Numbers(whole) if numbers else _Texts(pieces)
        if repeated := self._sorted.repeated():
            raise UserError(
                f"{repeated} of {self.n} client ids stand in clients a second time;"
                " a release concerns each client once."
            )

    def __iter__(self) -> Iterator[list[str]]:
        return iter(self._sorted)


def names(clients: Clients) -> list[str]:
    """Return the ids (n,) as text, sorted; see `Cohort`."""
    return [name for batch in Cohort(clients) for name in batch]


def _pieces(clients: Clients) -> Iterator[Numbers | list[str]]:
    """Yield whole numbers as arrays and everything else as checked text."""
    if isinstance(clients, str):  # a sequence of str, but never meant as one
        raise UserError("clients is a single text; give a sequence of ids.")
    alone = isinstance(clients, np.ndarray) or (
        isinstance(clients, Sequence)
        and not isinstance(next(iter(clients), 0), np.ndarray)
    )
    for piece in [clients] if alone else clients:
        yield from _checked(piece)


def _checked(piece: Any) -> Iterator[Numbers | list[str]]:
    if not isinstance(piece, np.ndarray):
        yield _texts(piece)
    elif piece.ndim != 1:
        raise UserError(f"clients has shape {piece.shape}; it must be (n,).")
    elif piece.dtype == np.uint64:
        yield list(map(str, piece.tolist()))
    elif piece.dtype.kind in "iu":
        yield piece.astype(np.int64, copy=False)
    else:
        for start in range(0, len(piece), BATCH):
            yield _texts(piece[start : start + BATCH].tolist())


def _texts(ids: Sequence[Any]) -> list[str]:
    found = [_text(each) for each in ids]
    if not {type(name) for name in found} <= {str}:
        raise UserError(
            "clients must be one-dimensional: whole numbers or text, every id given."
        )
    _check_text(found)
    return found


def _text(client: Any) -> Any:
    """Return one id as text in its one spelling; what is none is left to be refused."""
    if isinstance(client, float) and client.is_integer():
        return str(int(client))
    return normal(str(client)) if isinstance(client, str) else client


def _check_text(found: list[str]) -> None:
    """Refuse what a database or a CSV file could not hold apart."""
    try:
        whole = "".join(found).encode()
    except UnicodeEncodeError:
        raise UserError("a client id holds a character that is no text.") from None
    if "" in found or b"\0" in whole:
        raise UserError("a client id is empty or holds a zero byte.")


class _Numbers:
    """Whole numbers in the order of their decimal text."""

    def __init__(self, pieces: Sequence[Numbers]) -> None:
        ids = np.sort(np.concatenate(pieces))
        self._repeated = int(np.count_nonzero(ids[1:] == ids[:-1]))
        first = int(np.searchsorted(ids, 0))  # "-" stands before all digits
        for where, part in (
            (slice(first), ids[:first][::-1]),
            (slice(first, None), ids[first:]),
        ):
            ids[where] = part[np.argsort(_aligned(part), kind="stable")]
        self._ids = ids

    def repeated(self) -> int:
        return self._repeated

    def __iter__(self) -> Iterator[list[str]]:
        for start in range(0, len(self._ids), BATCH):
            yield list(map(str, self._ids[start : start + BATCH].tolist()))


def _aligned(ids: Numbers) -> NDArray[np.uint64]:
    """Return numbers moved to the left until all have as many digits.

    Where they are equal, as of 1 and 10, the smaller number is the shorter text: a
    stable sort of ascending numbers keeps them right.
    """
    made = np.empty(len(ids), dtype=np.uint64)
    for start in range(0, len(ids), BATCH):
        part = ids[start : start + BATCH]
        size = np.where(part < 0, ~part, part).astype(np.uint64)
        size += (part < 0).astype(np.uint64)
        digits = np.maximum(np.searchsorted(_POWERS, size, side="right"), 1)
        made[start : start + BATCH] = size * _POWERS[_DIGITS - digits]
    return made


class _Texts:
    """Ids of any kind, as text in the order of its code points."""

    def __init__(self, pieces: Sequence[Numbers | list[str]]) -> None:
        batches = (batch for piece in pieces for batch in _as_text(piece))
        if sum(map(len, pieces)) <= BATCH:
            self._few = sorted(name for batch in batches for name in batch)
            self._many: pa.ChunkedArray | None = None
            return
        import pyarrow as pa
        from pyarrow import compute

        arrays = [pa.array(batch, type=pa.large_string()) for batch in batches]
        whole = pa.chunked_array(arrays).combine_chunks()
        self._many = whole.take(compute.sort_indices(whole))

    def repeated(self) -> int:
        found, before = 0, None
        for batch in self:
            found += batch[0] == before
            found += sum(a == b for a, b in pairwise(batch))
            before = batch[-1]
        return found

    def __iter__(self) -> Iterator[list[str]]:
        if self._many is None:
            yield self._few
            return
        for start in range(0, len(self._many), BATCH):
            yield self._many.slice(start, BATCH).to_pylist()


def _as_text(piece: Numbers | list[str]) -> Iterator[list[str]]:
    if isinstance(piece, list):
        yield piece
        return
    for start in range(0, len(piece), BATCH):
        yield list(map(str, piece[start : start + BATCH].tolist()))
