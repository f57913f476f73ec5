"""Stages: their tables, who may read them, and the random streams they draw from.

One stream for each stage, purpose, repetition and block of clients, so that results do
not depend on workers or batch size. The first names have published numbers; changing
one changes every stored result. Any other name has the number that its SHA-256 gives,
above all published ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import Entropy, SeededEntropy, StudyStreams, SystemEntropy
from curvote.base.errors import InternalError

# Kinds of columns; beside them any name of a plain Arrow type, such as "int64".
VECTOR: Final = "vector"
MATRIX: Final = "matrix"
BITS: Final = "bits"
TEXT: Final = "text"
FILE: Final = "file"
ROWS: Final = "rows"
# Text of a few words that stage functions see as codes.
Category = tuple[str, ...]
Kind = str | Category

# Who may read a table, and what its rows may stand for there.
SIDES: Final[Mapping[str, tuple[str, ...]]] = {
    "client": ("client", "record"),
    "client (study)": ("client", "record", "score", "classifier"),
    "server": ("message", "classifier", "server", "arrival", "number", "question"),
    "public": ("constant", "classifier", "number", "record"),
}
# The sides of the tables that a stage of a side may make: in "A -> B" those of B.
STAGE_SIDES: Final[Mapping[str, tuple[str, ...]]] = {
    "client": ("client", "public"),
    "client (study)": ("client (study)", "public"),
    "client -> server": ("server", "public"),
    "server": ("server", "public"),
    "server -> servers": ("server", "public"),
}


@dataclass(frozen=True)
class Table:
    """Table of a stage: its columns, side and unit, beside its index.

    ``columns`` maps a name to a kind: ``VECTOR`` (n, d), ``MATRIX`` (n, p, q), ``BITS``
    (n, d) of booleans, ``TEXT``, ``FILE`` (a model as bytes), ``ROWS`` (whole numbers,
    (n, ...), of one kind that depends on the data), a tuple of categories, or an Arrow
    type. ``unit`` is what a row stands for; one that contradicts the ``side``
    is an InternalError. What is ``optional`` may be missing, for some rows or for all.
    ``shared`` tables may hold rows of all repetitions. ``when`` says of settings
    whether the table is there at all.
    """

    name: str
    columns: Mapping[str, Kind] = field(hash=False)
    side: str = "server"
    unit: str = "message"
    shared: bool = False
    optional: tuple[str, ...] = ()
    when: Callable[[Any], bool] = lambda settings: True

    def __post_init__(self) -> None:
        if self.unit not in SIDES.get(self.side, ()):
            allowed = ", ".join(SIDES.get(self.side, ())) or "nothing: no such side"
            raise InternalError(
                f"table {self.name}: a row is a {self.unit}, but a table of side"
                f" {self.side!r} holds {allowed}"
            )


Columns = dict[str, NDArray[Any]]
Rows = dict[str, Columns]
Params = Mapping[str, Any]
Metadata = dict[str, Any]
# Which repetition: a number for each part of the index; () for rows that all share.
Place = tuple[int, ...]
# The words of a release, by what they are for and the number of its shard or bucket.
EntropySource = Callable[[str, int], Entropy]

# Parts of a stage, and what their functions' names add to its own. All that these reach
# is in its key.
STAGE_PARTS: Final = {
    "body": "",
    "portions": "_portions",
    "batch": "_batch",
    "metadata": "_metadata",
    "shared_rows": "_shared_rows",
    "shard_count": "_shard_count",
    "shard": "_shard",
    "join": "_join",
    "shared": "_shared",
    "task": "_task",
}
SHARED: Place = ()
# After the @ of an input: the value before on a successive axis.
PREVIOUS: Final = "previous"


def stage_functions(place: str) -> SimpleNamespace:
    """Return the functions that the stage at "module:name" has, by part."""
    module, _, name = place.partition(":")
    defined = vars(import_module(module))
    names = {part: name + ending for part, ending in STAGE_PARTS.items()}
    functions_by_part = {
        part: defined[function_name]
        for part, function_name in names.items()
        if function_name in defined
    }
    return SimpleNamespace(**functions_by_part)


class Source(Protocol):
    """Stored artifact as a stage reads it."""

    @property
    def metadata(self) -> Metadata:
        """JSON metadata that the stage recorded which made it."""

    def columns(
        self, table: str, place: Any, only: Sequence[str] | None = None
    ) -> Columns:
        """Return the columns of one repetition, or of the rows that it shares.

        Where ``only`` names some, no others are read.
        """

    def pieces(self, table: str) -> Iterator[Columns]:
        """Yield the rows that all repetitions share, some at a time."""

    def count(self, table: str, place: Any) -> int:
        """Return how many shards the rows of one repetition are: at least one."""

    def shards(
        self, table: str, place: Any, only: Sequence[str] | None = None
    ) -> Iterator[Columns]:
        """Yield one repetition's columns in order, 65,536 rows at a time."""

    def shard(
        self, table: str, place: Any, number: int, only: Sequence[str] | None = None
    ) -> Columns:
        """Return the columns of one shard: rows from 65,536 ``number`` on."""


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
        return generator(self.params["seed"], *name)

    def noise(self, n: int, stage: str = "") -> Iterator[tuple[slice, StudyStreams]]:
        """Yield (clients, noise) for blocks of up to 65,536 of ``n`` clients."""
        seed = self.params["seed"]
        return client_noise(seed, stage or self.stage, self.number, n)


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
    settings only, ``libraries`` are those whose versions count beside the usual ones
    (``extras`` for some settings only), ``files`` returns the public files that
    settings name beside the source's, whose content counts,
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
    extras: Callable[[Any], tuple[str, ...]] = lambda _: ()
    files: Callable[[Any], tuple[str, ...]] = lambda _: ()
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


