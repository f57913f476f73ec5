"""Tables of an owner: their stated form, and records or labels read by it.

A task is held against this statement alone, before the table is opened. Were it held
against the table, each refusal would answer a question of the server's without noise:
whether a class is there, or on which side of a bound half of a column lies.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any, Final

import numpy as np
import pydantic
from numpy.typing import NDArray

from curvote.base import table_file, validate
from curvote.base.classes import Classes
from curvote.base.errors import Problem, UserError
from curvote.base.table_file import Cells, Violations
from curvote.base.text import format_names, normalise_id, printable_name
from curvote.ledger.account import POPULATION, Account
from curvote.ledger.book import Ledger
from curvote.wire import strict_json
from curvote.wire.task import BESIDE, Task, confusable_form

PLACEHOLDER: Final = "TO_STATE"
# A column of which the task's bounds hold less than that is taken for one of another
# unit; by the owner's statement, so that no value has a say in it.
_LEAST_SHARE: Final = 0.5
_LARGEST: Final = 1 << 20  # bytes of a form
_FORM_SETTING: Final = "form"


class Column(pydantic.BaseModel):
    """A numeric column of a form: its unit and its known bounds."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    bounds: tuple[pydantic.FiniteFloat, pydantic.FiniteFloat]
    unit: str = ""

    @pydantic.field_validator("bounds")
    @classmethod
    def _check_increasing(cls, bounds: tuple[float, float]) -> tuple[float, float]:
        if not bounds[0] < bounds[1]:
            raise ValueError("the first must be below the second")
        return bounds


class Form(pydantic.BaseModel):
    """The stated form of a table: id, label, classes and columns.

    ``id`` is the column that names each record (None: its row), ``label`` the one with
    its class, ``classes`` all that may stand there, ``columns`` what a server may ask
    about.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    label: str = pydantic.Field(min_length=1)
    classes: tuple[str, ...] = pydantic.Field(min_length=2)
    id: str | None
    columns: dict[str, Column] = pydantic.Field(default_factory=dict)

    @pydantic.field_validator("classes", mode="before")
    @classmethod
    def _classes_to_text(cls, classes: Any) -> Any:
        """Return classes as text, also where YAML reads numbers or booleans."""
        if not isinstance(classes, list | tuple):
            return classes
        return tuple(
            str(name).lower() if isinstance(name, bool) else normalise_id(str(name))
            for name in classes
        )

    @pydantic.field_validator("classes")
    @classmethod
    def _refuse_lookalikes(cls, classes: tuple[str, ...]) -> tuple[str, ...]:
        if len({confusable_form(word) for word in classes}) < len(classes):
            raise ValueError("two classes look alike: write them in another way")
        return tuple(Classes(classes))

    @pydantic.field_validator("columns")
    @classmethod
    def _refuse_named_columns(
        cls, columns: dict[str, Column], info: pydantic.ValidationInfo
    ) -> Any:
        reserved = {info.data.get("id"), info.data.get("label")} & columns.keys()
        if reserved:
            names = ", ".join(map(str, reserved))
            raise ValueError(f"{names}: id and label are no numbers")
        return columns

    @property
    def text(self) -> str:
        """The form as canonical JSON, which the ledger stores."""
        return strict_json.canonical_json(self.model_dump(mode="json")).decode()

    @property
    def record_naming(self) -> str:
        """The way records are named in the ledger: by id or by row."""
        return "row" if self.id is None else "id"

    def refuse_misfit(
        self, features: Sequence[tuple[str, float, float]], task_classes: Classes
    ) -> None:
        """Refuse (UserError) a task that does not fit the form."""
        task_names = {normalise_id(name) for name in task_classes}
        problems = [
            f"it has no class {printable_name(name)}, which your records may have"
            for name in self.classes
            if normalise_id(name) not in task_names
        ]
        for name, lower, upper in features:
            column = self.columns.get(name)
            if column is None:
                problems.append(f"your form states no column {printable_name(name)}")
                continue
            low, high = column.bounds
            common = min(high, upper) - max(low, lower)
            if common < _LEAST_SHARE * (high - low):
                unit = f" {printable_name(column.unit)}" if column.unit else ""
                problems.append(
                    f"{printable_name(name)} is asked for from {lower:g} to {upper:g},"
                    f" and yours goes from {low:g} to {high:g}{unit}: another unit?"
                )
        if problems:
            place = "the task does not fit the form of your table: "
            raise UserError.several(
                Problem(f"{place}{words}. Nothing was read, nothing drawn.")
                for words in problems
            )


def current_form(ledger: Ledger) -> Form | None:
    """Return the newest form that the ledger holds, or None."""
    return _newest_form(ledger)[0]


def _newest_form(ledger: Ledger) -> tuple[Form | None, int]:
    text_found, number = None, 0
    while (text := ledger.setting(f"{_FORM_SETTING} {number + 1}")) is not None:
        text_found, number = text, number + 1
    if text_found is None:
        return None, 0
    document = strict_json.parse_json(text_found.encode(), _LARGEST)
    return Form.model_validate(document), number


def store_form(ledger: Ledger, form: Form) -> None:
    """Store a form in the ledger; after a release only columns are added.

    Afterwards columns may be added. UserError: another id, label, class or column.
    """
    current, number = _newest_form(ledger)
    named = Account.from_ledger(ledger).records
    if named is not None and named != form.record_naming:
        raise UserError(
            f"your ledger knows records by {named}, so {form.record_naming} would take"
            " them for others, and forget what was spent about them."
        )
    if current == form:
        return
    if current is not None and any(e.counts for e in ledger.entries(POPULATION)):
        same_columns = {name: form.columns.get(name) for name in current.columns}
        if (current.id, current.label, current.classes, current.columns) != (
            *(form.id, form.label, form.classes, same_columns),
        ):
            raise UserError(
                "something was released under the form that your ledger holds, so what"
                " it states stays: columns may be added, nothing else changes. Another"
                " table needs a ledger of its own (--ledger)."
            )
    ledger.store_setting(f"{_FORM_SETTING} {number + 1}", form.text)


def describe_form(form: Form) -> list[str]:
    """Return a form as text, one line for each part."""
    columns = [
        f"column  {printable_name(name)}: {column.bounds[0]:g} to {column.bounds[1]:g}"
        + (f" {printable_name(column.unit)}" if column.unit else "")
        for name, column in form.columns.items()
    ]
    id_text = "its row" if form.id is None else printable_name(form.id)
    label = f"label   {printable_name(form.label)}: {format_names(form.classes)}"
    return [f"id      {id_text}", label, *columns]


def read_table_form(path: Path) -> Form:
    """Return the form in a YAML file; UserError lists all problems."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        if path.stat().st_size > _LARGEST:
            raise UserError(f"{path} is too large for a form.")
        document = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (YAMLError, UnicodeError) as error:
        reason = str(error).split("\n")[0]
        raise UserError(f"{path} is no YAML: {reason}.") from None
    if not isinstance(document, Mapping):
        raise UserError(f"{path} holds no form: id, label, classes and columns.")
    try:
        return Form.model_validate(document)
    except pydantic.ValidationError as error:
        problems = []
        for problem in error.errors():
            words = f": {problem['msg'].removeprefix('Value error, ')}."
            if problem["input"] == PLACEHOLDER:
                words = " is still to be stated."
            place = ".".join(map(str, problem["loc"]))
            problems.append(Problem(f"{path}: {place}{words}"))
        raise UserError.several(problems) from None


