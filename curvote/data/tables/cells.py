"""Cells of users' files: numbers, times, labels and ids, their spans and repeats.

Nothing is guessed: a cell that says nothing usable becomes NaN or -1, and the caller
reports it. Arrays are of m rows unless stated otherwise.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.base.table_file import Violations, convert_column, read_batches
from curvote.base.text import WHOLE_NUMBER, normalise_id, text_digest

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Marks = NDArray[np.uint32]

MARKS: Final = ("NA", "N/A", "NaN", "nan", "null", "?")  # beside empty cells
MICROSECONDS = 1e6
VOCABULARY = 12  # so many labels that nobody listed are shown
# What a message adds about ids that came twice.
SPELT = " (spaces around an id, and .0 after a number, do not count)"
_DATE = r"^\d{4}-\d{2}-\d{2}"
_ZONE = r"(\d{2}:\d{2}.*?)\s*(Z|[+-]\d{2}:?\d{2})$"


def read_blocks(
    path: Path, names: list[str], violations: Violations
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield plain columns of a table block by block, after how many rows each begins.

    UserError: as of `table_file.read_batches`, or no row at all.
    """
    begin = 0
    for batch in read_batches(path, names, violations):
        if len(batch):
            yield begin, {name: plain_column(batch[name]) for name in names}
        begin += len(batch)
    if not begin:
        raise UserError(f"{path} has no rows.")


def is_date_time(column: Any) -> bool:
    """Return whether a column holds date-times."""
    import pyarrow.compute as pc
    from pyarrow import types

    if not is_text(column):
        return bool(types.is_timestamp(column.type) or types.is_date(column.type))
    first = column.filter(pc.greater(pc.utf8_length(column), 0))[:1]
    return bool(pc.any(pc.match_substring_regex(first, _DATE)).as_py())


def parse_numbers(column: Any, decimal: str = ".") -> Floats:
    """Return the numbers of a column, NaN for cells without a number.

    With another ``decimal`` mark a point stands in no number: 1.234 might be thousands.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_text(column):
        return _to_floats(column.cast(pa.float64(), safe=False))
    text = pc.utf8_trim_whitespace(column)
    if decimal != ".":
        pointed = pc.replace_substring(text, decimal, ".")
        text = pc.if_else(pc.match_substring(text, "."), "no number", pointed)
    try:
        return _to_floats(text.cast(pa.float64()))
    except pa.ArrowInvalid:  # some cell is no number: only now look at each
        import pandas as pd

        return np.asarray(pd.to_numeric(text.to_pandas(), errors="coerce"), np.float64)


def wall_clock(column: Any, form: str | None = None) -> Floats:
    """Return whole microseconds since 1970 on the file's own wall clock, or NaN.

    Texts are ISO 8601 unless ``form`` says how they are written, as `strptime` does.

    Microseconds stay below 2^53, so that float64 holds them exactly. A zone is read as
    the place where the clock hung: 08:00+02:00 is eight in the morning.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_text(column) and form:
        text = pc.utf8_trim_whitespace(column)
        column = pc.strptime(text, format=form, unit="us", error_is_null=True)
    elif is_text(column):
        column = _parse_dates(pc.utf8_trim_whitespace(column))
    elif getattr(column.type, "tz", None):
        column = pc.local_timestamp(column)
    stamps = column.cast(pa.timestamp("us"), safe=False)
    return _to_floats(stamps.cast(pa.int64()).cast(pa.float64(), safe=False))


def encode_labels(
    column: Any, code_of: dict[str, int], most: int = VOCABULARY
) -> Integers:
    """Return codes of the labels' texts, -1 where empty; register new texts.

    After ``most`` of them all others share one code: the column is no label.
    """
    import pyarrow as pa

    is_encoded = pa.types.is_dictionary(column.type)
    encoded = column if is_encoded else column.dictionary_encode()
    texts = encoded.dictionary.cast(pa.string()).to_pylist()
    codes = np.full(len(texts) + 1, -1, dtype=np.int64)
    for place, text in enumerate(texts):
        if text and len(code_of) >= most:
            codes[place] = code_of.get(text, most)
        elif text:
            codes[place] = code_of.setdefault(text, len(code_of))
    where = encoded.indices.cast(pa.int64()).fill_null(len(texts))
    return np.asarray(codes[np.asarray(where)])