def split_buckets(scattered: Scattered) -> Iterator[Rows]:
    """Yield the rows of each bucket, in the order that they had."""
    order = np.argsort(scattered.buckets, kind="stable")
    sizes = np.bincount(scattered.buckets, minlength=scattered.count)
    for part in np.split(order, np.cumsum(sizes)[:-1]):
        yield {
            table: {name: values[part] for name, values in columns.items()}
            for table, columns in scattered.rows.items()
        }


def stack_rows(parts: Sequence[Rows]) -> Rows:
    """Return the rows of several parts, one part after the other."""
    return {
        table: {n: np.concatenate([p[table][n] for p in parts]) for n in columns}
        for table, columns in parts[0].items()
    }


def make_rows(functions: SimpleNamespace, context: StageContext) -> Iterator[Rows]:
    """Yield the tables of one repetition of a stage, whole or in portions."""
    if hasattr(functions, "portions"):
        yield from functions.portions(context)
    elif hasattr(functions, "shard"):
        yield make_all_shards(functions, context)
    else:
        yield functions.body(context)


def make_all_shards(functions: SimpleNamespace, context: StageContext) -> Rows:
    """Return a repetition's tables, made shard after shard in memory."""
    if hasattr(functions, "shared"):
        context = replace(context, shared=functions.shared(context))
    shard_facts = context.inputs, context.params, context.metadata
    count = functions.shard_count(*shard_facts, context.place)
    shards = [functions.shard(context, number) for number in range(count)]
    if not isinstance(shards[0], Scattered):
        return stack_rows(shards)
    arrived = zip(*(split_buckets(scattered) for scattered in shards), strict=True)
    joined = [
        functions.join(context, bucket, stack_rows(parts))
        for bucket, parts in enumerate(arrived)
    ]
    return stack_rows(joined)


CLIENT_BLOCK: Final = 65_536
# Their numbers are published: a new name has none, or stands behind all others.
_STAGE_NAMES: Final = (
    "shared ingest project privatize train evaluate aggregate report exchange"
    " reevaluate combine refine"
)
_PURPOSE_NAMES: Final = (
    "split simulate feature_noise label_noise vote draw shuffle majority pool histogram"
)
STAGES: Final = {name: n for n, name in enumerate(_STAGE_NAMES.split())}
PURPOSES: Final = {name: n for n, name in enumerate(_PURPOSE_NAMES.split(), start=1)}
_UNPUBLISHED = 1 << 31


def seed_sequence(
    seed: int, stage: str, purpose: str, number: int, block: int = 0
) -> np.random.SeedSequence:
    """Return the seed sequence of one stream; ``number`` is the repetition's."""
    names = _stream_number(stage, STAGES), _stream_number(purpose, PURPOSES)
    return np.random.SeedSequence(seed, spawn_key=(*names, number, block))


def generator(
    seed: int, stage: str, purpose: str, number: int, block: int = 0
) -> np.random.Generator:
    """Return a numpy generator for draws that protect nobody (splits, resampling)."""
    return np.random.default_rng(seed_sequence(seed, stage, purpose, number, block))


def client_noise(
    seed: int, stage: str, number: int, n: int
) -> Iterator[tuple[slice, StudyStreams]]:
    """Yield (clients, their noise) for each block of 65,536 clients of ``n``.

    Where there is no client there is one block, of nobody.
    """
    for block, start in enumerate(range(0, max(n, 1), CLIENT_BLOCK)):
        part = slice(start, min(start + CLIENT_BLOCK, n))
        yield part, block_noise(seed, stage, number, block)


def block_noise(seed: int, stage: str, number: int, block: int) -> StudyStreams:
    """Return the noise of one block of clients."""

    def make(purpose: str) -> SeededEntropy:
        return SeededEntropy(seed_sequence(seed, stage, purpose, number, block))

    return StudyStreams(make)


def _stream_number(name: str, published: Mapping[str, int]) -> int:
    """Return the published number of a name, or the derived one."""
    number = published.get(name)
    return derived_number(name) if number is None else number


@cache
def derived_number(name: str) -> int:
    """Return the number in [2^31, 2^32) of a name without published one."""
    digest = hashlib.sha256(name.encode()).digest()
    return _UNPUBLISHED | int.from_bytes(digest[:4], "big")
