"""Folders of Parquet files that are one table: flat, in partitions, or of Delta Lake.

A folder called ``year=2026`` is a column of the files in it. Names of files may tell
somebody's value: messages for the owner's terminal hold them, and nothing that is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import unquote

from curvote.base.errors import Problem, UserError
from curvote.base.object_store import arrow_place, is_remote

_ENDINGS: Final = (".parquet", ".pq")
_LOG: Final = "_delta_log"
_HIDDEN: Final = re.compile(r"(^|/)(\.|_[^/=]*(/|$))")  # but a column may be _year
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
# Types of Arrow that hold the same: a writer takes any of them, file by file.
_KINDS: Final = {
    "text": r"(dictionary<values=)?(large_)?string.*",
    "a number": r"u?int\d+|halffloat|float|double|decimal.*",
    "": "null",
}


@dataclass(frozen=True, eq=False)
class TablePart:
    """A file of a table, by its ``name`` below the folder; "": the table is a file.

    ``constants`` are columns that are not in it, an Arrow scalar for each. A null one
    may be in it all the same: a Delta table's column was added at some time.
    """

    table: Path
    name: str
    constants: Mapping[str, Any]

    def open(self, buffer_size: int = 0) -> Any:
        """Return the file as a `pyarrow.parquet.ParquetFile`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        # Without these two, the bytes of a row group are held as a whole.
        options = {"pre_buffer": False, "buffer_size": buffer_size}
        place, path = arrow_place(self.table / self.name)
        try:
            return pq.ParquetFile(place.open_input_file(path), **options)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"{self.name} {error}".strip()) from None

    def kinds(self) -> list[tuple[str, str]]:
        """Return name and kind of each column, "" where it holds nothing."""
        with self.open() as file:
            types = [(field.name, field.type) for field in file.schema_arrow]
        names = {name for name, _ in types}
        constants = self.constants.items()
        types += [(n, x.type) for n, x in constants if x.is_valid or n not in names]
        return [(name, _kind_of_type(str(type_))) for name, type_ in types]

    def batches(self, columns: list[str], rows: int, buffer: int) -> Iterator[Any]:
        """Yield the ``columns`` as record batches of so many ``rows`` at most."""
        import pyarrow as pa

        with self.open(buffer) as file:
            inside = [name for name in columns if name in file.schema_arrow.names]
            fixed = {x: self.constants[x] for x in columns if x not in inside}
            # A Delta table's writer leaves texts as views.
            view, text = pa.string_view(), pa.string()
            for batch in file.iter_batches(batch_size=rows, columns=inside):
                n = batch.num_rows
                cells = [
                    pa.repeat(fixed[x], n) if x in fixed else batch[x] for x in columns
                ]
                cells = [x.cast(text) if x.type == view else x for x in cells]
                yield pa.RecordBatch.from_arrays(cells, columns)


def _kind_of_type(name: str) -> str:
    return next((x for x, names in _KINDS.items() if re.fullmatch(names, name)), name)


def table_parts(path: Path) -> list[TablePart]:
    """Return the files of the Parquet table at ``path``, of a folder sorted by name.

    UserError: a folder without files, or with some that are not the table's; a Delta
    table that cannot be read rightly.
    """
    if not path.is_dir():
        return [TablePart(path, "", {})]
    try:
        listing = _delta_parts if (path / _LOG).is_dir() else _listed_parts
        parts = sorted(listing(path), key=lambda part: part.name)
    except OSError as error:
        raise _refusal(path, "cannot be read as a table", error) from None
    if not parts:
        raise UserError(f"{path} holds no Parquet file.")
    return parts


def _refusal(path: Path, words: str, reason: object) -> UserError:
    """Return an error whose reason may name somebody's value."""
    problem = Problem(f"{path} {words}: {reason}.", redacted=f"{path} {words}.")
    return UserError.several([problem])


def _listed_parts(folder: Path) -> Iterator[TablePart]:
    """Yield the files of a folder, without those like _SUCCESS or .part-0.crc."""
    import pyarrow as pa
    from pyarrow import fs

    strange, (place, base) = set(), arrow_place(folder)
    for info in place.get_file_info(fs.FileSelector(base, recursive=True)):
        name = info.path.removeprefix(base).strip("/")
        *folders, file = name.split("/")
        if info.type == fs.FileType.Directory or _HIDDEN.search(name):
            continue
        pairs = [unquote(text).partition("=") for text in folders]
        values = {column: None if x == _NO_VALUE else x for column, _, x in pairs}
        if len(values) < len(pairs) or not all(sign for _, sign, _ in pairs):
            strange.add(f"{'/'.join(folders)} is no partition like year=2026")
        elif not (info.is_file and file.lower().endswith(_ENDINGS)):
            strange.add(f"{name} is not Parquet")
        else:
            texts = {column: pa.scalar(x, pa.string()) for column, x in values.items()}
            yield TablePart(folder, name, texts)
    if strange:
        listed = [*sorted(strange)[:10], *["and more"] * (len(strange) > 10)]
        raise _refusal(folder, "holds what is no part of a table", ", ".join(listed))


def _delta_parts(folder: Path) -> Iterator[TablePart]:
    """Yield the files of the latest version of a Delta table."""
    import pyarrow as pa
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError
    from pyarrow import fs

    try:
        with TemporaryDirectory() as copy:
            if is_remote(folder):  # one client reads all, with one set of keys
                away, name = arrow_place(folder / _LOG)
                Path(copy, _LOG).mkdir()
                fs.copy_files(name, f"{copy}/{_LOG}", away, fs.LocalFileSystem())
            table = DeltaTable(copy if is_remote(folder) else folder.absolute())
        about, files = table.metadata(), pa.table(table.get_add_actions(flatten=True))
        columns = {field.name: field.type for field in pa.schema(table.schema())}
    except (DeltaError, OSError, ValueError) as error:
        raise _refusal(folder, "cannot be read as a Delta table", error) from None
    # A type of Parquet; whatever else is stated alters how files are to be read.
    features = {*(table.protocol().reader_features or ())} - {"timestampNtz"}
    if about.configuration.get("delta.columnMapping.mode", "none") != "none":
        features.add("columnMapping")
    names = [unquote(name) for name in files["path"].to_pylist()]
    if any("://" in x or x.startswith("/") or ".." in x.split("/") for x in names):
        features.add("files of another table (a shallow clone)")
    if features:
        raise UserError(
            f"{folder} is a Delta table with {', '.join(sorted(features))}, which would"
            " be read wrongly. Write a copy without (deleted rows leave the files by"
            " REORG TABLE ... APPLY (PURGE), then DROP FEATURE deletionVectors)."
        )
    nulls = {name: pa.scalar(None, type_) for name, type_ in columns.items()}
    for row, name in enumerate(names):
        split = {x: files[f"partition.{x}"][row] for x in about.partition_columns}
        yield TablePart(folder, name, nulls | split)
