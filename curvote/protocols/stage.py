"""What a stage is: a declaration for the plan, and two functions on plain columns.

A stage's module has ``facts(inputs, params)``, computed once, and
``block(replicates, inputs, params, facts)``, which returns for each table one
`Columns` for each replicate. Both are pure: same arguments, same result. Where rows
that all replicates share may be too many for the memory, it also has
``pieces(inputs, params, facts)``, which yields tables a part of the rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

Columns = dict[str, NDArray[Any]]
Tables = dict[str, list[Columns]]
Params = Mapping[str, Any]
Facts = dict[str, Any]


class Source(Protocol):
    """A stored artifact as a stage sees it."""

    @property
    def facts(self) -> Facts:
        """The JSON facts that the stage which made it recorded."""
        ...

    def columns(self, table: str, replicate: int) -> Columns:
        """Return the columns of one replicate (or of the rows that all share)."""
        ...

    def pieces(self, table: str) -> Iterator[Columns]:
        """Yield the rows that all replicates share, some at a time."""
        ...


Inputs = Mapping[str, Source]


@dataclass(frozen=True)
class Stage:
    """One step of a chain.

    ``axes`` are the cell coordinates that split it ("epsilon", "learner"); ``params``
    the dotted configuration keys it reads (its key holds just these); ``plugins`` maps
    a registry module to the configuration key that names the entry. ``message`` names
    what leaves the clients here, in production. ``side`` says who may read the tables,
    and so in which root of the store they stand; a name has one side in all protocols.
    """

    name: str
    module: str
    inputs: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    plugins: tuple[tuple[str, str], ...] = ()
    tables: tuple[str, ...] = ()
    side: str = "client"
    message: str = ""


@dataclass(frozen=True)
class Release:
    """One message that leaves a client, and what it spends.

    ``epsilon`` is a number or words; ``study_only`` marks what is drawn for comparison
    and what no real deployment would ask for.
    """

    who: str
    what: str
    mechanism: str
    epsilon: float | str
    detail: str = ""
    study_only: bool = False