def identify(column: Any) -> tuple[Integers, Marks]:
    """Return each id's client_id, and a mark that separates texts.

    Texts are compared as `identifier.normalise_id` spells them. A whole number in its
    plain spelling stays what it is (mark 0). Any other text becomes 63 bits of its
    BLAKE2b digest and 32 further bits as its mark: two ids that agree in the first but
    not in the second are different texts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    marks = np.zeros(len(column), dtype=np.uint32)
    if not is_text(column):
        return np.array(column.cast(pa.int64())), marks
    # Texts in the normal form in which they are compared.
    plain_ones = pc.match_substring_regex(column, r"^[0-9A-Za-z]+$")
    if rest := column.filter(pc.invert(plain_ones)).to_pylist():
        spelt = pa.array(map(normalise_id, rest), type=column.type)
        column = pc.replace_with_mask(column, pc.invert(plain_ones), spelt)
    integral = pc.match_substring_regex(column, WHOLE_NUMBER)
    ids = np.array(pc.if_else(integral, column, "0").cast(pa.int64()))
    other = ~np.asarray(integral)
    # hashlib takes one text at a time: about a microsecond a client.
    digests = map(text_digest, column.filter(pa.array(other)).to_pylist())
    words = np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2)
    ids[other] = (words[:, 0] >> np.uint64(1)).astype(np.int64)
    marks[other] = (words[:, 1] >> np.uint64(32)) | np.uint64(1)
    return ids, marks


def null_marks(column: Any, marks: Collection[str] = MARKS) -> Any:
    """Return trimmed texts, null where one of the marks or nothing stands.

    Numbers stay as they are.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_text(column):
        return column
    text = pc.utf8_trim_whitespace(column)
    absent = pc.is_in(text, pa.array(marks, pa.string()))
    return plain_column(pc.if_else(absent, None, text))


def trim_ids(column: Any) -> Any:
    """Return ids without margins; blanks alone become null."""
    import pyarrow.compute as pc

    return plain_column(pc.utf8_trim_whitespace(column)) if is_text(column) else column


def identify_column(path: Path, name: str, column: Any) -> tuple[Integers, Marks]:
    """Return what `identify` says of trimmed ids, of an empty one as of 0."""
    with convert_column(path, name, column):
        return identify(column.fill_null("0" if is_text(column) else 0))


def count_wrong(
    violations: Violations, what: str, wrong: Any, begin: int, column: Any = None
) -> None:
    """Count ``wrong`` rows (m,) of a block that begins after ``begin`` rows.

    With ``column``, what stands there is an example.
    """
    rows = np.flatnonzero(wrong).tolist()

    def cell_text(row: int) -> str:
        if column is None:
            return ""
        cell = column[row].as_py()
        return "is empty" if cell is None else repr(cell)

    examples = ((begin + row + 1, cell_text(row)) for row in rows)
    violations.add(what, len(rows), examples)


def is_text(column: Any) -> bool:
    """Return whether a column holds texts."""
    from pyarrow import types

    return bool(types.is_string(column.type) or types.is_large_string(column.type))


def plain_column(column: Any) -> Any:
    """Return ``column`` without a dictionary; an empty text becomes a null."""
    import pyarrow.compute as pc
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not is_text(column):
        return column
    return pc.if_else(pc.equal(pc.utf8_length(column), 0), None, column)