def draft_form(path: Path) -> str:
    """Return the text of a form for a table, with its column names only."""
    names = [*map(str, table_file.read_cells(path).columns)]
    registry = names == ["record", "label"]
    to_state = f"{{unit: {PLACEHOLDER}, bounds: [{PLACEHOLDER}, {PLACEHOLDER}]}}"
    columns = [
        f"  {json.dumps(name, ensure_ascii=False)}: {to_state}"
        for name in names
        if not registry
    ]
    heading = "columns:" if columns else "columns: {}"
    return "\n".join(
        [
            f"# The form of {path.name}: what its owner knows without it. Tasks",
            "# are held against this, and never against the table.",
            "# id: the column that names each record (null: its row); label: the one",
            "# with its class; classes: all that may stand there.",
            f"id: {'record' if registry else PLACEHOLDER}",
            f"label: {'label' if registry else PLACEHOLDER}",
            f"classes: [{PLACEHOLDER}, {PLACEHOLDER}]",
            "# What a server may ask about. Bounds come from the device, the unit or a",
            "# guideline, never from the table. Take out id, label and all the rest.",
            heading,
            *columns,
            "",
        ]
    )


Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Bounded = Sequence[tuple[str, float, float]]


@dataclass(frozen=True, eq=False)
class TableRecords:
    """The records of a table: values (n, d), class codes (n,) and ids.

    A code is the label's place among the classes. ``ids`` (n,) name the records in the
    ledger, as `curvote.base.text.normalise_id` spells them. ``notes`` are what the
    holder should hear, a line each.
    """

    values: Array
    codes: Codes
    ids: list[str]
    notes: tuple[str, ...]


