"""One reader of tables: files in blocks, cells by column, violations told together.

A small table is read whole as cells (`read_cells`), a CSV file without any table
library, as a client's process needs it. A large one is read in Arrow's record batches
(`read_batches`), whose cells `curvote.data.tables.cells` understands. Where a file is
wrong is counted in `Violations`, which tell everything at once.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import numpy as np
import pydantic
from numpy.typing import NDArray

from curvote.base import object_store, validate
from curvote.base.errors import Problem, UserError, did_you_mean
from curvote.base.object_store import connection, is_remote, open_bytes, open_source
from curvote.base.table_folder import table_parts

if TYPE_CHECKING:
    import pandas as pd


MAX_LISTED = 10  # lines or examples that a problem names, of however many
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "?")
_SHAPES: Final = 1_000  # of wrong cells that are told apart
_ROWS = 2**17
_BYTES = 2**22
# What may stand between columns, and its name.
SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars (|)"}
_LINES = 10_000  # whose letters are looked at before a file is read
DECIMAL_COMMA: Final = r"[+-]?\d+,\d+"
# What a cell tells of how the file was written, and what to write under `source:`.
_CURES: Final = {
    rf"'{DECIMAL_COMMA}'": 'Numbers with decimal commas: write decimal: ",".',
    r"'\d{1,2}[./]\d{1,2}[./]\d{4}": "Day first: for a column of times write"
    ' dates: "%d.%m.%Y %H:%M", as they stand there.',
}
Kind = Literal["csv", "parquet"]
_KINDS: Final[dict[str, Kind]] = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Table: TypeAlias = "Cells | pd.DataFrame"
Example = str | tuple[int, str]


def _check_encoding(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise ValueError(
            "no encoding that Python knows, such as utf-8, cp1252"
        ) from None


class CsvForm(pydantic.BaseModel):
    """The writing of a CSV file, as ``source:`` states it."""

    model_config = pydantic.ConfigDict(
        extra="forbid", frozen=True, validate_default=True
    )

    separator: Literal[",", ";", "\t", "|"] = ","
    decimal: Literal[".", ","] = "."
    encoding: Annotated[str, pydantic.AfterValidator(_check_encoding)] = "utf-8"


PLAIN: Final = CsvForm()


def file_kind(path: Path) -> Kind:
    """Return the kind of ``path`` by its ending (a folder: Parquet), or a UserError."""
    if path.is_dir():
        return "parquet"
    for ending, kind in _KINDS.items():
        if path.name.lower().endswith(ending):
            return kind
    raise UserError(
        f"{path} is neither CSV nor Parquet: it must end in {', '.join(_KINDS)}. Export"
        " it as CSV, with commas between the columns."
    )


@contextmanager
def open_rows(path: Path, form: CsvForm = PLAIN, **dialect: Any) -> Iterator[Any]:
    """Open a CSV file, zipped or not, as a `csv.reader` of its rows."""
    letters = "utf-8-sig" if form.encoding == "utf-8" else form.encoding
    with open_bytes(path) as file:
        stream = gzip.GzipFile(fileobj=file) if path.suffix.lower() == ".gz" else file
        with io.TextIOWrapper(stream, encoding=letters, newline="") as text:
            yield csv.reader(text, delimiter=form.separator, **dialect)


def strict_rows(path: Path) -> list[list[str]]:
    """Return the rows of a small CSV file in its plain form, blanks before cells out.

    Raises:
        OSError, ValueError, csv.Error: it cannot be read, or is none.
    """
    with open_rows(path, skipinitialspace=True, strict=True) as rows:
        return [*rows]


def row_lines(path: Path, form: CsvForm, rows: Collection[int]) -> dict[int, int]:
    """Return the line of the file on which each row begins; the header is row 0."""
    lines: dict[int, int] = {}
    number, line, last = -1, 1, max(rows, default=-1)
    with open_rows(path, form) as read:
        for cells in read:
            number += bool(cells)  # an empty line is no row
            if cells and number in rows:
                lines[number] = line
            line = read.line_num + 1
            if number >= last:
                break
    return lines


class Violations:
    """Violations in the file at ``path``, told together by `check`.

    Of each kind there are a count and examples. An example is a text, or a row (1 is
    the first below a header) and what stands there; told is the line of the file. Where
    many cells are wrong, those of the rarest shape come first: three words among
    thousands of decimal commas are the culprits.
    """

    def __init__(self, path: Path, form: CsvForm = PLAIN) -> None:
        self.path, self.form = path, form
        self._notes: list[Problem] = []
        # Of each kind a count, and by shape of the cell how many and the first ones.
        self._counts: dict[str, tuple[int, dict[str, tuple[int, list[Example]]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._counts or self._notes)

    def note(self, words: str, *, redacted: str = "") -> None:
        """Add one problem in its own words."""
        message = words if words.endswith("?") else f"{words}."
        self._notes.append(Problem(message, redacted=redacted))

    def note_rows(self, table: Table, wrong: Flags, words: str) -> None:
        """Add a problem of the rows that are ``wrong``, if any, with their lines."""
        if wrong.any():
            self.note(f"{words} in {describe_lines(table, wrong)}")

    def note_columns(self, names: Sequence[str], wanted: Iterable[str]) -> bool:
        """Add the wanted columns that are absent or repeated; return whether any."""
        wrong = [name for name in wanted if names.count(name) != 1]
        for name in wrong:
            if count := names.count(name):
                self.note(f"there are {count} columns named {name!r}; one is right")
            else:
                words = f"there is no column {name!r}."
                # A file without a header has somebody's row there.
                hint = did_you_mean(name, names)
                self.note(f"{words}{hint}".removesuffix("."), redacted=words)
        return bool(wrong)

    def add(self, what: str, count: int, examples: Iterable[Example] = ()) -> None:
        """Count a violation; keep the first ten examples of each shape."""
        if not count:
            return
        before, shapes = self._counts.get(what, (0, {}))
        self._counts[what] = (before + count, shapes)
        for example in examples:
            text = example if isinstance(example, str) else example[1]
            shape = re.sub(r"\d+", "0", text)
            if shape not in shapes and len(shapes) >= _SHAPES:
                continue
            many, first = shapes.get(shape, (0, []))
            shapes[shape] = (many + 1, [*first, example][:MAX_LISTED])

    def check(self) -> None:
        """Raise one UserError with all violations so far, if any."""
        if not self:
            return
        chosen: dict[str, list[Example]] = {}
        for what, (_, shapes) in self._counts.items():
            # Of each shape its share, the rarest shapes first.
            ranked = sorted(shapes.values(), key=lambda quota: quota[0])[:MAX_LISTED]
            quota = max(1, MAX_LISTED // max(len(ranked), 1))
            chosen[what] = [x for _, first in ranked for x in first[:quota]]
        describe = self._example_formatter([x for few in chosen.values() for x in few])
        counted = (
            _counted_problem(what, count, [*map(describe, chosen[what])])
            for what, (count, _) in self._counts.items()
        )
        place = f"{self.path}: "
        raise UserError.several(x.after(place) for x in (*self._notes, *counted))

    def _example_formatter(self, examples: list[Example]) -> Callable[[Example], str]:
        """Return a function that says where an example stands, and what."""
        rows = {entry[0] for entry in examples if not isinstance(entry, str)}
        lines: dict[int, int] = {}
        if rows and self.path.is_file() and file_kind(self.path) == "csv":
            with suppress(UnicodeError, csv.Error, OSError):
                lines = row_lines(self.path, self.form, rows)

        def format_example(example: Example) -> str:
            if isinstance(example, str):
                return example.rstrip()
            row, text = example
            place = f"line {lines[row]}" if row in lines else f"row {row}"
            text = text if "{}" in text else f"{{}} {text}"
            return text.replace("{}", place, 1).rstrip()

        return format_example


def _counted_problem(what: str, count: int, examples: list[str]) -> Problem:
    """Return a violation as text; a record stores no cell of it."""
    redacted = f"{what} ... (`curvote check` shows the rest)"
    if not examples:
        return Problem(f"{what} ({count}).", redacted=redacted)
    more = f" and {count - len(examples)} more" if count > len(examples) else ""
    listed = ", ".join(examples)
    cures = [f" {cure}" for sign, cure in _CURES.items() if re.search(sign, listed)]
    words = f"{what} ({count}): {listed}{more}.{''.join(cures)}"
    return Problem(words, redacted=redacted)


def describe_lines(table: Table, wrong: Flags) -> str:
    """Return the numbers of the wrong lines or rows, as text."""
    if isinstance(table, Cells):
        unit, numbers = table.unit, table.places
    elif table.index.name in {"line", "row"}:
        unit, numbers = str(table.index.name), table.index.to_numpy()
    else:
        unit, numbers = "row", np.arange(1, len(table) + 1)
    places = numbers[wrong]
    listed = ", ".join(map(str, places[:MAX_LISTED]))
    more = f" and {len(places) - MAX_LISTED} more" if len(places) > MAX_LISTED else ""
    return f"{unit}{'s' * (len(places) > 1)} {listed}{more}"


# ------------------------------------------------------------- small tables, whole


@dataclass(frozen=True, eq=False)
class Cells:
    """A small table: its ``columns``, and as many cells (n,) for each.

    ``places`` (n,) count lines of a CSV file, whose first is the header, or rows of
    Parquet, as ``unit`` says. Cells of CSV are texts.
    """

    columns: list[str]
    cells: list[list[Any]]
    places: NDArray[np.int64]
    unit: str

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, name: str) -> list[Any]:
        return self.cells[self.columns.index(name)]


def read_table(path: Path) -> pd.DataFrame:
    """Return the small table at ``path`` as a DataFrame.

    Its index is called as places are counted. UserError: as of `read_cells`.
    """
    import pandas as pd

    with _open_small(path) as suffix:
        if suffix == ".parquet":
            return _parquet_frame(path)
        cells = _csv_cells(path)
    lines = pd.Index(cells.places, name=cells.unit)
    rows = [*zip(*cells.cells, strict=True)]
    return pd.DataFrame(rows, lines, cells.columns, dtype=str)


def read_cells(path: Path) -> Cells:
    """Return the cells of the small table at ``path``.

    UserError: no such file, of another kind, or no table.
    """
    with _open_small(path) as suffix:
        if suffix == ".csv":
            return _csv_cells(path)
        frame = _parquet_frame(path)
        cells = [column.tolist() for _, column in frame.items()]
        return Cells([*frame.columns], cells, np.arange(1, len(frame) + 1), "row")


@contextmanager
def _open_small(path: Path) -> Iterator[str]:
    """Give the ending of a small table; a failure to read it is a UserError."""
    suffix = validate.one_of((".csv", ".parquet"), suffix=path.suffix.lower())
    try:
        yield suffix
    except (UserError, ModuleNotFoundError):
        raise
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # noqa: BLE001 - a reader's errors are of any kind
        words = f"{type(error).__name__}, {error}".strip().replace("\n", " ")
        raise UserError(f"{path} is no such table: {words}.") from None


def _csv_cells(path: Path) -> Cells:
    rows = strict_rows(path)
    if not rows:
        raise ValueError("it is empty")
    header, width = [name.strip() for name in rows[0]], len(rows[0])
    if width == 1 and any(mark in header[0] for mark in ";\t"):
        raise UserError(
            f"{path} has one column: its fields are parted by semicolons or tabs."
            " Export it with commas and decimal points."
        )
    lines = [line for line, row in enumerate(rows[1:], 2) if any(row)]
    for line in lines:
        if len(rows[line - 1]) > width:
            raise ValueError(f"line {line} has more cells than the header, {width}")
    cells = [rows[line - 1] + [""] * (width - len(rows[line - 1])) for line in lines]
    columns = [[row[place] for row in cells] for place in range(width)]
    return Cells(header, columns, np.array(lines, dtype=np.int64), "line")


def _parquet_frame(path: Path) -> pd.DataFrame:
    import pandas as pd

    frame = pd.read_parquet(open_source(path))
    frame.columns = [str(name).strip() for name in frame.columns]
    return frame.set_index(pd.RangeIndex(1, len(frame) + 1, name="row"))


@dataclass(frozen=True)
class Column:
    """A column of a small table: numbers, or texts that are all among ``categories``.

    ``missing`` are the texts that stand for no value.
    """

    name: str
    categories: Sequence[str] | None = None
    missing: Collection[str] = ()


def read_column(table: Table, column: Column, violations: Violations) -> Array:
    """Return a column as finite numbers, or as places of its categories, (n,).

    NaN where a value is missing, or wrong, which is noted.
    """
    cells, categories = [*table[column.name]], column.categories
    values = parse_cells(cells, categories)
    values = np.where(np.isfinite(values), values, np.nan)
    wrong = np.isnan(values)
    if column.missing:
        absent = np.array([cell_text(x) in column.missing for x in cells], dtype=bool)
        values, wrong = np.where(absent, np.nan, values), wrong & ~absent
    what = f"none of {', '.join(categories)}" if categories else "no finite number"
    violations.note_rows(table, wrong, f"{column.name}: {what}")
    return values


def read_numbers(table: Table, names: Sequence[str], violations: Violations) -> Array:
    """Return columns of finite numbers (n, d); any other cell is noted: NaN."""
    matrix = np.empty((len(table), len(names)))
    for place, name in enumerate(names):
        matrix[:, place] = read_column(table, Column(name), violations)
    return matrix


def read_texts(table: Table, name: str, violations: Violations) -> list[str]:
    """Return a column as trimmed text; an empty cell is noted."""
    texts = [*map(cell_text, table[name])]
    empty = np.array([not text for text in texts], dtype=bool)
    violations.note_rows(table, empty, f"{name}: nothing")
    return texts


def repeated_texts(texts: Sequence[str]) -> Flags:
    """Return which texts stood there before, (n,); nothing is repeated by nothing."""
    earlier_texts, again = {""}, np.zeros(len(texts), dtype=bool)
    for place, text in enumerate(texts):
        again[place] = text in earlier_texts and text != ""
        earlier_texts.add(text)
    return again


def parse_cells(cells: Iterable[Any], categories: Sequence[str] | None = None) -> Array:
    """Return cells as numbers, or as places among categories (n,); NaN for none."""
    if categories is None:
        return np.array([*map(_parse_number, cells)], dtype=np.float64)
    place = {text: float(code) for code, text in enumerate(categories)}
    codes = [place.get(cell_text(cell), np.nan) for cell in cells]
    return np.array(codes, dtype=np.float64)


def _parse_number(cell: Any) -> float:
    try:
        if isinstance(cell, str) and (not cell.isascii() or "_" in cell):
            return np.nan
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def cell_text(cell: Any) -> str:
    """Return a cell as trimmed text, "" where nothing stands there."""
    absent = cell is None or (isinstance(cell, float) and cell != cell)  # noqa: PLR0124
    return "" if absent else str(cell).strip()


def indicator_name(name: str, text: str) -> str:
    """Return the name of the indicator column for one category."""
    return f"{name} = {text}"


# --------------------------------------------------------- large tables, in batches


def read_batches(
    path: Path, columns: list[str], violations: Violations
) -> Iterator[Any]:
    """Yield the ``columns`` of ``path`` as record batches, never all in memory.

    Cells of CSV are texts, written in the form of ``violations``. A row of another
    length ends the reading of it: later rows would be counted wrongly.

    Raises:
        UserError: a file that cannot be read, a missing column, rows of other lengths.
    """
    read = _parquet_batches if file_kind(path) == "parquet" else _csv_batches
    with _open_readable(path, violations.form):
        yield from read(path, columns, violations)


def column_names(path: Path, form: CsvForm = PLAIN) -> list[str]:
    """Return the names of the columns of ``path``; UserError: it cannot be read."""
    with _open_readable(path, form):
        if file_kind(path) == "csv":
            return _read_header(path, form)
        return [name for name, _ in table_parts(path)[0].kinds()]


def refuse_other_separator(
    path: Path, names: Sequence[str], form: CsvForm = PLAIN
) -> None:
    """Refuse a CSV that looks like one of another form."""
    marks = (m for m in SEPARATORS if m != form.separator)
    mark = next((m for m in marks if len(names) == 1 and m in names[0]), "")
    if mark and file_kind(path) == "csv":
        mark_text = {"\t": "\\t"}.get(mark, mark)
        message = (
            f"its fields are parted by {SEPARATORS[mark]}. Write under source:"
            f' separator: "{mark_text}" (`curvote init --table {path.name}` finds it).'
        )
        words = f"{path} has one column, {names[0]!r}: {message}"
        raise UserError.several([Problem(words, redacted=f"{path}: {message}")])


def _refuse_other_encoding(path: Path, form: CsvForm, most: int | None = None) -> None:
    """Refuse (UserError) a CSV of another encoding in its first lines, or in any."""
    # In bytes: a line of UTF-16 or of another wide encoding does not end in one.
    wide = len("\n".encode(form.encoding)) > 1
    if path.suffix.lower() == ".gz" or wide:
        return
    with open_bytes(path) as file:
        for number, line in enumerate(islice(file, most), 1):
            try:
                line.decode(form.encoding)
            except UnicodeDecodeError:
                raise UserError(
                    f"{path}: line {number} is not {form.encoding.upper()}. Write under"
                    " source: encoding: cp1252, which spreadsheets write, or what else"
                    " the file is."
                ) from None  # it quotes a byte of a cell


@contextmanager
def convert_column(path: Path, name: str, column: Any) -> Iterator[None]:
    """Turn pyarrow's failure to convert a column into a UserError."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowException as error:
        words = f"{path}: column {name!r} ({column.type}) is of no use as it stands"
        raise _reader_error(words, error) from None


