"""A user's own file: its kind, its columns, and all that is wrong with it at once."""

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

from pydantic import AfterValidator, BeforeValidator, Field

from curvote.chain.settings import Strict
from curvote.errors import Problem, UserError, did_you_mean

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


def _encoding(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise ValueError(
            "no encoding that Python knows, such as utf-8, cp1252"
        ) from None


class CsvForm(Strict):
    """How a CSV file is written: what ``source:`` says of it; Parquet needs none."""

    separator: Literal[",", ";", "\t", "|"] = ","
    decimal: Literal[".", ","] = "."
    encoding: Annotated[str, AfterValidator(_encoding)] = "utf-8"


PLAIN: Final = CsvForm()

Kind = Literal["csv", "parquet"]
_KINDS: dict[str, Kind] = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def label_text(value: object) -> object:
    """Return the text that a label has in a file: YAML reads 1 and true for it."""
    if isinstance(value, bool):
        return str(value).lower()
    whole = isinstance(value, float) and value.is_integer()
    return f"{value:.0f}" if whole else str(value) if value is not None else None


LabelText = Annotated[
    str,
    BeforeValidator(label_text, str | int | float | bool),  # what a schema accepts
    Field(min_length=1),
]


def kind(path: Path) -> Kind:
    """Return what ``path`` is by its ending; another ending is a UserError."""
    found = next(
        (k for end, k in _KINDS.items() if path.name.lower().endswith(end)), None
    )
    if found is None:
        known = ", ".join(_KINDS)
        raise UserError(
            f"{path} is neither CSV nor Parquet: it must end in {known}. Export it as"
            " CSV, with commas between the columns."
        )
    return found


def check_columns(
    path: Path, wanted: Sequence[str], found: Sequence[str], form: CsvForm = PLAIN
) -> None:
    """Raise a UserError that lists every wanted column that is not there just once."""
    refuse_other_separator(path, found, form)
    problems = [
        _not_one(path, name, found) for name in wanted if found.count(name) != 1
    ]
    if problems:
        raise UserError.several(problems)


def _not_one(path: Path, name: str, found: Sequence[str]) -> Problem:
    if name in found:
        words = f"{path} has {found.count(name)} columns named {name!r}; one is right."
        return Problem(words)
    words = f"{path} has no column {name!r}."
    # A file without a header has somebody's row there.
    return Problem(f"{words}{did_you_mean(name, found)}", kept=words)


def refuse_other_separator(
    path: Path, found: Sequence[str], form: CsvForm = PLAIN
) -> None:
    """Refuse (UserError) a CSV whose only column looks like several of another form."""
    others = (m for m in SEPARATORS if m != form.separator)
    mark = next((m for m in others if len(found) == 1 and m in found[0]), "")
    if mark and kind(path) == "csv":
        shown = {"\t": "\\t"}.get(mark, mark)
        said = (
            f"its fields are parted by {SEPARATORS[mark]}. Write under source:"
            f' separator: "{shown}" (`curvote init --table {path.name}` finds it).'
        )
        words = f"{path} has one column, {found[0]!r}: {said}"
        raise UserError.several([Problem(words, kept=f"{path}: {said}")])


def _refuse_other_letters(path: Path, form: CsvForm, most: int | None = None) -> None:
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
def _rows(path: Path, form: CsvForm) -> Iterator[Any]:
    """Open a CSV file as rows of texts: for its header, and where its rows stand."""
    letters = "utf-8-sig" if form.encoding == "utf-8" else form.encoding
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rt", encoding=letters, newline="") as stream:
        yield csv.reader(stream, delimiter=form.separator)


def lines_of(path: Path, form: CsvForm, rows: Collection[int]) -> dict[int, int]:
    """Return the line of the file on which each row begins; the header is row 0."""
    found: dict[int, int] = {}
    number, line, last = -1, 1, max(rows, default=-1)
    with _rows(path, form) as read:
        for cells in read:
            number += bool(cells)  # an empty line is no row
            if cells and number in rows:
                found[number] = line
            line = read.line_num + 1
            if number >= last:
                break
    return found


Example = str | tuple[int, str]


class Violations:
    """What is wrong with the file at ``path``: by kind a count and some examples.

    An example is a text, or a row (1 is the first below a header) and what stands
    there; told is the line of the file. Where many cells are wrong, those of the rarest
    shape come first: three words among thousands of decimal commas are the culprits.
    """

    def __init__(self, path: Path, form: CsvForm = PLAIN) -> None:
        self.path, self.form = path, form
        # Of each kind a count, and by shape of the cell how many and the first ones.
        self._found: dict[str, tuple[int, dict[str, tuple[int, list[Example]]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, what: str, count: int, examples: Iterable[Example] = ()) -> None:
        """Count ``what``; of each shape the first ten examples are kept."""
        if not count:
            return
        before, shapes = self._found.get(what, (0, {}))
        self._found[what] = (before + count, shapes)
        for example in examples:
            text = example if isinstance(example, str) else example[1]
            shape = re.sub(r"\d+", "0", text)
            if shape not in shapes and len(shapes) >= _SHAPES:
                continue
            many, first = shapes.get(shape, (0, []))
            shapes[shape] = (many + 1, [*first, example][:EXAMPLES])

    def check(self) -> None:
        """Raise one UserError with everything found so far, if there is anything."""
        if self._found:
            place = f"{self.path}: "
            chosen = {
                what: _chosen(shapes) for what, (_, shapes) in self._found.items()
            }
            told = self._told([each for few in chosen.values() for each in few])
            raise UserError.several(
                _problem(what, count, [told(each) for each in chosen[what]]).after(
                    place
                )
                for what, (count, _) in self._found.items()
            )

    def _told(self, examples: list[Example]) -> Callable[[Example], str]:
        """Return the words for each example: where it stands in the file, and what."""
        rows = {each[0] for each in examples if not isinstance(each, str)}
        lines: dict[int, int] = {}
        if rows and self.path.is_file() and kind(self.path) == "csv":
            with suppress(UnicodeError, csv.Error, OSError):
                lines = lines_of(self.path, self.form, rows)

        def words(example: Example) -> str:
            if isinstance(example, str):
                return example
            row, text = example
            place = f"line {lines[row]}" if row in lines else f"row {row}"
            return text.replace("{}", place, 1) if "{}" in text else f"{place} {text}"

        return lambda example: words(example).rstrip()


def _chosen(shapes: dict[str, tuple[int, list[Example]]]) -> list[Example]:
    """Return at most ten examples: of each shape its share, the rarest shapes first."""
    ranked = sorted(shapes.values(), key=lambda each: each[0])[:EXAMPLES]
    each = max(1, EXAMPLES // max(len(ranked), 1))
    return [example for _, first in ranked for example in first[:each]]


def _problem(what: str, count: int, examples: list[str]) -> Problem:
    """Return what is wrong; records keep no cell, and not in how many it is."""
    kept = f"{what} ... (`curvote check` shows the rest)"
    if not examples:
        return Problem(f"{what} ({count}).", kept=kept)
    more = f" and {count - len(examples)} more" if count > len(examples) else ""
    shown = ", ".join(examples)
    cures = [f" {cure}" for sign, cure in _CURES.items() if re.search(sign, shown)]
    words = f"{what} ({count}): {shown}{more}.{''.join(cures)}"
    return Problem(words, kept=kept)


def check_labels(
    violations: Violations, column: str, known: Collection[str], positive: str
) -> None:
    """Count it as wrong unless two labels are ``known``, one of them ``positive``."""
    if len(known) != 2 or positive not in known:
        near = next((k for k in known if k.lower() == positive.lower()), positive)
        cure = [f'so write positive: "{near}", in quotes'] * (near != positive)
        if len(known) > 2:
            cure = ["with more than two, write classes: [a, b, c] instead of positive"]
        what = f"column {column!r} needs two labels, one of them {positive!r}; it has"
        violations.add(what, max(len(known), 1), [*map(repr, sorted(known)), *cure])


def batches(path: Path, columns: list[str], violations: Violations) -> Iterator[Any]:
    """Yield the ``columns`` of ``path`` as record batches, never all in memory.

    Cells of CSV are texts, written in the form of ``violations``. A row of another
    length ends the reading of it: later rows would be counted wrongly.

    Raises:
        UserError: a file that cannot be read, a missing column, rows of other lengths.
    """
    read = _parquet if kind(path) == "parquet" else _csv
    with _readable(path, violations.form):
        yield from read(path, columns, violations)


def names_in(path: Path, form: CsvForm = PLAIN) -> list[str]:
    """Return the names of the columns of ``path``; UserError: it cannot be read."""
    with _readable(path, form):
        if kind(path) == "csv":
            return _header(path, form)
        import pyarrow.parquet as pq

        return [*pq.read_schema(path).names]


@contextmanager
def usable(path: Path, name: str, column: Any) -> Iterator[None]:
    """Turn a column that pyarrow cannot convert as a whole into a UserError."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowException as error:
        words = f"{path}: column {name!r} ({column.type}) is of no use as it stands"
        raise _quoting(words, error) from None


@contextmanager
def _readable(path: Path, form: CsvForm) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeError, csv.Error) as error:
        if kind(path) == "csv" and not isinstance(error, OSError | EOFError):
            _refuse_other_letters(path, form)
        if isinstance(error, UnicodeError):  # it quotes a byte of a cell
            raise UserError(f"{path} is not {form.encoding.upper()}.") from None
        reason = str(error).split("\n")[0].rstrip(".")
        raise _quoting(f"{path} cannot be read as {kind(path)}", reason) from None


def _quoting(words: str, reason: object) -> UserError:
    """Return an error with a reader's reason, which may quote a cell."""
    return UserError.several([Problem(f"{words}: {reason}.", kept=f"{words}.")])


def _parquet(path: Path, columns: list[str], _violations: Violations) -> Iterator[Any]:
    import pyarrow.parquet as pq

    # Without these two, the bytes of a row group are held as a whole.
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=_BYTES) as file:
        check_columns(path, columns, file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
            yield batch.select(columns)


def _csv(path: Path, columns: list[str], violations: Violations) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow

    form, refused = violations.form, []

    def refuse(row: Any) -> str:
        what = f"lines without {row.expected_columns} fields"
        violations.add(what, 1, [(row.number - 1, f"{{}} has {row.actual_columns}")])
        refused.append(row.number)
        return "skip"

    check_columns(path, columns, _header(path, form), form)
    texts = dict.fromkeys(columns, pa.string())
    letters = "utf8" if form.encoding == "utf-8" else form.encoding
    reader = arrow.open_csv(
        path,
        # Several threads know no numbers of lines.
        arrow.ReadOptions(use_threads=False, block_size=_BYTES, encoding=letters),
        arrow.ParseOptions(
            delimiter=form.separator,
            newlines_in_values=True,
            invalid_row_handler=refuse,
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


def _header(path: Path, form: CsvForm) -> list[str]:
    _refuse_other_letters(path, form, _LINES)
    with _rows(path, form) as read:
        names = next((cells for cells in read if cells), None)
    if names is None:
        raise UserError(f"{path} cannot be read as csv: it is empty.")
    return list(names)
