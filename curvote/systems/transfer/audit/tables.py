"""Small tables and their neighbours: how far one record moves the sums.

Tables hold records from a small set: corners, the centre and one place more, in each
class. So one-class tables and tables of one record are among them, and every table
that differs from such a one in one record.
"""

import math
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft, optimize, special

from curvote.base.classes import Classes
from curvote.messages.message import ClientData
from curvote.systems.transfer.method.task import (
    FORMS,
    PROTOCOL,
    Feature,
    Level,
    Task,
    form,
)
from curvote.wire.strict_json import canonical_json, parse_json

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
    m = len(records.z)

    @cache
    def sums(rows: tuple[int, ...]) -> Steps:
        values: Steps = message.sums(task, records.subset(np.array(rows)))
        return values

    furthest: int = -1
    best: tuple[tuple[int, ...], int, int] = (), 0, 0
    few = n <= SIZES[-1]
    every = combinations_with_replacement(range(m), n - 1)
    for rest in every if few else (((i,) * (n - 1)) for i in range(m)):
        # All tables of these n - 1 records and one of the pool: [m, length].
        family = np.stack([sums(tuple(sorted((*rest, i)))) for i in range(m)])
        apart = family[:, np.newaxis] - family
        squares = np.einsum("ijk,ijk->ij", apart, apart)
        if squares.max() > furthest:
            furthest = int(squares.max())
            best = (rest, *divmod(int(squares.argmax()), m))
    rest, i, j = best
    k = next(row for row in range(m) if row not in {i, j})
    return WorstNeighbours(
        furthest, *(records.subset(np.array([*rest, at])) for at in (i, j, k))
    )


# The law of the loss is laid out on so many points at most.
MOST_POINTS = 1 << 20
REACH = 12.0  # standard deviations


def gaussian_delta(epsilon: float, deviation: float) -> float:
    """Return the delta of Gaussian noise at epsilon (Balle & Wang 2018, (6))."""
    ends = deviation / 2 - epsilon / deviation, -deviation / 2 - epsilon / deviation
    first, second = special.log_ndtr(ends)
    return float(math.exp(first) * -math.expm1(min(epsilon + second - first, 0.0)))


def largest_deviation(epsilon: float, delta_limit: float) -> float:
    """Return the largest deviation within (epsilon, delta)."""
    ends = -20.0, math.log(2 * epsilon + 80)
    log_deviation = optimize.brentq(
        lambda log: gaussian_delta(epsilon, math.exp(log)) - delta_limit, *ends
    )
    return math.exp(log_deviation)


def least_epsilon(deviation: float, delta_limit: float) -> float:
    """Return the least epsilon at this delta."""
    if gaussian_delta(0.0, deviation) <= delta_limit:
        return 0.0
    end = deviation * (deviation / 2 + 40)
    root = optimize.brentq(
        lambda e: gaussian_delta(e, deviation) - delta_limit, 0.0, end, xtol=1e-12
    )
    return float(root)


def difference_delta(difference: Steps, sigma: float, epsilon: float) -> float:
    """Return the delta between two vectors under discrete Gaussian noise.

    Exactly where all entries are 0 or of one size c: then the loss is a function of
    the sum of as many draws. Else by the rounding of continuous noise of variance
    sigma^2 - 16 (`gaussian_noise.loss_deviation`).
    """
    sizes = np.unique(np.abs(difference[difference != 0]))
    terms = int(np.count_nonzero(difference))
    points = 2 * REACH * sigma * math.sqrt(terms)
    if sizes.size == 1 and points <= MOST_POINTS:
        size = int(sizes[0])
        reach = math.ceil(REACH * sigma * math.sqrt(terms))
        width = int(fft.next_fast_len(2 * reach + 1, real=True))
        at = np.arange(width)
        k = np.where(at > width // 2, at - width, at)
        weights = np.exp(-(k**2) / (2 * sigma * sigma))
        turned = fft.rfft(weights / weights.sum())
        law = np.maximum(fft.irfft(turned**terms, width), 0)
        loss = (2 * size * k + terms * size**2) / (2 * sigma * sigma)
        return float(law @ -np.expm1(np.minimum(epsilon - loss, 0)))
    length = math.sqrt(int(np.dot(difference, difference)))
    deviation = length / math.sqrt(sigma * sigma - 16)
    return gaussian_delta(epsilon, deviation) if length else 0.0


FEATURES = (Feature("a", 0.0, 1.0), Feature("b", -2.0, 2.0))
CLASSES = Classes(("no", "yes"))
SERVER = "one"
# The records of a table in which every pair of neighbours is looked at.
RECORDS = 4
LEVELS = (0.5, 2.0, 10.0)
# n^-2, and a stated one.
DELTAS = (None, 1e-4)
# Few numbers, so that one release draws quickly; of two cells to a grid, all hashed.
_CELLS = {"grids": 64, "order": 2, "cells": 256}
# Corners of [-1, 1]^2 are cut to a length of 1.4: opposite ones are orthogonal.
_MOMENTS = {"cut": 1.4}
_KERNEL: dict[str, Any] = {"grids": 8, "bandwidths": [1.0, 0.5], "cells": 64}
_EXAMPLE_PARAMS: Mapping[str, Mapping[str, Any]] = {
    "cells": _CELLS,
    "moments": _MOMENTS,
    "moments_joint": _MOMENTS | {"arm": "joint"},
    "cells_sums": _CELLS | {"centring": "sums"},
    "moments_sums": _MOMENTS | {"arm": "joint", "centring": "sums"},
    "kernel": _KERNEL,
    "kernel_half": _KERNEL | {"centre": "half"},
    "kernel_waves": _KERNEL | {"kernel": "gaussian"},
}


def example_names() -> list[str]:
    """Return ``transfer.NAME`` for each form and arm, without forms of studies."""
    plain = [name for name in FORMS if not form(name).study]
    return [f"{PROTOCOL}.{name}" for name in dict.fromkeys([*_EXAMPLE_PARAMS, *plain])]


def example_task(name: str, level: Level, **more: Any) -> Task:
    """Return the task of ``transfer.NAME`` for one server; ``more`` are parameters.

    ``NAME@K`` is about so many classes, 2 without.
    """
    key, _, count = name.rpartition(".")[2].partition("@")
    classes = Classes(map(str, range(int(count)))) if count else CLASSES
    params = {**_EXAMPLE_PARAMS.get(key, {}), **more}
    kind = key if key in FORMS else key.partition("_")[0]
    return Task(FEATURES, classes, {SERVER: level}, kind, params)
