"""Starter pipelines.yaml, made of the columns of a user's file."""

import codecs
import csv
import gzip
import json
import re
from dataclasses import dataclass, field
from itertools import islice, product
from pathlib import Path, PurePath
from typing import Any, Final, Literal
from unicodedata import normalize

import numpy as np

from curvote.base.errors import UserError
from curvote.data.tables import cells, schema
from curvote.data.tables.table import MARKS

TO_STATE: Final = "TO_STATE"
Kind = Literal["number", "text", "date-time", "code", "empty"]
# What else is written where a value is missing, in any case of letters.
_ABSENT: Final = (
    *("k.a.", "k. a.", "n.a.", "n. a.", "#n/a", "#nv", "none", "missing", "unknown"),
    *("fehlt", "unbekannt", "keine angabe", "no data", "-", "--", ".", ".."),
)
_DATES: Final = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y")
_CLOCKS: Final = ("", " %H:%M", " %H:%M:%S")
_SAMPLE: Final = 1_000  # rows by which the separator is found


@dataclass(frozen=True)
class FileLayout:
    """The kind of each column of a file, and its number of rows.

    ``form`` is how the file is written, ``absent`` texts that seem to mean missing,
    ``dates`` how the columns of dates are written, ``unique_columns`` the columns whose
    cells are names or numbers of rows: no two are equal.
    """

    path: Path
    kinds: dict[str, Kind]
    rows: int
    form: schema.CsvForm = schema.PLAIN
    absent: tuple[str, ...] = ()
    dates: dict[str, str] = field(default_factory=dict)
    unique_columns: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the columns, in the file's order."""
        return list(self.kinds)


def read_layout(path: Path) -> FileLayout:
    """Return the layout of the file at ``path``, guessed from its start.

    Raises:
        UserError: no such file, or none that can be read; columns of one name.
    """
    if not path.is_file():
        raise UserError(f"no file {path}. Name a CSV or Parquet file that is there.")
    form = _guess_form(path) if schema.file_kind(path) == "csv" else schema.PLAIN
    # pandas writes its index without a name
    names = [name for name in schema.column_names(path, form) if name]
    _check_names(path, names, form)
    violations = schema.Violations(path, form)
    first = next(iter(islice(schema.read_batches(path, names, violations), 1)), None)
    violations.check()
    if first is None or not first.num_rows:
        raise UserError(f"{path} has no rows.")
    columns = {name: cells.trim_ids(cells.plain_column(first[name])) for name in names}
    import pyarrow.compute as pc

    texts = [c for c in columns.values() if cells.is_text(c)]
    texts_found = {text for c in texts for text in pc.unique(c).to_pylist() if text}
    absent = tuple(sorted(t for t in texts_found - {*MARKS} if t.lower() in _ABSENT))
    there = {name: _present_cells(column, absent) for name, column in columns.items()}
    if form.separator != "," and any(map(_has_decimal_commas, there.values())):
        form = form.model_copy(update={"decimal": ","})
    kinds: dict[str, Kind] = {}
    dates, unique = {}, []
    for name, column in there.items():
        written, rows = _date_form(column), len(columns[name])
        empty = 2 * len(column) <= rows
        kinds[name] = "empty" if empty else _column_kind(column, written)
        if written:
            dates[name] = written
        if _identifies_rows(column, rows):
            unique.append(name)
    n_rows = sum(
        len(x)
        for x in schema.read_batches(path, names[:1], schema.Violations(path, form))
    )
    return FileLayout(path, kinds, n_rows, form, absent, dates, tuple(unique))


def count_runs(path: Path, column: str, form: schema.CsvForm = schema.PLAIN) -> int:
    """Return the number of runs of equal values in a column."""
    import pyarrow.compute as pc

    total, last = 0, object()
    for batch in schema.read_batches(path, [column], schema.Violations(path, form)):
        ids = pc.run_end_encode(cells.plain_column(batch[column])).values
        if len(ids):
            total += len(ids) - (ids[0].as_py() == last)
            last = ids[-1].as_py()
    return total