@contextmanager
def _open_readable(path: Path, form: CsvForm) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeError, csv.Error) as error:
        if file_kind(path) == "csv" and not isinstance(error, OSError | EOFError):
            _refuse_other_encoding(path, form)
        if isinstance(error, UnicodeError):  # it quotes a byte of a cell
            raise UserError(f"{path} is not {form.encoding.upper()}.") from None
        if isinstance(error, OSError) and is_remote(path):
            raise object_store.store_error(error, path) from None
        reason = str(error).split("\n")[0].rstrip(".")
        words = f"{path} cannot be read as {file_kind(path)}"
        raise _reader_error(words, reason) from None


def _reader_error(words: str, reason: object) -> UserError:
    """Return an error with a reader's reason, redacted where it may quote."""
    return UserError.several([Problem(f"{words}: {reason}.", redacted=f"{words}.")])


def _check_columns(
    names: Sequence[str], columns: list[str], violations: Violations
) -> None:
    refuse_other_separator(violations.path, names, violations.form)
    absent = Violations(violations.path)
    absent.note_columns(names, columns)
    absent.check()


def _parquet_batches(
    path: Path, columns: list[str], violations: Violations
) -> Iterator[Any]:
    parts, wrong = table_parts(path), Violations(path)
    layouts = [part.kinds() for part in parts]
    names = [[name for name, _ in layout] for layout in layouts]
    absent = [x for x in columns if all(some.count(x) != 1 for some in names)]
    wrong.note_columns(names[0], absent)
    for name in (x for x in columns if x not in absent):
        first = ""
        for part, layout in zip(parts, layouts, strict=True):
            kinds = [kind for column, kind in layout if column == name]
            several = "there twice" if kinds else "missing"
            kind = kinds[0] if len(kinds) == 1 else several
            first = first or kind
            if kind and kind != first:
                words = f"column {name!r} is {first} in some files, but not in all"
                wrong.add(words, 1, [f"{kind} in {part.name}"])
    wrong.check()
    for part in parts:
        yield from part.batches(columns, _ROWS, _BYTES)


