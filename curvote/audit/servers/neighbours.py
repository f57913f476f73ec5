"""Small tables and their neighbours: how far one record moves the sums.

Tables hold records from a small set: corners, the centre and one place more, in each
class. So one-class tables and tables of one record are among them, and every table
that differs from such a one in one record.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curvote.protocols.message import ClientData
from curvote.strict_json import canonical_json, parse_json
from curvote.transfer.task import Task

Steps = NDArray[np.int64]
# A table of so many equal records, and one other: where a mean hardly moves.
LARGE_SIZE = 500
SIZES = (1, 2, 3, 4)
# Numbers of all tables of one size: larger ones are left out.
MOST_NUMBERS = 4_000_000
MOST_CLASSES = 3
_EXTRA_PLACE = 0.3


class WorstNeighbours(NamedTuple):
    """Largest squared distance of neighbours' sums, and such neighbours.

    ``third`` differs from both in the record in which they differ.
    """

    square: int
    first: ClientData
    second: ClientData
    third: ClientData

    @property
    def tables(self) -> tuple[ClientData, ClientData, ClientData]:
        """The three tables, each a neighbour of the others."""
        return self.first, self.second, self.third


def record_pool(task: Task) -> ClientData:
    """Return the records that tables are made of."""
    lows, highs = np.zeros(task.d), np.ones(task.d)
    turned = (np.arange(task.d) % 2).astype(float)
    places = [lows, highs, turned, 1 - turned, highs / 2, np.full(task.d, _EXTRA_PLACE)]
    places = list({place.tobytes(): place for place in places}.values())
    kinds = min(len(task.classes), MOST_CLASSES)
    cube = np.repeat(places, kinds, axis=0)
    return make_table(task, cube, np.tile(np.arange(kinds), len(places)))


def make_table(
    task: Task, cube: NDArray[np.float64], codes: NDArray[Any]
) -> ClientData:
    """Return a server's table of records (n, d), in [0, 1]^d or beyond."""
    lower, upper = np.array([feature[1:] for feature in task.features]).T
    z = lower + cube * (upper - lower)
    return ClientData(z, z, codes.astype(np.float64))


def table_sizes(message: Any, task: Task) -> list[int]:
    """Return the table sizes whose neighbours are all examined, and a large one."""
    m, length = len(record_pool(task).z), message.count_numbers(task)
    few = [n for n in SIZES if math.comb(m + n - 1, n) * length <= MOST_NUMBERS]
    return [*few, LARGE_SIZE]


def worst_neighbours(message: Any, task: Task, n: int) -> WorstNeighbours:
    """Return the neighbours of ``n`` records whose sums are furthest apart."""
    document = task.to_json() | {"servers": {"one": [1.0, None]}, "number": 1}
    return _search_worst(message, canonical_json(document), n)


@lru_cache(maxsize=256)
def _search_worst(message: Any, document: bytes, n: int) -> WorstNeighbours:
    """Search all neighbours of ``n`` records for the furthest pair of sums."""
    task = Task.from_json(parse_json(document, len(document)))
    records = record_pool(task)
    furthest = max(
        (
            (*_furthest_rows(sums), rest)
            for rest, sums in _neighbour_families(message, task, n)
        ),
        key=lambda row: row[0],
    )
    square, (i, j), rest = furthest
    k = next(row for row in range(len(records.z)) if row not in {i, j})
    return WorstNeighbours(
        square, *(records.subset(np.array([*rest, at])) for at in (i, j, k))
    )


def _neighbour_families(
    message: Any, task: Task, n: int
) -> Iterator[tuple[tuple[int, ...], Steps]]:
    """Yield n - 1 records, and their sums with each record of the pool."""
    records = record_pool(task)
    m = len(records.z)
    cache: dict[tuple[int, ...], Steps] = {}

    def sums(rows: tuple[int, ...]) -> Steps:
        if rows not in cache:
            cache[rows] = message.sums(task, records.subset(np.array(rows)))
        return cache[rows]

    few = n <= SIZES[-1]
    every = combinations_with_replacement(range(m), n - 1)
    for rest in every if few else (((i,) * (n - 1)) for i in range(m)):
        yield rest, np.stack([sums(tuple(sorted((*rest, i)))) for i in range(m)])


def _furthest_rows(sums: Steps) -> tuple[int, tuple[int, int]]:
    """Return the largest squared distance of rows, and the two rows."""
    apart = sums[:, np.newaxis] - sums
    squares = np.einsum("ijk,ijk->ij", apart, apart)
    i, j = np.unravel_index(int(squares.argmax()), squares.shape)
    return int(squares[i, j]), (int(i), int(j))
