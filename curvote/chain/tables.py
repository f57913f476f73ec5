"""Tables: their columns, who may read them, and the unit of a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from curvote.errors import InternalError

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
            allowed_units = (
                ", ".join(SIDES.get(self.side, ())) or "nothing: no such side"
            )
            raise InternalError(
                f"table {self.name}: a row is a {self.unit}, but a table of side"
                f" {self.side!r} holds {allowed_units}"
            )
