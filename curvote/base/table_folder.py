"""Folders of Parquet files that are one table: flat, in partitions, or of Delta Lake.

Files are taken in the order of their names, so that the rows have one order. A folder
called ``year=2026`` is a column of the files in it. Of a Delta table the files of its
latest version count, whatever else lies beside them.

Names of files may tell somebody's value: they are in messages for the owner's terminal,
and in none that is kept.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from curvote.base.errors import Problem, UserError
from curvote.base.object_store import arrow_input, is_remote

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS: Final = (".parquet", ".pq")
_LOG: Final = "_delta_log"
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
# What a reader of a Delta table's files must know to read them rightly: the first is a
# type of Parquet, of the others it is looked at whether the table makes use of them.
_READABLE: Final = {"timestampNtz", "deletionVectors", "columnMapping"}
_MOST: Final = 10  # names that a message lists


@dataclass(frozen=True, eq=False)
class TablePart:
    """A file of a table, by its ``name`` below the folder.

    ``constants`` are its columns that are not in it: an Arrow scalar for each.
    """

    path: Path
    name: str
    constants: Mapping[str, Any]

    @contextmanager
    def open(self, buffer_size: int = 0) -> Iterator[Any]:
        """Open the file as a `pyarrow.parquet.ParquetFile`."""
        import pyarrow.parquet as pq

        # Without these two, the bytes of a row group are held as a whole.
        options = {"pre_buffer": False, "buffer_size": buffer_size}
        with pq.ParquetFile(arrow_input(self.path), **options) as file:
            yield file


@dataclass(frozen=True, eq=False)
class TableParts:
    """The files of a table in their order.

    ``stated`` is the schema of a Delta table: a column that was added later is null in
    files from before.
    """

    parts: tuple[TablePart, ...]
    stated: pa.Schema | None = None

    @cached_property
    def layout(self) -> str:
        """The names of the files and what they do not hold themselves, as JSON."""
        files = [
            [x.name, {n: [str(c.type), str(c)] for n, c in x.constants.items()}]
            for x in self.parts
        ]
        stated = [[field.name, str(field.type)] for field in self.stated or ()]
        return json.dumps([files, stated], sort_keys=True)

    def types(self, part: TablePart) -> list[tuple[str, Any]]:
        """Return name and type of each column of a part; a name may come twice."""
        with part.open() as file:
            inside = [(field.name, field.type) for field in file.schema_arrow]
        beside = [(name, scalar.type) for name, scalar in part.constants.items()]
        names = {name for name, _ in (*inside, *beside)}
        later = [(x.name, x.type) for x in self.stated or () if x.name not in names]
        return [*inside, *beside, *later]

    def batches(self, columns: list[str], rows: int, buffer: int) -> Iterator[Any]:
        """Yield the ``columns`` as record batches of so many ``rows`` at most."""
        import pyarrow as pa

        for part in self.parts:
            with part.open(buffer) as file:
                inside = {*file.schema_arrow.names}
                wanted = [name for name in columns if name in inside]
                for batch in file.iter_batches(batch_size=rows, columns=wanted):
                    n = batch.num_rows
                    arrays = [
                        _plain_text(batch[name])
                        if name in inside
                        else self._fill(part, name, n)
                        for name in columns
                    ]
                    yield pa.RecordBatch.from_arrays(arrays, columns)

    def _fill(self, part: TablePart, name: str, rows: int) -> Any:
        import pyarrow as pa

        if name in part.constants:
            return pa.repeat(part.constants[name], rows)
        return pa.nulls(rows, self.stated.field(name).type if self.stated else None)

    def row_places(self, rows: Iterable[int]) -> dict[int, str]:
        """Return where each row of the table (1 is the first) stands, in words."""
        places, begin = dict[int, str](), 0
        for part in self.parts:
            with part.open() as file:
                end = begin + file.metadata.num_rows
            here = [row for row in rows if begin < row <= end]
            places |= {row: f"row {row - begin} of {part.name}" for row in here}
            begin = end
        return places


def _plain_text(column: Any) -> Any:
    """Return texts that Delta's writers leave as views in the form of all others."""
    import pyarrow as pa

    views = pa.types.is_string_view(column.type)
    return column.cast(pa.string()) if views else column


def kind_of_type(type_: Any) -> str | None:
    """Return the kind of a column's type in words; None: it holds nothing."""
    from pyarrow import types

    if types.is_dictionary(type_):
        type_ = type_.value_type
    texts = types.is_string, types.is_large_string, types.is_string_view
    if any(holds(type_) for holds in texts):
        return "text"
    if types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_):
        return "a number"
    return None if types.is_null(type_) else str(type_)


def table_parts(path: Path) -> TableParts:
    """Return the files of the Parquet table at ``path``, a file or a folder.

    UserError: a folder without files, or with some that are not the table's; a Delta
    table that cannot be read rightly.
    """
    if not path.is_dir():
        return TableParts((TablePart(path, path.name, {}),))
    try:
        if (path / _LOG).is_dir():
            with _open_log(path) as log:
                table = _delta_parts(path, log)
        else:
            table = TableParts((*_listed_parts(path),))
    except OSError as error:  # it may name a partition
        words = f"{path} cannot be read as a folder of Parquet files"
        problem = Problem(f"{words}: {error}.", redacted=f"{words}.")
        raise UserError.several([problem]) from None
    if not table.parts:
        raise UserError(f"{path} holds no Parquet file.")
    return table


