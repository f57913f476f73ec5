"""Starter pipelines.yaml, made of the columns of a user's file."""

import codecs
import csv
import gzip
import json
import re
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, product
from pathlib import Path, PurePath
from typing import Any, Final, Literal
from unicodedata import normalize

import numpy as np

from curvote.base.errors import UserError
from curvote.base.table_file import (
    DECIMAL_COMMA,
    PLAIN,
    SEPARATORS,
    CsvForm,
    Violations,
    column_names,
    file_kind,
    read_batches,
    refuse_other_separator,
)
from curvote.data.tables import cells

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
    form: CsvForm = PLAIN
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
    if not path.exists():
        raise UserError(f"no file {path}. Name a CSV or Parquet file that is there.")
    form = _guess_form(path) if file_kind(path) == "csv" else PLAIN
    # pandas writes its index without a name
    names = [name for name in column_names(path, form) if name]
    _check_names(path, names, form)
    violations = Violations(path, form)
    first = next(iter(islice(read_batches(path, names, violations), 1)), None)
    violations.check()
    if first is None or not first.num_rows:
        raise UserError(f"{path} has no rows.")
    columns = {name: cells.trim_ids(cells.plain_column(first[name])) for name in names}
    import pyarrow.compute as pc

    texts = [c for c in columns.values() if cells.is_text(c)]
    texts_found = {text for c in texts for text in pc.unique(c).to_pylist() if text}
    unknown = texts_found - {*cells.MARKS}
    absent = tuple(sorted(text for text in unknown if text.lower() in _ABSENT))
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
    n_rows = sum(len(x) for x in read_batches(path, names[:1], Violations(path, form)))
    return FileLayout(path, kinds, n_rows, form, absent, dates, tuple(unique))


def count_runs(path: Path, column: str, form: CsvForm = PLAIN) -> int:
    """Return the number of runs of equal values in a column."""
    import pyarrow.compute as pc

    total, last = 0, object()
    for _, block in cells.read_blocks(path, [column], Violations(path, form)):
        ids = pc.run_end_encode(block[column]).values
        total += len(ids) - (ids[0].as_py() == last)
        last = ids[-1].as_py()
    return total


def _guess_form(path: Path) -> CsvForm:
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
    separator: Any = max(SEPARATORS, key=count_columns)
    return CsvForm(separator=separator, encoding=letters)


def _check_names(path: Path, names: list[str], form: CsvForm) -> None:
    refuse_other_separator(path, names, form)
    if len(names) == 1:
        raise UserError(f"{path} has one column, {names[0]!r}: a label needs another.")
    wrong = sorted({name for name in names if names.count(name) > 1})
    if wrong:
        twice = ", ".join(map(repr, wrong))
        raise UserError(f"{path}: each column needs a name of its own, not {twice}.")


