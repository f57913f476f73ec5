"""Schema of a user's own file: its kind, form, columns, classes and violations."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from curvote.base.classes import Classes
from curvote.base.errors import Problem, UserError, did_you_mean
from curvote.chain.settings import Strict
from curvote.data.columns import DISTINCT_CLASSES, EXPLICIT_CLASSES, check_one_way

EXAMPLES = 10
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


def _check_encoding(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise ValueError(
            "no encoding that Python knows, such as utf-8, cp1252"
        ) from None


class CsvForm(Strict):
    """The writing of a CSV file, as ``source:`` states it."""

    separator: Literal[",", ";", "\t", "|"] = ","
    decimal: Literal[".", ","] = "."
    encoding: Annotated[str, AfterValidator(_check_encoding)] = "utf-8"


PLAIN: Final = CsvForm()

Kind = Literal["csv", "parquet"]
_KINDS: dict[str, Kind] = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def label_text(value: object) -> object:
    """Return a label's text in a file, also where YAML reads 1 or true."""
    if isinstance(value, bool):
        return str(value).lower()
    integral = isinstance(value, float) and value.is_integer()
    return f"{value:.0f}" if integral else str(value) if value is not None else None


Text = Annotated[str, Field(min_length=1)]
LabelText = Annotated[
    str,
    BeforeValidator(label_text, str | int | float | bool),  # what a schema accepts
    Field(min_length=1),
]


def file_kind(path: Path) -> Kind:
    """Return the kind of ``path`` by its ending; UserError for others."""
    for ending, kind in _KINDS.items():
        if path.name.lower().endswith(ending):
            return kind
    raise UserError(
        f"{path} is neither CSV nor Parquet: it must end in {', '.join(_KINDS)}. Export"
        " it as CSV, with commas between the columns."
    )


def check_columns(
    path: Path, wanted: Sequence[str], names: Sequence[str], form: CsvForm = PLAIN
) -> None:
    """Refuse a file in which a wanted column is absent or repeated."""
    refuse_other_separator(path, names, form)
    problems = []
    for name in wanted:
        count = names.count(name)
        if not count:
            words = f"{path} has no column {name!r}."
            # A file without a header has somebody's row there.
            hint = did_you_mean(name, names)
            problems.append(Problem(f"{words}{hint}", redacted=words))
        elif count > 1:
            words = f"{path} has {count} columns named {name!r}; one is right."
            problems.append(Problem(words))
    if problems:
        raise UserError.several(problems)


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
    with path.open("rb") as file:
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
def _open_rows(path: Path, form: CsvForm) -> Iterator[Any]:
    """Open a CSV file as rows of texts: for its header, and where its rows stand."""
    letters = "utf-8-sig" if form.encoding == "utf-8" else form.encoding
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rt", encoding=letters, newline="") as stream:
        yield csv.reader(stream, delimiter=form.separator)


def row_lines(path: Path, form: CsvForm, rows: Collection[int]) -> dict[int, int]:
    """Return the line of the file on which each row begins; the header is row 0."""
    lines: dict[int, int] = {}
    number, line, last = -1, 1, max(rows, default=-1)
    with _open_rows(path, form) as read:
        for cells in read:
            number += bool(cells)  # an empty line is no row
            if cells and number in rows:
                lines[number] = line
            line = read.line_num + 1
            if number >= last:
                break
    return lines


Example = str | tuple[int, str]


