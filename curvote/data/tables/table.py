"""User's own table, CSV or Parquet, one client a row, as a data set.

A feature is a number with public bounds, or a text of public categories, each of which
becomes a number of its own, 0 or 1. A text that is no category is refused: as a row of
zeros, a misspelt category or a new code of the laboratory would pass for data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
import pydantic
from numpy.typing import NDArray

from curvote.base.table_file import (
    MAX_LISTED,
    CsvForm,
    Violations,
    convert_column,
)
from curvote.data import columns, raw_files, reader
from curvote.data.columns import ClientColumns, Feature, Paths, Text
from curvote.data.reader import TableParameters, TableSchema
from curvote.data.tables import cells
from curvote.data.tables.card import FileCard, column_cards
from curvote.data.tables.cells import SPELT, ColumnSpans, Floats, Integers, RepeatedRows

Bounds = dict[str, tuple[pydantic.FiniteFloat, pydantic.FiniteFloat]]
Categories = dict[
    str, Annotated[tuple[columns.LabelText, ...], columns.DISTINCT_CLASSES]
]


class Parameters(columns.Labelled, TableParameters, CsvForm):
    """Settings of ``source:``: file, columns, classes, features' bounds."""

    name: Literal["table"] = "table"
    path: Text
    label: Text
    features: Annotated[tuple[Text, ...], pydantic.Field(min_length=1)]
    categories: Categories = pydantic.Field(default_factory=dict)
    missing_values: tuple[Text, ...] = ()
    dates: dict[str, Text] = pydantic.Field(default_factory=dict)
    bounds: Bounds = pydantic.Field(default_factory=dict)
    id: Text | None = None

    @pydantic.model_validator(mode="before")
    @classmethod
    def _check_repeats(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and values.get("id") is not None:
            return {"duplicates": "keep", **values}
        return values

    @pydantic.field_validator("features")
    @classmethod
    def _check_features(
        cls, features: tuple[str, ...], info: pydantic.ValidationInfo
    ) -> tuple[str, ...]:
        columns = [*features, info.data.get("label")]
        twice = sorted({name for name in features if columns.count(name) > 1})
        if twice:
            raise ValueError(f"columns that are named twice: {', '.join(twice)}")
        return features

    @pydantic.field_validator("categories", "dates")
    @classmethod
    def _check_named(
        cls, of: dict[str, Any], info: pydantic.ValidationInfo
    ) -> dict[str, Any]:
        features, texts = info.data.get("features", of), {}
        what = "categories of what is no feature"
        if info.field_name == "dates":
            what, texts = "dates of what is no number", info.data.get("categories", {})
        other = [name for name in of if name not in features or name in texts]
        if other:
            raise ValueError(f"{what}: {', '.join(other)}")
        return of

    @pydantic.field_validator("bounds", mode="before")
    @classmethod
    def _dates_to_days(cls, bounds: Any, info: pydantic.ValidationInfo) -> Any:
        if not isinstance(bounds, Mapping):
            return bounds
        days = {
            name: [*map(_date_to_days, bounds[name])]
            for name in info.data.get("dates", {})
            if isinstance(bounds.get(name), list | tuple)
        }
        return {**bounds, **days}

    @pydantic.field_validator("bounds")
    @classmethod
    def _check_complete(cls, bounds: Bounds, info: pydantic.ValidationInfo) -> Bounds:
        if "categories" not in info.data:  # wrong, and said
            return bounds
        features, texts = info.data.get("features", bounds), info.data["categories"]
        need = (
            "every feature needs public bounds [low, high], or categories, known"
            " without the data; there are none for"
        )
        problems = {
            need: [x for x in features if x not in {*bounds, *texts}],
            "bounds of what is no feature": [x for x in bounds if x not in features],
            "bounds of what has categories": [x for x in bounds if x in texts],
            "the first must be below the second": [
                name for name, (low, high) in bounds.items() if not low < high
            ],
        }
        messages = [f"{what}: {', '.join(x)}" for what, x in problems.items() if x]
        if messages:
            raise ValueError("; ".join(messages))
        return bounds

    @pydantic.field_validator("id")
    @classmethod
    def _check_other_column(
        cls, name: str | None, info: pydantic.ValidationInfo
    ) -> str | None:
        if name in {*info.data.get("features", ()), info.data.get("label")} - {None}:
            raise ValueError(
                "it must be another column than the features and the label"
            )
        return name


def _date_to_days(end: object) -> object:
    try:
        return (date.fromisoformat(str(end)) - date(1970, 1, 1)).days
    except ValueError:
        return end


_DAY: Final = 86_400 * cells.MICROSECONDS


@dataclass(frozen=True, eq=False)
class TableBlock:
    """Rows of the file from ``begin`` on: ids (m,), features (m, p), codes."""

    begin: int
    ids: Integers
    values: Floats
    codes: Integers

    def select(self, chosen: slice | NDArray[np.bool_]) -> TableBlock:
        """Return some of the rows."""
        columns = self.ids[chosen], self.values[chosen], self.codes[chosen]
        begin = self.begin + (chosen.start or 0 if isinstance(chosen, slice) else 0)
        return TableBlock(begin, *columns)


class TableCells:
    """A pass over the table at ``path``, with its cells as numbers.

    Labels become codes in the order in which they are met, those that are listed first;
    ``label_codes`` holds their texts, and ``empty`` the rows without an id. What is
    wrong is counted in ``violations``.
    """

    def __init__(
        self, parameters: Parameters, path: Path, violations: Violations
    ) -> None:
        self.parameters, self.path, self.violations = parameters, path, violations
        self.label_codes = parameters.places
        self.empty: list[Integers] = []
        self._listed = len(self.label_codes)
        self._features = table_schema(parameters, ()).features

    def blocks(self) -> Iterator[TableBlock]:
        """Yield the rows; none at all is a UserError."""
        its = self.parameters
        wanted = [*its.features, its.label, *([its.id] if its.id else [])]
        for begin, block in cells.read_blocks(self.path, wanted, self.violations):
            codes = self._labels(block[its.label], begin)
            values = self.features(block, begin)
            ids = self._client_ids(block, len(codes), begin)
            yield TableBlock(begin, ids, values, codes)

    def ids(self) -> Iterator[Integers]:
        """Yield the ids alone, row numbers without a column of ids."""
        wanted = [self.parameters.id or self.parameters.label]
        for begin, block in cells.read_blocks(self.path, wanted, self.violations):
            yield self._client_ids(block, len(block[wanted[0]]), begin)

    def check_ids(self, parts: list[Integers]) -> None:
        """Count ids that repeat an earlier one; empty ones are counted elsewhere."""
        if self.parameters.id is None or not parts:
            return
        ranked = np.concatenate(parts)
        ranked.sort()
        if (ranked[1:] != ranked[:-1]).all():
            return
        every = np.concatenate(parts)
        nonempty = np.delete(np.arange(len(every)), np.concatenate(self.empty))
        again = np.ones(len(nonempty), dtype=bool)
        again[np.unique(every[nonempty], return_index=True)[1]] = False
        rows = nonempty[again]
        what = f"{self.parameters.id} repeats an earlier one{SPELT}"
        self.violations.add(what, len(rows), self._rows_with_ids(rows[:MAX_LISTED]))

    def _rows_with_ids(self, rows: Integers) -> Iterator[tuple[int, str]]:
        """Yield rows (ascending) with their written ids, for a message."""
        name, unheard = str(self.parameters.id), Violations(self.path, self.parameters)
        for begin, block in cells.read_blocks(self.path, [name], unheard):
            column = cells.trim_ids(block[name])
            for row in rows[(rows >= begin) & (rows < begin + len(column))].tolist():
                yield row + 1, repr(column[row - begin].as_py())

    def features(self, columns: dict[str, Any], begin: int = 0) -> Floats:
        """Return features (m, p) of rows, NaN where missing or of no use."""
        parts: list[Floats] = []
        for feature in self._features:
            codes = self._feature_values(feature.name, columns[feature.name], begin)
            indicators = [
                np.where(np.isnan(codes), np.nan, codes == code)
                for code in range(len(feature.categories))
            ]
            parts += indicators or [codes]
        return np.column_stack(parts)

    def _labels(self, column: Any, begin: int) -> Integers:
        """Return the codes of the labels, those listed as their places."""
        name = self.parameters.label
        most = self._listed + cells.VOCABULARY
        codes = cells.encode_labels(column, self.label_codes, most)
        self._count_violation(f"{name} is empty", codes < 0, begin)
        if self._listed:
            what = f"{name} {self.parameters.unlisted_text}"
            self._count_violation(what, codes >= self._listed, begin, column)
        return codes

    def _feature_values(self, name: str, column: Any, begin: int) -> Floats:
        """Return a feature, NaN where it is missing: a number, or a category's code."""
        texts = sorted(self.parameters.categories.get(name, ()))
        if not texts:
            return self._feature_numbers(name, column, begin)
        column = self._null_missing(column, texts)
        code_of = {text: code for code, text in enumerate(texts)}
        codes = cells.encode_labels(column, code_of)
        what = f"{name} is none of the categories {', '.join(texts)}"
        self._count_violation(what, codes >= len(texts), begin, column)
        return np.where(codes < 0, np.nan, codes)

    def _feature_numbers(self, name: str, column: Any, begin: int) -> Floats:
        """Return a feature, NaN where missing; count cells that are no number.

        A date is a number, too, where the source says how dates are written: days
        since 1970-01-01.
        """
        import pyarrow.compute as pc

        column, form = self._null_missing(column), self.parameters.dates.get(name)
        with convert_column(self.path, name, column):
            if form:
                values = cells.wall_clock(column, form) / _DAY
            else:
                values = cells.parse_numbers(column, self.parameters.decimal)
        is_number_text = np.asarray(pc.is_valid(column)) & cells.is_text(column)
        wrong = np.isinf(values) | (np.isnan(values) & is_number_text)
        what = f"a date like {form}" if form else "a finite number"
        self._count_violation(f"{name} is not {what}", wrong, begin, column)
        return values

    def _client_ids(self, columns: dict[str, Any], n: int, begin: int) -> Integers:
        column_name = self.parameters.id
        if column_name is None:
            return np.arange(begin + 1, begin + n + 1)
        column = cells.trim_ids(columns[column_name])
        empty = np.asarray(column.is_null())
        self.empty.append(np.flatnonzero(empty) + begin)
        self._count_violation(f"{column_name} is empty", empty, begin)
        return cells.identify_column(self.path, column_name, column)[0]

    def _null_missing(self, column: Any, meant: Collection[str] = ()) -> Any:
        """Return trimmed texts, null where one means missing; numbers as they are."""
        own_marks = self.parameters.missing_values
        marks = [mark for mark in (*cells.MARKS, *own_marks) if mark not in meant]
        return cells.null_marks(column, marks)

    def _count_violation(
        self, what: str, wrong: NDArray[np.bool_], begin: int, examples: Any = None
    ) -> None:
        cells.count_wrong(self.violations, what, wrong, begin, examples)


def table_schema(parameters: Parameters, classes: tuple[str, ...]) -> TableSchema:
    """Return the table's public layout, a text feature as its categories' codes."""
    why, texts = "stated by the user", parameters.categories
    features = []
    for name in parameters.features:
        if name in texts:
            features.append(columns.category_feature(name, texts[name], why))
        else:
            features.append(Feature(name, "", *parameters.bounds[name], why))
    return TableSchema(
        features=tuple(features),
        label=parameters.label,
        labels={name: place for place, name in enumerate(classes)},
        classes=classes,
    )


def spread_schema(parameters: Parameters, classes: tuple[str, ...]) -> TableSchema:
    """Return the schema with a 0/1 feature for each category.

    A missing text is a bit of each of them: its public centre.
    """
    plain, shares = table_schema(parameters, classes), parameters.categories
    features = tuple(
        replace(feature, centre=1 / len(shares[f.name])) if f.categories else feature
        for f in plain.features
        for feature in (columns.indicator_features(f) or (f,))
    )
    return replace(plain, features=features)


Bits = NDArray[np.bool_]
CLIENTS: Final = 65_536


@dataclass(frozen=True, eq=False)
class TableSurvey(reader.TableCounts):
    """The counts of a whole table file.

    ``first`` (rows,) are the rows that repeat no earlier one; None where that is no
    question. ``missing`` are the values that each feature lacks before rows are left
    out for it, ``labels`` the texts by code, and ``spans`` how the features' values lie
    within their bounds.
    """

    schema: TableSchema
    first: Bits | None
    labels: tuple[str, ...]
    spans: ColumnSpans


def survey_table(parameters: Parameters, path: Path) -> TableSurvey:
    """Return the survey of the file at ``path``; UserError: violations.

    A file that stays the same is read once.
    """
    stamp = raw_files.stamp(path)
    return _cached_survey(parameters.model_dump_json(), path, stamp)


@lru_cache(maxsize=1)
def _cached_survey(wanted: str, path: Path, _stamp: tuple[int, ...]) -> TableSurvey:
    parameters = Parameters.model_validate_json(wanted)  # mappings have no hash
    violations = Violations(path, parameters)
    table = TableCells(parameters, path, violations)
    repeated, ids = RepeatedRows(), list[Integers]()

    def noted_blocks() -> Iterator[TableBlock]:
        for block in table.blocks():
            repeated.add(np.column_stack([block.values, block.codes]))
            ids.append(block.ids)
            yield block

    total = _RowCounts(noted_blocks(), parameters)
    table.check_ids(ids)
    codes = table.label_codes
    names = columns.resolve_classes(violations, parameters.label, codes, parameters)
    first, rows = repeated.first_occurrences(), total.rows
    distinct = rows if first is None else int(first.sum())
    if parameters.duplicates != "distinct":
        first = None
    if first is not None:
        again = TableCells(parameters, path, violations).blocks()
        total = _RowCounts(_choose_rows(again, first), parameters)
    schema = spread_schema(parameters, names)
    missing = dict(zip(schema.names, total.missing.tolist(), strict=True))
    if parameters.missing == "keep":
        reader.refuse_empty_cells(dict(zip(missing, total.empty.tolist(), strict=True)))
    if parameters.missing == "drop" and not total.codes.sum():
        raise reader.no_rows_error()
    by_label = dict(zip(codes, total.codes.tolist(), strict=False))
    counts = [by_label.get(name, 0) for name in names]
    return TableSurvey(
        rows, distinct, missing, counts, schema, first, (*codes,), total.spans
    )


class _RowCounts:
    """Counts over the rows of blocks.

    All ``rows``, those that stay clients by label code (``codes``), values of each
    feature that are ``missing`` or ``empty`` cells, and the ``spans`` of all.
    """

    def __init__(self, blocks: Iterator[TableBlock], parameters: Parameters) -> None:
        schema = spread_schema(parameters, ())
        lower, upper = np.array([(f.lower, f.upper) for f in schema.features], float).T
        self.rows, self.codes = 0, np.zeros(1, dtype=np.int64)
        self.missing, self.empty = np.zeros((2, len(lower)), dtype=np.int64)
        self.spans = ColumnSpans(lower, upper)
        for block in blocks:
            missing = parameters.missing
            absent, stay, _ = reader.settle_missing(block.values, schema, missing)
            codes = block.codes[stay & (block.codes >= 0)]
            size = max(len(self.codes), int(codes.max(initial=0)) + 1)
            counted = np.bincount(codes, minlength=size)
            counted[: len(self.codes)] += self.codes
            self.codes = counted
            self.rows += len(block.ids)
            self.missing += absent.sum(axis=0)
            self.spans.add(block.values, absent)
            self.empty += np.isnan(block.values).sum(axis=0)


def _choose_rows(
    blocks: Iterator[TableBlock], first: Bits | None
) -> Iterator[TableBlock]:
    for block in blocks:
        end = block.begin + len(block.ids)
        yield block if first is None else block.select(first[block.begin : end])


SIMULATED = False
USER_FILE = True  # the file is the user's: no publisher, no entry in sources.toml

files, size = columns.always(("path",)), columns.always(None)
classes = columns.listed_classes


def width(parameters: Parameters) -> int:
    """Return how many numbers a row has by the pipeline."""
    texts = parameters.categories
    return sum(len(texts.get(name, ("",))) for name in parameters.features)


def facts(parameters: Parameters, paths: Paths) -> dict[str, Any]:
    """Return the public metadata of the file's clients.

    Raises:
        UserError: an unreadable file, or all violations by kind, with their count and
            at most ten rows each; row 1 is the first below the header.
    """
    path = paths["path"]
    survey = survey_table(parameters, path)
    notes = ["The unit of privacy is one row of the table."]
    title = f"Table {path.name}"
    metadata = reader.facts(survey.schema, survey, title, notes, parameters)
    texts = {name: sorted(names) for name, names in parameters.categories.items()}
    return metadata | ({"categories": texts} if texts else {})


def examined(parameters: Parameters, paths: Paths) -> FileCard:
    """Return the card of the file for its owner; UserError: violations."""
    path = paths["path"]
    survey = survey_table(parameters, path)
    counts = dict(zip(survey.schema.classes, survey.counts, strict=True))
    clients, missing = sum(counts.values()), survey.missing
    keeps_repeats = parameters.duplicates == "keep"
    fills = parameters.missing == "centre"
    client_count = survey.rows if keeps_repeats else survey.distinct
    n = survey.rows - survey.distinct  # rows that equal an earlier one
    equal = "1 row equals" if n == 1 else f"{n:,} rows equal"
    if parameters.id and keeps_repeats:
        text = "their ids differ, so they are kept as other people"
    elif parameters.id:
        text = (
            "left out though their ids differ. If these are other people, as where"
            " columns are coarse, write duplicates: keep"
        )
    else:
        text = (
            "nothing says whether these are other people. Name a column that tells"
            " them apart, id: COLUMN, or write duplicates: keep; they are left out"
        )
    needs_remark = n and (parameters.id or not keeps_repeats)
    return FileCard(
        path=path,
        rows=survey.rows,
        clients=clients,
        classes=counts,
        columns=column_cards([*missing], survey.spans, [*missing.values()]),
        repeats=n,
        repeats_are="kept" if keeps_repeats else "left out",
        left_out={"a value is missing": client_count - clients},
        filled=sum(missing.values()) if fills else 0,
        more=(f"{equal} an earlier one: {text}.",) if needs_remark else (),
    )


def pieces(parameters: Parameters, paths: Paths) -> Iterator[ClientColumns]:
    """Yield client_id, label, group (n,) and curve (n, p) of at most 65,536 clients.

    Without a column ``id`` a client is named by its row; see `cells.identify` for what
    a text becomes.
    """
    path = paths["path"]
    counts = survey_table(parameters, path)
    place = np.array([counts.schema.classes.index(text) for text in counts.labels])
    begin = 0
    table = TableCells(parameters, path, Violations(path, parameters))
    for block in _choose_rows(table.blocks(), counts.first):
        for start in range(0, len(block.ids), CLIENTS):
            part = block.select(slice(start, start + CLIENTS))
            _, stay, values = reader.settle_missing(
                part.values, counts.schema, parameters.missing
            )
            n = int(stay.sum())
            ids, labels = part.ids[stay], place[part.codes[stay]]
            groups = np.arange(begin, begin + n)
            yield columns.client_columns(values[stay], labels, ids, groups)
            begin += n


def members(parameters: Parameters, paths: Paths) -> Iterator[ClientColumns]:
    """Yield client_id and group of the clients of ``pieces``, without curves.

    Only the column of ids is read, unless other ones decide who is a client.
    """
    if parameters.duplicates == "distinct" or parameters.missing == "drop":
        for piece in pieces(parameters, paths):
            yield {name: piece[name] for name in ("client_id", "group")}
        return
    path = paths["path"]
    violations, seen_ids, begin = Violations(path, parameters), list[Integers](), 0
    table = TableCells(parameters, path, violations)
    for ids in table.ids():
        seen_ids.append(ids)
        yield {"client_id": ids, "group": np.arange(begin, begin + len(ids))}
        begin += len(ids)
    table.check_ids(seen_ids)
    violations.check()


def clients(parameters: Parameters, paths: Paths) -> ClientColumns:
    """Return all ``pieces`` as one table: for files that fit into memory."""
    return columns.join_pieces(pieces(parameters, paths))
