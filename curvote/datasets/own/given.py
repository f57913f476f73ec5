"""A user's own file: its kind, its columns, and all that is wrong with it at once."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from curvote.errors import Problem, UserError, did_you_mean

EXAMPLES = 10
_ROWS = 2**17
_BYTES = 2**22
# What else stands between columns; a spreadsheet with decimal commas writes the first.
_OTHERS: Final = {";": "semicolons", "\t": "tabs", "|": "bars (|)"}
_LINES = 10_000  # whose letters are looked at before a file is read
DECIMAL_COMMA: Final = r"[+-]?\d+,\d+"
# What a cell tells of how the file was written, and what to write instead.
_CURES: Final = {
    f"'{DECIMAL_COMMA}'": "Write decimal points: pandas.read_csv(FILE, decimal=',').",
    r"'\d{1,2}[./]\d{1,2}[./]\d{4}": "Write date-times as 2026-03-30 08:15:"
    " pandas.to_datetime(COLUMN, dayfirst=True).",
}
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


def check_columns(path: Path, wanted: Sequence[str], found: Sequence[str]) -> None:
    """Raise a UserError that lists every wanted column that is not there just once."""
    refuse_other_separator(path, found)
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


def refuse_other_separator(path: Path, found: Sequence[str]) -> None:
    """Refuse (UserError) a CSV whose only column looks like several of another form."""
    mark = next((m for m in _OTHERS if len(found) == 1 and m in found[0]), "")
    if mark and kind(path) == "csv":
        what = f"its fields are parted by {_OTHERS[mark]}. Export it with commas and"
        said = (
            f"{what} decimal points, or write it so: pandas.read_csv({path.name!r},"
            f" sep={mark!r}, decimal=',').to_csv('commas.csv', index=False)."
        )
        words = f"{path} has one column, {found[0]!r}: {said}"
        raise UserError.several([Problem(words, kept=f"{path}: {said}")])


def _refuse_other_letters(path: Path, most: int | None = None) -> None:
    """Refuse (UserError) a CSV that is no UTF-8 in its first lines, or in any."""
    if path.suffix.lower() == ".gz":  # no spreadsheet writes it
        return
    with path.open("rb") as file:
        for number, line in enumerate(islice(file, most), 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                how = "encoding='cp1252'" + ", sep=';', decimal=','" * (b";" in line)
                raise UserError(
                    f"{path}: line {number} is not UTF-8. Export it as CSV UTF-8, or"
                    f" write it so: pandas.read_csv({path.name!r}, {how})"
                    ".to_csv('utf8.csv', index=False)."
                ) from None  # it quotes a byte of a cell


class Violations:
    """What is wrong with the file at ``path``: by kind a count and some examples."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found: dict[str, tuple[int, list[str]]] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, what: str, count: int, examples: Iterable[str] = ()) -> None:
        """Count ``what``; of its examples the first ten are kept, the rest not made."""
        if not count:
            return
        before, shown = self._found.get(what, (0, []))
        kept = [*shown, *islice(examples, EXAMPLES - len(shown))]
        self._found[what] = (before + count, kept)

    def check(self) -> None:
        """Raise one UserError with everything found so far, if there is anything."""
        if self._found:
            place = f"{self.path}: "
            raise UserError.several(
                _problem(what, *found).after(place)
                for what, found in self._found.items()
            )


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
        what = f"column {column!r} needs two labels, one of them {positive!r}; it has"
        violations.add(what, max(len(known), 1), [*map(repr, sorted(known)), *cure])


def batches(path: Path, columns: list[str], violations: Violations) -> Iterator[Any]:
    """Yield the ``columns`` of ``path`` as record batches, never all in memory.

    Cells of CSV are texts. A row of another length ends the reading of it: later rows
    would be counted wrongly.

    Raises:
        UserError: a file that cannot be read, a missing column, rows of other lengths.
    """
    read = _parquet if kind(path) == "parquet" else _csv
    with _readable(path):
        yield from read(path, columns, violations)


def names_in(path: Path) -> list[str]:
    """Return the names of the columns of ``path``; UserError: it cannot be read."""
    with _readable(path):
        if kind(path) == "csv":
            return _header(path)
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
def _readable(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if kind(path) == "csv" and not isinstance(error, OSError):
            _refuse_other_letters(path)
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
    from pyarrow import csv

    refused = []

    def refuse(row: Any) -> str:
        what = f"lines without {row.expected_columns} fields"
        violations.add(what, 1, [f"line {row.number} has {row.actual_columns}"])
        refused.append(row.number)
        return "skip"

    check_columns(path, columns, _header(path))
    texts = dict.fromkeys(columns, pa.string())
    reader = csv.open_csv(
        path,
        csv.ReadOptions(use_threads=False, block_size=_BYTES),  # else no line numbers
        csv.ParseOptions(invalid_row_handler=refuse),
        csv.ConvertOptions(column_types=texts, include_columns=columns),
    )
    with closing(reader):
        for batch in reader:
            if refused:
                break
            yield batch
    if refused:
        violations.check()


def _header(path: Path) -> list[str]:
    from pyarrow import csv

    _refuse_other_letters(path, _LINES)  # pyarrow prints a traceback of its own
    skip = csv.ParseOptions(invalid_row_handler=lambda _row: "skip")
    with closing(csv.open_csv(path, parse_options=skip)) as reader:
        return list(reader.schema.names)