def _csv_batches(
    path: Path, columns: list[str], violations: Violations
) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow

    form, refused = violations.form, []

    def refuse_row(row: Any) -> str:
        what = f"lines without {row.expected_columns} fields"
        violations.add(what, 1, [(row.number - 1, f"{{}} has {row.actual_columns}")])
        refused.append(row.number)
        return "skip"

    _check_columns(_read_header(path, form), columns, violations)
    texts = dict.fromkeys(columns, pa.string())
    letters = "utf8" if form.encoding == "utf-8" else form.encoding
    reader = arrow.open_csv(
        connection().open_input_stream(path.bucket_key) if is_remote(path) else path,
        # Several threads know no numbers of lines.
        arrow.ReadOptions(use_threads=False, block_size=_BYTES, encoding=letters),
        arrow.ParseOptions(
            delimiter=form.separator,
            newlines_in_values=True,
            invalid_row_handler=refuse_row,
        ),
        arrow.ConvertOptions(column_types=texts, include_columns=columns),
    )
    try:
        for batch in reader:
            if refused:
                break
            yield batch
    finally:
        # A thread of Arrow's reads ahead. Where the process ends before it, that calls
        # back into an interpreter that is gone, and aborts: so wait for it.
        with suppress(pa.ArrowException, OSError, UnicodeError):
            for _ in reader:
                pass
        reader.close()
    if refused:
        violations.check()


def _read_header(path: Path, form: CsvForm) -> list[str]:
    _refuse_other_encoding(path, form, _LINES)
    with open_rows(path, form) as read:
        names = next((cells for cells in read if cells), None)
    if names is None:
        raise UserError(f"{path} cannot be read as csv: it is empty.")
    return list(names)