def _parse_dates(text: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    local = pc.replace_substring_regex(text, _ZONE, r"\1")
    try:
        return local.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        import pandas as pd

        read = pd.to_datetime(local.to_pandas(), errors="coerce", format="ISO8601")
        return pa.Array.from_pandas(read)


def _to_floats(column: Any) -> Floats:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


class ColumnSpans:
    """Spans and outlier counts of p columns with bounds (p,).

    ``values``, ``below`` and ``above`` (p,) count the values that are there, and those
    outside the bounds. ``least`` and ``most`` (p,) are the ends of what was met.
    """

    def __init__(self, lower: Floats, upper: Floats) -> None:
        self.lower, self.upper = lower, upper
        self.values, self.below, self.above = np.zeros((3, len(lower)), dtype=np.int64)
        self.least = np.full(len(lower), np.inf)
        self.most = np.full(len(lower), -np.inf)

    def add(self, values: Floats, absent: NDArray[np.bool_] | None = None) -> None:
        """Count a block of values (m, p) without the ``absent`` ones."""
        self.values += len(values)
        if absent is not None and absent.any():
            values = np.where(absent, np.nan, values)
            self.values -= absent.sum(axis=0)
        least = np.fmin.reduce(values, axis=0, initial=np.inf)
        most = np.fmax.reduce(values, axis=0, initial=-np.inf)
        if (least < self.lower).any():
            self.below += (values < self.lower).sum(axis=0)
        if (most > self.upper).any():
            self.above += (values > self.upper).sum(axis=0)
        self.least = np.fmin(self.least, least)
        self.most = np.fmax(self.most, most)

    @property
    def outside(self) -> Integers:
        """The number of values of each column outside its bounds, (p,)."""
        return self.below + self.above

    @property
    def constant(self) -> NDArray[np.bool_]:
        """A mask of the columns that hold one value only, (p,)."""
        return np.asarray((self.values > 0) & (self.least == self.most))

    @property
    def used(self) -> Floats:
        """The share of each column's bounds between its extreme values, (p,)."""
        low = np.clip(self.least, self.lower, self.upper)
        high = np.clip(self.most, self.lower, self.upper)
        return np.asarray(np.where(self.values > 0, high - low, 0.0)) / (
            self.upper - self.lower
        )


class Identifiers:
    """All ids so far: 20 bytes a client."""

    def __init__(self, violations: Violations) -> None:
        self.violations = violations
        self._parts: list[tuple[Integers, Marks, Integers]] = []
        self._length = 0
        self._due = 1

    def add(self, ids: Integers, marks: Marks, rows: Integers) -> None:
        """Add ``ids`` (n,) with their marks and first rows.

        Looks for repetitions whenever the number of ids has doubled: an unsorted file
        is refused long before its end.

        Raises:
            UserError: an id that came back, and whatever else was found before.
        """
        self._parts.append((ids, marks, rows))
        self._length += len(ids)
        if self._length >= self._due:
            self.check()
            self._due = 2 * self._length

    def check(self) -> None:
        """Raise a UserError if an id came back, or if two texts share their digest."""
        if not self._parts:
            return
        ids, marks, rows = map(np.concatenate, zip(*self._parts, strict=True))
        self._parts = [(ids, marks, rows)]
        order = np.argsort(ids, kind="stable")
        same = np.flatnonzero(ids[order[1:]] == ids[order[:-1]])
        if len(same):
            earlier, later = order[same], order[same + 1]
            texts = marks[earlier] != marks[later]
            back = "an id comes back after another client's rows; sort the file by id"
            collision = "two ids have one 63-bit number; rename one of the two"
            for what, chosen in ((back + SPELT, ~texts), (collision, texts)):
                places = np.sort(rows[later[chosen]]).tolist()
                self.violations.add(what, len(places), ((row, "") for row in places))
            self.violations.check()


Words = NDArray[np.uint64]
# The increment and the finalizer's multipliers of SplitMix (Steele, Lea & Flood 2014).
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SEEDS: Final = (np.uint64(0x243F6A8885A308D3), np.uint64(0x13198A2E03707344))


class RepeatedRows:
    """Digests of all rows so far, to find repeated ones."""

    def __init__(self) -> None:
        self._parts: tuple[list[Words], list[Words]] = ([], [])

    def add(self, rows: NDArray[np.float64]) -> None:
        """Add rows (m, p); missing values (NaN) are equal, and 0 is -0."""
        words = np.where(np.isnan(rows), np.nan, rows + 0.0).view(np.uint64)
        for seed, parts in zip(_SEEDS, self._parts, strict=True):
            parts.append(_digest(words, seed))

    def first_occurrences(self) -> NDArray[np.bool_] | None:
        """Return a mask of rows that repeat no earlier one; None: all."""
        high, low = (_concatenate(parts) for parts in self._parts)
        order = np.argsort(high, kind="stable")
        ranked = high[order]
        same = np.flatnonzero(ranked[1:] == ranked[:-1])
        if not same.size:
            return None
        some = order[np.union1d(same, same + 1)]
        some = some[np.lexsort((some, low[some], high[some]))]
        again = (np.diff(high[some]) == 0) & (np.diff(low[some]) == 0)
        first_mask = np.ones(len(high), dtype=bool)
        first_mask[some[1:][again]] = False
        return None if first_mask.all() else first_mask


def _concatenate(parts: list[Words]) -> Words:
    digests = np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)
    parts.clear()
    return digests


def _digest(words: Words, seed: np.uint64) -> Words:
    state = np.full(len(words), seed, dtype=np.uint64)
    for column in words.T:
        state = (state ^ column) + _GOLDEN
        state = (state ^ (state >> np.uint64(30))) * _MIX[0]
        state = (state ^ (state >> np.uint64(27))) * _MIX[1]
        state = state ^ (state >> np.uint64(31))
    return state