def _guess_form(path: Path) -> schema.CsvForm:
    """Return the encoding, separator and decimal mark of a CSV file."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rb") as stream:
        begin = stream.read(4)
        wide = begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while not wide and begin:
                decoder.decode(begin)
                begin = stream.read(1 << 20)
            letters = "utf-16" if wide else "utf-8"
        except UnicodeDecodeError:
            letters = "cp1252"  # what spreadsheets write where it is not UTF-8
    with opened(path, "rt", encoding=letters, errors="replace", newline="") as texts:
        lines = [*islice(texts, _SAMPLE)]

    def count_columns(mark: str) -> tuple[float, int]:
        rows = [row for row in csv.reader(lines, delimiter=mark) if row]
        wide = len(rows[0]) if rows else 0
        alike = sum(len(row) == wide for row in rows) / max(len(rows), 1)
        return (alike if wide > 1 else 0.0), wide

    # What splits most lines alike.
    separator: Any = max(schema.SEPARATORS, key=count_columns)
    return schema.CsvForm(separator=separator, encoding=letters)


def _check_names(path: Path, names: list[str], form: schema.CsvForm) -> None:
    schema.refuse_other_separator(path, names, form)
    if len(names) == 1:
        raise UserError(f"{path} has one column, {names[0]!r}: a label needs another.")
    wrong = sorted({name for name in names if names.count(name) > 1})
    if wrong:
        twice = ", ".join(map(repr, wrong))
        raise UserError(f"{path}: each column needs a name of its own, not {twice}.")


def _present_cells(column: Any, absent: tuple[str, ...]) -> Any:
    """Return the cells of a column that say something."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not cells.is_text(column):
        return column.drop_null()
    marks = pa.array([*MARKS, *absent, None], pa.string())
    return column.filter(pc.invert(pc.is_in(column, marks)))


def _mostly_matches(column: Any, pattern: str) -> bool:
    """Return whether over half of a column's texts match a pattern."""
    import pyarrow.compute as pc

    if not cells.is_text(column) or not len(column):
        return False
    return bool(pc.mean(pc.match_substring_regex(column, pattern)).as_py() > 0.5)


def _has_decimal_commas(column: Any) -> bool:
    return _mostly_matches(column, rf"^({schema.DECIMAL_COMMA}|[+-]?\d+)$") and bool(
        re.search(schema.DECIMAL_COMMA, " ".join(column.to_pylist()))
    )


def _date_form(column: Any) -> str:
    """Return the form in which nearly all dates of a column are written, "" for none.

    Dates like 2026-03-30 are read as they stand, so they need none in curves; a table
    says so of a feature.
    """
    import pyarrow.compute as pc

    looks_like = r"^\d{1,4}[./-]\d{1,2}[./-]\d{1,4}( \d{1,2}:\d{2}(:\d{2})?)?$"
    if not _mostly_matches(column, looks_like):
        return ""
    for written in map("".join, product(("%Y-%m-%d", *_DATES), _CLOCKS)):
        read = pc.strptime(column, format=written, unit="s", error_is_null=True)
        if read.null_count < 0.01 * len(column):  # one wrong cell hides no column
            return written
    return ""