def read_records(
    path: Path,
    form: Form,
    features: Bounded,
    classes: Sequence[str],
    words: Sequence[str] = (),
) -> TableRecords:
    """Return the records that a task asks of the table at ``path``.

    ``features`` are (name, lower, upper) and ``classes`` those of the task; without an
    id a record is called by its row. Cells in columns of private ``words``, where the
    table has such, are joined with the label's. UserError, every problem at once, with
    lines, and the same whatever a task asks for: a column of the form that is not there
    or stands twice, no row, a cell that is no finite number, a label that is no class
    of the form, an id that is empty or stands twice.
    """
    table, violations = table_file.read_cells(path), Violations(path)
    if not len(table):
        violations.note("it has no row")
    named_columns = [form.label, *([] if form.id is None else [form.id])]
    violations.note_columns(table.columns, [*form.columns, *named_columns])
    once = {name for name in table.columns if table.columns.count(name) == 1}
    present = [name for name in form.columns if name in once]
    numbers = table_file.read_numbers(table, present, violations)
    codes = np.zeros(len(table), dtype=np.int64)
    if form.label in once:
        columns = [form.label, *(name for name in words if name in once)]
        codes = _read_class_codes(table, columns, form.classes, violations)
    ids = [f"row {row}" for row in range(1, len(table) + 1)]
    if form.id in once:
        texts = table_file.read_texts(table, str(form.id), violations)
        ids = [*map(normalise_id, texts)]
        words = f"{form.id}: an id that stood there before"
        violations.note_rows(table, table_file.repeated_texts(ids), words)
    violations.check()
    values = numbers[:, [present.index(name) for name, _, _ in features]]
    places = {normalise_id(name): place for place, name in enumerate(classes)}
    codes = np.array([places[normalise_id(name)] for name in form.classes])[codes]
    notes = []
    for column, (name, lower, upper) in zip(values.T, features, strict=True):
        if out := int(((column < lower) | (column > upper)).sum()):
            words = f"{out} of {len(column)} values lie beyond {lower:g} to {upper:g}"
            notes.append(f"{printable_name(name)}: {words} and are clipped")
    notes += [
        f"no record is {printable_name(name)}"
        for place, name in enumerate(classes)
        if place not in codes
    ]
    return TableRecords(values, codes, ids, tuple(notes))


def _read_class_codes(
    table: Cells, columns: Sequence[str], classes: Sequence[str], violations: Violations
) -> Codes:
    """Return the places of the labels among the classes; others are noted.

    A label is what stands in the columns, joined as in a task of private words.
    """
    label = BESIDE.join(columns)
    place = {normalise_id(name): place for place, name in enumerate(classes)}
    place |= {name: code for code, name in enumerate(classes)}
    cells = [table_file.read_texts(table, name, violations) for name in columns]
    texts = [BESIDE.join(row) if all(row) else "" for row in zip(*cells, strict=True)]
    codes = [place.get(text, place.get(normalise_id(text), -1)) for text in texts]
    strange = {text for text, code in zip(texts, codes, strict=True) if code < 0}
    for text in sorted(strange - {""})[: table_file.MAX_LISTED]:
        rows = np.array([cell == text for cell in texts])
        words = f"{label}: {printable_name(text)} is none of {format_names(classes)},"
        violations.note_rows(table, rows, words)
    return np.array(codes, dtype=np.int64)


# What a registry's columns are called unless its form says otherwise.
RECORD_COLUMN: Final = "record"
LABEL_COLUMN: Final = "label"


def read_labels(
    path: Path, form: Form, classes: Sequence[str], words: Sequence[str] = ()
) -> TableRecords:
    """Return the records of a registry's table: names and labels, no values.

    A label is joined with the private ``words`` that stand in columns of their own.

    UserError: as of `read_records`.
    """
    record = RECORD_COLUMN if form.id is None else form.id
    names = form.model_copy(update={"id": record, "columns": {}})
    return read_records(path, names, (), classes, words)


# What else than an empty place says that a value is missing.
MISSING_MARKS = ("", "na", "n/a", "null", "none", "<na>", "nan", "-nan", "+nan", "nat")


@dataclass(frozen=True, eq=False)
class OwnerRecord:
    """An owner's record and its label.

    Its ``values`` (C T,) are on the task's grid, channel by channel, or (m, C) at
    ``times`` (m,) of their own; NaN where one is missing.
    """

    values: Array
    label: int
    times: Array | None = None


