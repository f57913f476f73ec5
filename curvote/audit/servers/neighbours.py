"""The sums of all neighbours of small tables, in whole numbers: what one record moves.

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

from curvote.protocols.message import Known
from curvote.strict_json import canonical, parse
from curvote.transfer.task import Task

Steps = NDArray[np.int64]
# A table of so many equal records, and one other: where a mean hardly moves.
MANY = 500
SIZES = (1, 2, 3, 4)
# Numbers of all tables of one size: larger ones are left out.
MOST_NUMBERS = 4_000_000
MOST_CLASSES = 3
_PLACE = 0.3


class Worst(NamedTuple):
    """The largest squared distance of neighbours' sums, and neighbours so far apart.

    ``third`` differs from both in the record in which they differ.
    """

    square: int
    one: Known
    other: Known
    third: Known

    @property
    def tables(self) -> tuple[Known, Known, Known]:
        """The three tables, each a neighbour of the others."""
        return self.one, self.other, self.third


def pool(task: Task) -> Known:
    """Return the records that tables are made of."""
    lows, highs = np.zeros(task.d), np.ones(task.d)
    turned = (np.arange(task.d) % 2).astype(float)
    places = [lows, highs, turned, 1 - turned, highs / 2, np.full(task.d, _PLACE)]
    places = list({each.tobytes(): each for each in places}.values())
    kinds = min(len(task.classes), MOST_CLASSES)
    cube = np.repeat(places, kinds, axis=0)
    return known(task, cube, np.tile(np.arange(kinds), len(places)))


def known(task: Task, cube: NDArray[np.float64], codes: NDArray[Any]) -> Known:
    """Return a table of records (n, d), in [0, 1]^d or beyond, as a server has it."""
    lower, upper = np.array([each[1:] for each in task.features]).T
    z = lower + cube * (upper - lower)
    return Known(z, z, codes.astype(np.float64))


def sizes(message: Any, task: Task) -> list[int]:
    """Return the sizes of tables all neighbours of which are looked at, and a large."""
    m, length = len(pool(task).z), message.numbers(task)
    few = [n for n in SIZES if math.comb(m + n - 1, n) * length <= MOST_NUMBERS]
    return [*few, MANY]


def worst(message: Any, task: Task, n: int) -> Worst:
    """Return the neighbours of ``n`` records whose sums are furthest apart."""
    stated = task.to_json() | {"servers": {"one": [1.0, None]}, "number": 1}
    return _worst(message, canonical(stated), n)


@lru_cache(maxsize=256)
def _worst(message: Any, stated: bytes, n: int) -> Worst:
    task = Task.from_json(parse(stated, len(stated)))
    records = pool(task)
    found = max(
        ((*_furthest(sums), rest) for rest, sums in _families(message, task, n)),
        key=lambda each: each[0],
    )
    square, (i, j), rest = found
    k = next(each for each in range(len(records.z)) if each not in {i, j})
    return Worst(square, *(records.of(np.array([*rest, at])) for at in (i, j, k)))


def _families(
    message: Any, task: Task, n: int
) -> Iterator[tuple[tuple[int, ...], Steps]]:
    """Yield n - 1 records, and the sums of them with each record of the pool."""
    records = pool(task)
    m = len(records.z)
    kept: dict[tuple[int, ...], Steps] = {}

    def sums(rows: tuple[int, ...]) -> Steps:
        if rows not in kept:
            kept[rows] = message.sums(task, records.of(np.array(rows)))
        return kept[rows]

    few = n <= SIZES[-1]
    every = combinations_with_replacement(range(m), n - 1)
    for rest in every if few else (((i,) * (n - 1)) for i in range(m)):
        yield rest, np.stack([sums(tuple(sorted((*rest, i)))) for i in range(m)])


def _furthest(sums: Steps) -> tuple[int, tuple[int, int]]:
    """Return the largest squared distance of rows, and the two rows."""
    apart = sums[:, np.newaxis] - sums
    squares = np.einsum("ijk,ijk->ij", apart, apart)
    i, j = np.unravel_index(int(squares.argmax()), squares.shape)
    return int(squares[i, j]), (int(i), int(j))