def _present_cells(column: Any, absent: tuple[str, ...]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not cells.is_text(column):
        return column.drop_null()
    marks = pa.array([*cells.MARKS, *absent, None], pa.string())
    return column.filter(pc.invert(pc.is_in(column, marks)))


def _mostly_matches(column: Any, pattern: str) -> bool:
    import pyarrow.compute as pc

    if not cells.is_text(column) or not len(column):
        return False
    return bool(pc.mean(pc.match_substring_regex(column, pattern)).as_py() > 0.5)


def _has_decimal_commas(column: Any) -> bool:
    return _mostly_matches(column, rf"^({DECIMAL_COMMA}|[+-]?\d+)$") and bool(
        re.search(DECIMAL_COMMA, " ".join(column.to_pylist()))
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
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(column) < max(rows, 2) or pc.count_distinct(column).as_py() < len(column):
        return False
    if cells.is_text(column):
        if not _mostly_matches(column, r"^\d+$"):
            number = rf"^[+-]?[\d.]+$|^{DECIMAL_COMMA}$"
            return not _mostly_matches(column, number) and not _date_form(column)
        if _mostly_matches(column, r"^0\d+$"):
            return True
        column = column.cast(pa.float64())
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        return False
    ends = pc.min_max(column).as_py()
    return bool(ends["max"] - ends["min"] == len(column) - 1)


def _column_kind(column: Any, written: str) -> Kind:
    import pyarrow.compute as pc

    if not cells.is_text(column):
        return "date-time" if cells.is_date_time(column) else "number"
    if written or cells.is_date_time(column):
        return "date-time"
    leading_zeros = pc.any(pc.match_substring_regex(column, r"^0\d+$")).as_py()
    if leading_zeros and _mostly_matches(column, r"^\d+$"):
        return "code"
    # A word here and there in a column of numbers is for `check` to name, and commas.
    comma = pc.match_substring_regex(column, f"^{DECIMAL_COMMA}$")
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
    dates = (name for name in no_feature if layout.kinds[name] == "date-time")
    date = next(((name, layout.dates.get(name, "%Y-%m-%d")) for name in dates), None)
    return _write_pipeline(
        layout,
        path,
        form="table",
        absent=layout.absent,
        id=id_column,
        label=label,
        numbers_and_texts=features,
        numbers=[name for name in features if layout.kinds[name] == "number"],
        texts=[name for name in features if layout.kinds[name] != "number"],
        no_feature=no_feature,
        date=date,
        n=layout.rows,
        what="rows",
        spare="repeat another" if id_column is None else "lack a value",
    )


def curves_pipeline(layout: FileLayout, path: str) -> tuple[str, str]:
    """Return the name and the text of a pipeline for curves, one measurement a row."""
    # The columns of a long file: by their names, the last one by what is left.
    axes = _guess_axes(layout.names)
    four: dict[str, Any] = {}
    remaining = [name for name in layout.names if name not in axes]
    for key, words in _LONG_COLUMNS.items():
        guess = _guess_column(remaining, words) or TO_STATE
        four[key] = axes if axes and key == "value" else guess
        remaining = [name for name in remaining if name != four[key]]
    open_ = [key for key, column in four.items() if column == TO_STATE]
    if len(open_) == len(remaining):
        four |= dict(zip(open_, remaining, strict=True))
    has_id = four["id"] != TO_STATE
    return _write_pipeline(
        layout,
        path,
        form="curves",
        columns=four,
        dates=layout.dates.get(four["time"], "%Y-%m-%d"),
        clock="date-time" in layout.kinds.values(),
        n=count_runs(layout.path, four["id"], layout.form) if has_id else 0,
        what="clients",
        spare="are too patchy",
    )


def _write_pipeline(
    layout: FileLayout, path: str, *, n: int, **fields: Any
) -> tuple[str, str]:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    texts = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        autoescape=False,  # noqa: S701 - YAML, quoted below
    )
    texts.filters |= {
        "yaml": quote_yaml,
        "json": json.dumps,
        "text": partial(json.dumps, ensure_ascii=False),
    }
    # The pipeline's name is the file's, without its ending.
    stem = normalize("NFKD", PurePath(path).name.partition(".")[0])
    stem = stem.encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-").lower()
    if not re.match(r"[a-z]", name) or name in _NO_TEXT:
        name = f"my-{name}"
    return name, texts.get_template("starter.yaml.j2").render(
        fields,
        name=name,
        path=path,
        written=layout.form.model_dump(exclude_defaults=True),
        n=n,
        sizes=[max(int(share * n), 1) for share in _SIZES],
    )


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
_NO_FEATURE = {
    "code": "numbers with leading zeros: a code",
    "empty": "most of it is empty",
}


def quote_yaml(text: str | list[str]) -> str:
    """Return a text, or a list of some, as YAML, quoted where needed."""
    if isinstance(text, list):
        return f"[{', '.join(map(quote_yaml, text))}]"
    plain = re.fullmatch(r"([A-Za-z_/]|\.\.?/)[\w./-]*", text, re.ASCII)  # not .5
    if plain and text.lower() not in _NO_TEXT:
        return text
    return json.dumps(text, ensure_ascii=False)


def _guess_axes(names: list[str]) -> list[str]:
    """Return the columns of three axes, such as acc_x, acc_y and acc_z."""
    by_name = {name.lower(): name for name in names}
    stems = [name[:-1] for name in by_name if name.endswith("x")]
    threes = [[stem + axis for axis in "xyz"] for stem in stems]
    axes = next((three for three in threes if {*three} <= {*by_name}), [])
    return [by_name[axis] for axis in axes]


def _guess_column(names: list[str], candidates: tuple[str, ...]) -> str | None:
    """Return the first name among the ``candidates``, also as suffix."""
    plain = {re.sub(r"[_ ]?id$", "", n.lower()) or "id": n for n in reversed(names)}
    plain |= {name.strip().lower(): name for name in reversed(names)}
    return next((plain[word] for word in candidates if word in plain), None)