def _identifies_rows(column: Any, rows: int) -> bool:
    """Return whether a column identifies rows by texts, codes or a count."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(column) < max(rows, 2) or pc.count_distinct(column).as_py() < len(column):
        return False
    if cells.is_text(column):
        if not _mostly_matches(column, r"^\d+$"):
            number = rf"^[+-]?[\d.]+$|^{schema.DECIMAL_COMMA}$"
            return not _mostly_matches(column, number) and not _date_form(column)
        if _mostly_matches(column, r"^0\d+$"):
            return True
        column = column.cast(pa.float64())
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        return False
    ends = pc.min_max(column).as_py()
    return bool(ends["max"] - ends["min"] == len(column) - 1)


def _column_kind(column: Any, written: str) -> Kind:
    """Return the kind of a column by its cells that are not missing."""
    import pyarrow.compute as pc

    if not cells.is_text(column):
        return "date-time" if cells.is_date_time(column) else "number"
    if written or cells.is_date_time(column):
        return "date-time"
    leading_zeros = pc.any(pc.match_substring_regex(column, r"^0\d+$")).as_py()
    if leading_zeros and _mostly_matches(column, r"^\d+$"):
        return "code"
    # A word here and there in a column of numbers is for `check` to name, and commas.
    comma = pc.match_substring_regex(column, f"^{schema.DECIMAL_COMMA}$")
    words = np.isnan(cells.parse_numbers(column)) & ~np.asarray(comma)
    return "text" if len(words) and words.mean() > 0.5 else "number"


# Names that say what a column is, the plainest first.
_LABELS = ("label", "class", "outcome", "target", "diagnosis", "disease", "group", "y")
_IDS = ("id", "person", "patient", "client", "subject", "participant", "wearer", "who")
_TIMES = ("time", "hour", "timestamp", "datetime", "date", "minute", "second", "t")
_VALUES = ("value", "activity", "measurement", "reading", "count", "steps", "x")
_LONG_COLUMNS = {"id": _IDS, "time": _TIMES, "value": _VALUES, "label": _LABELS}
# YAML 1.1 or 1.2 reads these as something else than a text.
_NO_TEXT = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_SIZES = (0.7, 0.2)  # of the records: who trains, who tests; the rest is slack


def table_pipeline(layout: FileLayout, path: str) -> tuple[str, str]:
    """Return name and text of a pipeline for a table, one record a row."""
    unique = layout.unique_columns
    shared = [name for name in layout.names if name not in unique] or layout.names
    label = _guess_column(layout.names, _LABELS) or shared[-1]
    candidates = [name for name in layout.names if name != label]
    names_rows = next((name for name in candidates if name in unique), None)
    id_column = _guess_column(candidates, _IDS) or names_rows
    # What names a row, is a code or a date says nothing as a number.
    no_feature, features = {}, []
    for name in (name for name in candidates if name != id_column):
        kind = layout.kinds[name]
        if name in unique:
            no_feature[name] = "names its row"
        elif kind == "date-time":
            written = layout.dates.get(name, "YYYY-MM-DD")
            no_feature[name] = f"dates like {written}"
        elif kind in _NO_FEATURE:
            no_feature[name] = _NO_FEATURE[kind]
        else:
            features.append(name)
    texts = [name for name in features if layout.kinds[name] != "number"]
    numbers = [name for name in features if name not in texts]
    id_line = "      # id: COLUMN  (a release needs it)"
    if id_column:
        id_line = f"      id: {quote_yaml(id_column)}"
    spare = "repeat another" if id_column is None else "lack a value"
    name = _pipeline_name(path)
    marks = ", ".join(json.dumps(mark, ensure_ascii=False) for mark in layout.absent)
    lines = [
        f"  {name}:",
        "    source:",
        "      name: table            # one record a row",
        f"      path: {quote_yaml(path)}",
        *_form_settings(layout),
        *([f"      missing_values: [{marks}]"] if marks else []),
        id_line,
        f"      label: {quote_yaml(label)}",
        *_CLASSES,
        f"      features: [{', '.join(map(quote_yaml, features))}]",
        *_excluded_columns(no_feature, layout),
        *_BOUNDS,
        *_yaml_entries("bounds", numbers, f"[{TO_STATE}, {TO_STATE}]"),
        *(_TEXTS if texts else ()),
        *_yaml_entries("categories", texts, f"[{TO_STATE}]"),
        *_role_sizes(layout.rows, "rows", spare),
        "    # Each number becomes one around 0, by its bounds alone.",
        "    project:",
        "      {basis: identity, rescale: standard, centre: public, scale: public}",
        *_REST,
    ]
    return name, "\n".join(lines)


def curves_pipeline(layout: FileLayout, path: str) -> tuple[str, str]:
    """Return the name and the text of a pipeline for curves, one measurement a row."""
    # The columns of a long file: by their names, the last one by what is left.
    four, remaining = {}, layout.names
    for key, words in _LONG_COLUMNS.items():
        four[key] = _guess_column(remaining, words) or TO_STATE
        remaining = [name for name in remaining if name != four[key]]
    open_ = [key for key, column in four.items() if column == TO_STATE]
    if len(open_) == len(remaining):
        four |= dict(zip(open_, remaining, strict=True))
    has_id = four["id"] != TO_STATE
    clients = count_runs(layout.path, four["id"], layout.form) if has_id else 0
    name = _pipeline_name(path)
    written = layout.dates.get(four["time"], "%Y-%m-%d")
    plain = written.startswith("%Y-%m-%d")
    lines = [
        f"  {name}:",
        "    source:",
        "      name: curves           # one measurement a row",
        f"      path: {quote_yaml(path)}",
        *_form_settings(layout),
        *(f"      {key}: {quote_yaml(column)}" for key, column in four.items()),
        *([] if plain else [f"      dates: {json.dumps(written)}"]),
        *_CLASSES,
        *(_CLOCK if "date-time" in layout.kinds.values() else _HOURS),
        f"      grid: {{start: {TO_STATE}, stop: {TO_STATE}, points: {TO_STATE}}}",
        f"      unit: {TO_STATE}",
        *_BOUNDS,
        f"      bounds: [{TO_STATE}, {TO_STATE}]",
        "      # Who was longer without a measurement is left out, and counted.",
        f"      gaps: {{most: {TO_STATE}}}",
        *_role_sizes(clients, "clients", "are too patchy"),
        "    # A curve becomes 5 numbers between -1 and 1, by its bounds alone.",
        "    project: {basis: fourier, size: 5, rescale: min_max, bounds: public}",
        *_REST,
    ]
    return name, "\n".join(lines)


SIMULATED: Final = """\
  demo:
    source: {name: simulated}  # of your own: `curvote init --table FILE` or `--curves`
    clients: {train: 3000, test: 500}
    project:
      {basis: bspline, size: 4, coordinates: orthonormal, rescale: standard, scale: 0.6}
    # `auto` takes what the number of clients and epsilon call for; a learner on the
    # numbers themselves shows what privacy costs, the majority what it must beat.
    protocols:
      - auto
      - {name: clean, label: no privacy, learners: [logistic]}
      - {name: majority, label: nothing learnt}
    epsilon: [0.5, 1, 2, 5]
    replicates: 20
    # schedule: {cron: "0 6 * * 1", timezone: UTC}"""