class Violations:
    """Violations in the file at ``path``: by kind a count and examples.

    An example is a text, or a row (1 is the first below a header) and what stands
    there; told is the line of the file. Where many cells are wrong, those of the rarest
    shape come first: three words among thousands of decimal commas are the culprits.
    """

    def __init__(self, path: Path, form: CsvForm = PLAIN) -> None:
        self.path, self.form = path, form
        # Of each kind a count, and by shape of the cell how many and the first ones.
        self._counts: dict[str, tuple[int, dict[str, tuple[int, list[Example]]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

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
            shapes[shape] = (many + 1, [*first, example][:EXAMPLES])

    def check(self) -> None:
        """Raise one UserError with all violations so far, if any."""
        if self._counts:
            chosen: dict[str, list[Example]] = {}
            for what, (_, shapes) in self._counts.items():
                # Of each shape its share, the rarest shapes first.
                ranked = sorted(shapes.values(), key=lambda quota: quota[0])[:EXAMPLES]
                quota = max(1, EXAMPLES // max(len(ranked), 1))
                chosen[what] = [x for _, first in ranked for x in first[:quota]]
            describe = self._example_formatter(
                [x for few in chosen.values() for x in few]
            )
            raise UserError.several(
                _problem(what, count, [*map(describe, chosen[what])]).after(
                    f"{self.path}: "
                )
                for what, (count, _) in self._counts.items()
            )

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


def _problem(what: str, count: int, examples: list[str]) -> Problem:
    """Return a violation as text; a record stores no cell of it."""
    redacted = f"{what} ... (`curvote check` shows the rest)"
    if not examples:
        return Problem(f"{what} ({count}).", redacted=redacted)
    more = f" and {count - len(examples)} more" if count > len(examples) else ""
    listed = ", ".join(examples)
    cures = [f" {cure}" for sign, cure in _CURES.items() if re.search(sign, listed)]
    words = f"{what} ({count}): {listed}{more}.{''.join(cures)}"
    return Problem(words, redacted=redacted)


def check_labels(
    violations: Violations, column: str, texts: Collection[str], positive: str
) -> None:
    """Count a violation unless there are two labels, one ``positive``."""
    if len(texts) != 2 or positive not in texts:
        near = next((k for k in texts if k.lower() == positive.lower()), positive)
        cure = [f'so write positive: "{near}", in quotes'] * (near != positive)
        if len(texts) > 2:
            cure = ["with more than two, write classes: [a, b, c] instead of positive"]
        what = f"column {column!r} needs two labels, one of them {positive!r}; it has"
        violations.add(what, max(len(texts), 1), [*map(repr, sorted(texts)), *cure])


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
        import pyarrow.parquet as pq

        return [*pq.read_schema(path).names]


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
        reason = str(error).split("\n")[0].rstrip(".")
        words = f"{path} cannot be read as {file_kind(path)}"
        raise _reader_error(words, reason) from None


def _reader_error(words: str, reason: object) -> UserError:
    """Return an error with a reader's reason, redacted where it may quote."""
    return UserError.several([Problem(f"{words}: {reason}.", redacted=f"{words}.")])


def _parquet_batches(
    path: Path, columns: list[str], _violations: Violations
) -> Iterator[Any]:
    import pyarrow.parquet as pq

    # Without these two, the bytes of a row group are held as a whole.
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=_BYTES) as file:
        check_columns(path, columns, file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
            yield batch.select(columns)


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

    check_columns(path, columns, _read_header(path, form), form)
    texts = dict.fromkeys(columns, pa.string())
    letters = "utf8" if form.encoding == "utf-8" else form.encoding
    reader = arrow.open_csv(
        path,
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
    with _open_rows(path, form) as read:
        names = next((cells for cells in read if cells), None)
    if names is None:
        raise UserError(f"{path} cannot be read as csv: it is empty.")
    return list(names)


class Labelled(Strict):
    """Label settings of ``source:``: ``positive``, or the list ``classes``.

    With ``positive`` there are two, and the file says what the other one is.
    """

    positive: LabelText | None = None
    classes: (
        Annotated[tuple[LabelText, ...], EXPLICIT_CLASSES, DISTINCT_CLASSES] | None
    ) = None

    @model_validator(mode="after")
    def _check_one_way(self) -> Labelled:
        check_one_way(self, "positive")
        if self.positive is None and self.classes is None:
            message = "name the classes, or the positive one of two"
            raise PydanticCustomError("missing", message)
        return self

    @property
    def places(self) -> dict[str, int]:
        """Return the place of each class that is listed."""
        return {name: place for place, name in enumerate(self.classes or ())}

    @property
    def unlisted_text(self) -> str:
        """Return the words for a label that is not listed."""
        return f"is none of the classes {', '.join(self.classes or ())}"


def classes(parameters: Labelled) -> Classes | None:
    """Return the listed classes; None: the file names the second."""
    return Classes(parameters.classes) if parameters.classes else None


def resolve_classes(
    violations: Violations, column: str, texts: Collection[str], parameters: Labelled
) -> tuple[str, ...]:
    """Return the classes, negative first where there are two that are not listed.

    Raises:
        UserError: everything that is wrong so far, or labels ``texts`` that are not
            two, one of them positive.
    """
    positive = parameters.positive
    if positive is not None:
        check_labels(violations, column, texts, positive)
    violations.check()
    if positive is None:
        return parameters.classes or ()
    return next(name for name in texts if name != positive), positive