def read_record(path: Path, label: str, task: Task) -> OwnerRecord:
    """Return the owner's record for ``task``; UserError if it is malformed.

    If the task smooths curves, a table is taken as well: below a header a first column
    of times, in the unit of the grid, and one of measurements for each channel.
    """
    validate.one_of(task.classes, label=label)
    place, onto = task.classes.index(label), task.encoding.projection
    points = onto.matrix.shape[1]
    header, rows = _read_rows(path)
    on_grid = len(header) < 2 or (len(rows), len(header)) == (1, points)
    if on_grid or not task.encoding.smooth:
        return OwnerRecord(_values_of_line(path, rows, points), place)
    times, values = _measurements(path, header, rows, onto.channels)
    return OwnerRecord(values, place, times)


def read_curve(path: Path, points: int) -> Array:
    """Return the curve (T,) in a file, one row or one column; UserError: it is none."""
    return _values_of_line(path, _read_rows(path)[1], points)


def _measurements(
    path: Path, header: list[str], rows: list[list[Any]], channels: Sequence[str]
) -> tuple[Array, Array]:
    """Return the times (m,) and the values (m, C) of a table."""
    _, *names = (str(name).strip() for name in header)
    wanted = [*channels] or names[:1]
    if sorted(names) != sorted(wanted):
        measured = format_names(channels) if channels else "measurements alone"
        raise UserError(
            f"{path} has the columns {format_names(header)}; the task asks for a first"
            f" column of times and behind it {measured}, a column each."
        )
    cells = [[_parse_cell(cell) for cell in row] for row in rows if row]
    for number, row in enumerate(cells, 1):
        if None in row:
            raise _no_number_error(path, f"row {number} below the header holds what")
    table = np.array(cells, dtype=np.float64).reshape(-1, len(header))
    table = table[table[:, 0].argsort(kind="stable")]  # as a study reads a file
    return table[:, 0], table[:, [1 + names.index(name) for name in wanted]]


def _read_rows(path: Path) -> tuple[list[str], list[list[Any]]]:
    """Return a file's header of words, empty if it has none, and its other rows."""
    suffix, rows, header = path.suffix.lower(), list[list[Any]](), list[str]()
    if suffix not in {".csv", ".parquet"}:
        raise UserError(f"{path} must end in one of .csv, .parquet.")
    try:
        if suffix == ".csv":
            rows += table_file.strict_rows(path)
            if not rows or len({len(row) for row in rows if row}) > 1:
                raise ValueError("no rows, or rows of different lengths")
            words = rows[0] and all(_parse_cell(cell) is None for cell in rows[0])
            if words and len(rows) > 1:
                header, *rows = rows
        else:
            import pandas as pd

            frame = pd.read_parquet(path)
            header, rows = [*map(str, frame)], frame.to_numpy(dtype=object).tolist()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # noqa: BLE001 - a reader's errors are of any kind
        kind = type(error).__name__
        raise UserError(f"{path} is no such table: {kind} while reading it.") from None
    return header, rows


def _no_number_error(path: Path, what: str) -> UserError:
    return UserError(
        f"{path}: {what} is no number, and does not say that it is missing (an empty"
        " place or NaN)."
    )


def _values_of_line(path: Path, rows: list[list[Any]], points: int) -> Array:
    """Return the ``points`` values (T,) of a file, NaN where missing.

    The ``rows`` are one row or one column, behind a header or without. Each cell
    is a number, however large, or says that it is missing. Anything else is a UserError
    about the file's form; it says no value, and depends on none.
    """
    if max((len(row) for row in rows), default=0) > 1:
        rows = [row for row in rows if row]
    else:
        while len(rows) > points and not rows[-1]:
            rows = rows[:-1]
        rows = [row or [""] for row in rows]  # a line that is empty is a value missing
    width = max((len(row) for row in rows), default=0)
    if min(len(rows), width) != 1:
        raise UserError(
            f"{path} holds {len(rows)} rows and {width} columns of values; a curve is"
            " one row or one column (a header may stand above it, if it is words)."
        )
    cells = rows[0] if len(rows) == 1 else [row[0] for row in rows]
    if len(cells) != points:
        raise UserError(
            f"{path} holds {len(cells)} values; the task's grid has {points} points."
        )
    values = [_parse_cell(cell) for cell in cells]
    if None in values:
        raise _no_number_error(path, f"value {values.index(None)} (counted from 0)")
    return np.array(values, dtype=np.float64)


def _parse_cell(cell: Any) -> float | None:
    """Return the number in a cell, NaN if missing, None if it is neither."""
    if str(cell).strip().lower() in MISSING_MARKS:
        return math.nan
    if not isinstance(cell, str | Real | Decimal):
        return None
    try:
        return float(cell)
    except OverflowError:  # a number beyond what a float can hold
        return -math.inf if str(cell).startswith("-") else math.inf
    except ValueError:
        return None