_BOUNDS = (
    "      # Bounds are public: state what is known without the file, from the",
    "      # device's or the field's limits. Never its least and largest value: those",
    "      # are somebody's.",
)
_TEXTS = (
    "      # The texts that may stand there, known without the file; each becomes a",
    "      # number of its own, 0 or 1. What is neither number nor one of a few texts,",
    "      # such as a date, is no feature: take it out here and there.",
)
_HOURS = (
    "      # The public grid on which every curve is read, in `unit`, for instance",
    "      # {start: 0, stop: 24, points: 49} with unit: h.",
)
_CLOCK = (
    "      # The public grid on which every curve is read, in `unit` (s, min, h or d)",
    "      # since the midnight before a client's first measurement: {start: 0, stop:",
    "      # 24, points: 49} with unit: h is a day, stop: 168 a week.",
)
_REST = (
    "    # `auto` takes what the number of clients and epsilon call for; a learner on",
    "    # the numbers themselves shows what privacy costs, the majority what it must",
    "    # beat.",
    "    protocols:",
    "      - auto",
    "      - {name: clean, label: no privacy, learners: [logistic]}",
    "      - {name: majority, label: nothing learnt}",
    "    epsilon: [1, 2, 5]  # a client's whole budget; smaller is more private",
    "    replicates: 20      # independent repetitions of this study",
    "    # `curvote serve` runs it by itself, at a time or every so many seconds:",
    '    # schedule: {cron: "0 6 * * 1", timezone: UTC}  # or {interval: 3600}',
)


_NO_FEATURE = {
    "code": "numbers with leading zeros: a code",
    "empty": "most of it is empty",
}
_CLASSES = (
    f"      positive: {TO_STATE}     # the label that is to be found, as it stands;",
    "      # with more than two labels instead: classes: [a, b, c]",
)


def _form_settings(layout: FileLayout) -> list[str]:
    """Return the form of the file where it is no plain CSV."""
    form = layout.form.model_dump(exclude_defaults=True)
    return [f"      {key}: {json.dumps(value)}" for key, value in form.items()]


def _excluded_columns(no_feature: dict[str, str], layout: FileLayout) -> list[str]:
    """Return the columns that are no features, and hints for dates."""
    lines = [
        f"      # no feature: {quote_yaml(n)} ({why})" for n, why in no_feature.items()
    ]
    dates = [name for name in no_feature if layout.kinds[name] == "date-time"]
    if dates:
        form = json.dumps(layout.dates.get(dates[0], "%Y-%m-%d"))
        written = f"{quote_yaml(dates[0])}: {form}"
        lines += [
            "      # (A date counts as days where it stands under features, and here",
            f"      # dates: {{{written}}}, bounds like [1920-01-31, 2025-12-31].)",
        ]
    return lines


def quote_yaml(text: str) -> str:
    """Return a text as a YAML scalar, quoted where needed."""
    plain = re.fullmatch(r"([A-Za-z_/]|\.\.?/)[\w./-]*", text, re.ASCII)  # not .5
    if plain and text.lower() not in _NO_TEXT:
        return text
    return json.dumps(text, ensure_ascii=False)


def _pipeline_name(path: str) -> str:
    """Return the name of a pipeline: the file's, without its ending."""
    stem = normalize("NFKD", PurePath(path).name.partition(".")[0])
    stem = stem.encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-").lower()
    return name if re.match(r"[a-z]", name) and name not in _NO_TEXT else f"my-{name}"


def _guess_column(names: list[str], candidates: tuple[str, ...]) -> str | None:
    """Return the first name among the ``candidates``, also as suffix."""
    plain = {re.sub(r"[_ ]?id$", "", n.lower()) or "id": n for n in reversed(names)}
    plain |= {name.strip().lower(): name for name in reversed(names)}
    return next((plain[word] for word in candidates if word in plain), None)


def _yaml_entries(key: str, names: list[str], mark: str) -> list[str]:
    if not names:
        return []
    return [f"      {key}:", *(f"        {quote_yaml(name)}: {mark}" for name in names)]


def _role_sizes(n: int, what: str, why: str) -> list[str]:
    """Return the sizes of the roles for n records, which are public."""
    if not n:
        return [f"    clients: {{train: {TO_STATE}, test: {TO_STATE}}}"]
    train, test = (max(int(share * n), 1) for share in _SIZES)
    return [
        f"    # How many take part is public. There are {n} {what}; some are spare, as",
        f"    # records that {why} may be left out.",
        f"    clients: {{train: {train}, test: {test}}}",
    ]