def _listed_parts(folder: Path) -> Iterator[TablePart]:
    """Yield the files below a folder, in partitions or not, sorted by name."""
    import pyarrow as pa

    parts, stray, strange = [], [], dict[str, None]()
    for path in _files_below(folder):
        *folders, name = relative = path.parts[len(folder.parts) :]
        pairs = [unquote(text).partition("=") for text in folders]
        if any(map(_is_hidden, relative)):
            continue
        constants = {
            column: pa.scalar(None if text == _NO_VALUE else text, pa.string())
            for column, _, text in pairs
        }
        if len(constants) < len(pairs) or not all(sign for _, sign, _ in pairs):
            strange["/".join(folders)] = None
        elif not (name.lower().endswith(ENDINGS) and path.is_file()):
            stray.append("/".join(relative))
        else:
            parts.append(TablePart(path, "/".join(relative), constants))
    wrong = {
        "folders that are no partition, as year=2026 is one": sorted(strange),
        "files that are not Parquet": sorted(stray),
    }
    problems = [_problem(folder, what, names) for what, names in wrong.items() if names]
    if problems:
        raise UserError.several(problems)
    yield from sorted(parts, key=lambda part: part.name)


def _files_below(folder: Path) -> Iterator[Path]:
    if is_remote(folder):
        yield from folder.rglob("*")
        return

    def refuse(error: OSError) -> None:
        raise error  # a folder that may not be read must not be left out

    for place, folders, names in os.walk(folder, followlinks=True, onerror=refuse):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        yield from (Path(place, name) for name in names)


def _is_hidden(name: str) -> bool:
    """Say whether a file or folder is no data: _SUCCESS, .part-0.parquet.crc."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _problem(folder: Path, what: str, names: list[str]) -> Problem:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    message = f"{folder}: {what} ({len(names)}): {', '.join(names[:_MOST])}{more}."
    redacted = f"{folder}: {what} ... (`curvote check` shows the rest)"
    return Problem(message, redacted=redacted)


# -------------------------------------------------------------------- Delta Lake


@contextmanager
def _open_log(table: Path) -> Iterator[Path]:
    """Give the folder with the log of a Delta table, brought here if it is away.

    So one client of the object store reads all, with one set of keys and patience.
    """
    if not is_remote(table):
        yield table
        return
    files = [file for file in (table / _LOG).iterdir() if file.is_file()]
    begins = [int(x[1]) for f in files if (x := _CHECKPOINT.fullmatch(f.name))]
    begin = max(begins, default=0)  # what is older is in the checkpoint
    with TemporaryDirectory(prefix="curvote-") as folder:
        log = Path(folder, _LOG)
        log.mkdir()
        for file in files:
            if file.name[:20].isdigit() and int(file.name[:20]) >= begin:
                (log / file.name).write_bytes(file.read_bytes())
        yield Path(folder)


def _delta_parts(folder: Path, log: Path) -> TableParts:
    import pyarrow as pa
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        table = DeltaTable(log.absolute())
        mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none")
        features = {*(table.protocol().reader_features or ())} - _READABLE
        files = pa.table(table.get_add_actions(flatten=True))
        partitions = table.metadata().partition_columns
        stated = pa.schema(table.schema())
    except (DeltaError, OSError, ValueError) as error:
        words, reason = f"{folder} cannot be read as a Delta table", f"{error}"
        problem = Problem(f"{words}: {reason.rstrip('.')}.", redacted=f"{words}.")
        raise UserError.several([problem]) from None
    try:
        deleted = pa.table(table.deletion_vectors()).num_rows > 0
    except (DeltaError, OSError, ValueError):
        deleted = True
    names = [unquote(name) for name in files["path"].to_pylist()]
    away = any("://" in x or x.startswith("/") or ".." in x.split("/") for x in names)
    wrong = {
        "deletion vectors: rows that are deleted are still in its files. Write them"
        " anew (in Spark: REORG TABLE ... APPLY (PURGE))": deleted,
        "column mapping: its files name the columns otherwise": mapped != "none",
        "files that lie elsewhere, as a shallow clone has them": away,
        f"what is not read here: {', '.join(sorted(features))}": bool(features),
    }
    reasons = [what for what, holds in wrong.items() if holds]
    if reasons:
        raise UserError.several(
            Problem(f"{folder} is a Delta table with {what}.") for what in reasons
        )
    parts = [
        TablePart(
            folder / name,
            name,
            {
                column: files[f"partition.{column}"][row].cast(
                    stated.field(column).type
                )
                for column in partitions
            },
        )
        for row, name in enumerate(names)
    ]
    return TableParts((*sorted(parts, key=lambda part: part.name),), stated)
