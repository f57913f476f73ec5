"""Stages, the tables that they make, and the shards of a repetition.

A stage's module has one of three functions, all pure: same arguments, same result.

- ``one(here)`` returns the tables of one repetition;
- ``portions(here)`` yields them a part of the rows at a time, where they may be many;
- ``block(many)`` those of several at once, one entry each, where a batch pays.

``facts(inputs, params)`` is computed once and stored beside the tables; without it
there are none. Where rows that all repetitions share may be too many for the memory,
``pieces(inputs, params, facts)`` yields the tables a part of the rows at a time.

Where those of one repetition may be too many, a module works by shard instead:

- ``shards(inputs, params, facts, place)`` returns how many there are;
- ``shard(here, number)`` returns the tables of one: they stand one after the other, or
  it is `Scattered` over buckets, and ``joined(here, bucket, rows)`` returns the tables
  of one bucket from the rows that reached it, in the order of the shards;
- ``shared(here)`` returns arrays that all shards of a repetition read as
  ``here.shared``, if there is any such function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from curvote.chain import streams
from curvote.chain.tables import STAGE_SIDES, Table
from curvote.entropy import Entropy, StudyStreams, SystemEntropy
from curvote.errors import InternalError

Columns = dict[str, NDArray[Any]]
Rows = dict[str, Columns]
Params = Mapping[str, Any]
Metadata = dict[str, Any]
# Which repetition: a number for each part of the index; () for rows that all share.
Place = tuple[int, ...]
# The words of a release, by what they are for and the number of its shard or bucket.
EntropySource = Callable[[str, int], Entropy]

# What a run may call of a stage's module: all that these reach is in its key.
FUNCTIONS: Final = (
    *("one", "portions", "block", "facts", "pieces"),
    *("shards", "shard", "joined", "shared"),
)
SHARED: Place = ()
# After the @ of an input: the value before on a successive axis.
PREVIOUS: Final = "previous"


class Source(Protocol):
    """Stored artifact as a stage reads it."""

    @property
    def metadata(self) -> Metadata:
        """JSON metadata that the stage recorded which made it."""
        ...

    def columns(
        self, table: str, place: Any, only: Sequence[str] | None = None
    ) -> Columns:
        """Return the columns of one repetition, or of the rows that it shares.

        Where ``only`` names some, no others are read.
        """
        ...

    def pieces(self, table: str) -> Iterator[Columns]:
        """Yield the rows that all repetitions share, some at a time."""
        ...

    def count(self, table: str, place: Any) -> int:
        """Return how many shards the rows of one repetition are: at least one."""
        ...

    def shards(
        self, table: str, place: Any, only: Sequence[str] | None = None
    ) -> Iterator[Columns]:
        """Yield one repetition's columns in order, 65,536 rows at a time."""
        ...

    def shard(
        self, table: str, place: Any, number: int, only: Sequence[str] | None = None
    ) -> Columns:
        """Return the columns of one shard: rows from 65,536 ``number`` on."""
        ...


Inputs = Mapping[str, Source]


def system_entropy(purpose: str, number: int) -> Entropy:
    """Return the operating system's entropy, which no shard shares."""
    del purpose, number
    return SystemEntropy()


@dataclass(frozen=True)
class Scattered:
    """Rows of a shard, each with the bucket that it goes to.

    ``buckets`` holds as many numbers as each table has rows.
    """

    rows: Rows
    buckets: NDArray[np.int64]
    count: int


@dataclass(frozen=True)
class StageContext:
    """Context of a stage: one repetition and everything that it may read.

    ``sizes`` are those of the index, such as (replicates, servers). ``entropy_source``
    are what a release draws from; a test may give others, that it can give again.
    """

    stage: str
    place: Place
    sizes: Place
    inputs: Inputs
    params: Params
    metadata: Metadata
    entropy_source: EntropySource = system_entropy
    shared: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """Number of the repetition, which names its random streams."""
        total = 0
        for part, size in zip(self.place, self.sizes, strict=False):
            total = total * size + part
        return total

    def rows(
        self, stage: str, table: str, only: Sequence[str] | None = None
    ) -> Columns:
        """Return what an input holds for this repetition: all columns or some."""
        return self.inputs[stage].columns(table, self.place, only)

    def shards(
        self, stage: str, table: str, only: Sequence[str] | None = None
    ) -> Iterator[Columns]:
        """Yield the columns of an input shard by shard, in order."""
        return self.inputs[stage].shards(table, self.place, only)

    def at_place(self, place: Place) -> StageContext:
        """Return another repetition of the same stage."""
        return replace(self, place=place)

    def generator(
        self, purpose: str, stage: str = "", block: int = 0
    ) -> np.random.Generator:
        """Return a generator for draws that protect nobody: splits, resampling.

        The stream is this stage's, unless another one's is named: common numbers.
        """
        name = (stage or self.stage, purpose, self.number, block)
        return streams.generator(self.params["seed"], *name)

    def noise(self, n: int, stage: str = "") -> Iterator[tuple[slice, StudyStreams]]:
        """Yield (clients, noise) for blocks of up to 65,536 of ``n`` clients."""
        seed = self.params["seed"]
        return streams.client_noise(seed, stage or self.stage, self.number, n)


@dataclass(frozen=True)
class Stage:
    """One step of a chain: its inputs, settings, tables and side.

    ``inputs`` are names of stages: NAME@AXIS is one for each value of an axis that the
    stage itself has not, called NAME@VALUE; NAME@previous is that of the value before.
    ``axes`` are the coordinates of a cell that split it; ``params`` the dotted
    configuration keys it reads (its key holds just these); ``plugins`` maps a registry
    to the configuration key that names the entry, "" where any may be taken.
    ``message`` names what leaves the clients here, in production; ``collected`` is the
    module that takes over where it comes by envelope. ``index`` is what it is repeated
    over, where that is less than all of its system's: the first of them. ``when`` says
    of settings and the values of a cell's axes whether the stage is there at all (no
    other may read one that can be missing), ``also`` returns keys that count for some
    settings only, ``libraries`` are those whose versions count beside the usual ones,
    ``block`` is how many repetitions are computed together at most, where each takes
    long, and ``raw`` says that it reads the source's files. ``side`` says who may read
    the tables, and so in which root of the store they stand; a name has one side in all
    systems. A table of another side is an InternalError.
    """

    name: str
    module: str
    inputs: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    plugins: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()
    side: str = "client"
    message: str = ""
    collected: str = ""
    index: tuple[str, ...] | None = None
    when: Callable[[Any, Mapping[str, Any]], bool] = lambda settings, values: True
    also: Callable[[Any], tuple[str, ...]] = lambda _: ()
    libraries: tuple[str, ...] = ()
    block: int = 0
    raw: bool = False

    def __post_init__(self) -> None:
        if self.side not in STAGE_SIDES:
            raise InternalError(f"stage {self.name}: there is no side {self.side!r}")
        for table in self.tables:
            if table.side not in STAGE_SIDES[self.side]:
                raise InternalError(
                    f"stage {self.name} of side {self.side!r} cannot make table"
                    f" {table.name} of side {table.side!r}"
                )
