"""Request of `curvote utility`: options checked, and the records they name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote import table_file, validate
from curvote.curve_classifier import CurveClassifier
from curvote.errors import UserError, did_you_mean
from curvote.flows.quantifying.model import GivenModel
from curvote.utility.models import asked, classifier, records
from curvote.utility.models.texts import code_texts
from curvote.utility.setting import Setting, make_setting
from curvote.validate import FloatArray

# So many records of a larger file are taken, unless --rows says another number; the
# published procedure asks the model half a million times about each.
ROWS: Final = 1000
ROWS_AS_PUBLISHED: Final = 20
SEED: Final = 20240801


@dataclass(frozen=True)
class Options:
    """Options of the command as they were written."""

    data: Path | None = None
    sensitive: str | None = None
    bounds: Sequence[str] = ()
    features: str | None = None
    label: str | None = None
    positive: str | None = None
    group: str | None = None
    public: Path | None = None
    train: Path | None = None
    rows: int = ROWS
    client_side: bool = False

    def listed(self, name: str) -> list[str] | None:
        """Return the names of an option, None where it is not given."""
        text = getattr(self, name)
        if text is None:
            return None
        return [name_part.strip() for name_part in text.split(",") if name_part.strip()]


@dataclass(frozen=True)
class InputTable:
    """Columns of a table by name."""

    path: Path
    columns: dict[str, list[Any]]

    @classmethod
    def of(cls, path: Path | None) -> InputTable:
        """Return the table at ``path``; UserError: none, or a name twice."""
        if path is None:
            raise UserError("give the records that will be noised: --data FILE.csv")
        frame = table_file.read_table(path)
        names = list(frame.columns)
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"{path}: two columns are called {name!r}; rename one.")
        return cls(path, {name: frame[name].tolist() for name in names})

    def cells(self, name: str, option: str) -> list[Any]:
        """Return the column that an option names."""
        if name not in self.columns:
            hint = did_you_mean(name, self.columns)
            raise UserError(f"{option} {name}: {self.path} has no such column.{hint}")
        return self.columns[name]


@dataclass(frozen=True)
class ModelSubject:
    """Model of numbers, its noised columns, and a reader of tables for it.

    ``bounds`` (s, 2) are those of the columns ``places``.
    """

    model: Any
    described: classifier.ModelDescription
    places: tuple[int, ...]
    bounds: FloatArray
    read: Callable[[InputTable], FloatArray]


@dataclass(frozen=True)
class RequestRecords:
    """Records (n, D), with labels as class indices and groups, if known."""

    numbers: FloatArray
    labels: NDArray[np.int64] | None = None
    groups: NDArray[np.str_] | None = None

    def of(self, chosen: NDArray[np.int64]) -> RequestRecords:
        """Return some of the records."""
        labels = None if self.labels is None else self.labels[chosen]
        groups = None if self.groups is None else self.groups[chosen]
        return RequestRecords(self.numbers[chosen], labels, groups)


@dataclass(frozen=True)
class Request:
    """Checked setting, description of the model, and notes on both.

    ``total`` is the number of records that there were.
    """

    setting: Setting
    described: classifier.ModelDescription
    notes: tuple[str, ...]
    total: int

    @property
    def sample(self) -> bool:
        """Whether the records are a sample of more."""
        return self.setting.n < self.total


def prepare(model: GivenModel, options: Options) -> Request:
    """Return the checked request, before anything is computed."""
    curves = isinstance(model.model, CurveClassifier) and options.sensitive is None
    subject = (
        _curves_subject(model, options) if curves else _columns_subject(model, options)
    )
    records_all = _read_records(model, subject, options)
    sampled = records_all.of(_sample_rows(len(records_all.numbers), options.rows))
    description = subject.described
    clipped, notes = records.clip_records(
        sampled.numbers, subject.places, subject.bounds, description.features
    )
    checked_setting = make_setting(
        subject.model,
        clipped,
        sensitive=subject.places,
        bounds=subject.bounds,
        features=description.features,
        labels=sampled.labels,
        groups=sampled.groups,
        client_side=options.client_side,
        **_optional_fields(subject, options),
    )
    all_notes = (*model.notes, *notes, *_answer_notes(checked_setting))
    return Request(checked_setting, description, all_notes, len(records_all.numbers))


def _answer_notes(setting: Setting) -> tuple[str, ...]:
    """Return notes on the model's own answers to the records."""
    predictions = classifier.checked_answers(setting.model, setting.records)
    labels = None if setting.labels is None else setting.classes[setting.labels]
    note = classifier.constant_note(predictions, labels)
    return () if note is None else (note,)


def _columns_subject(model_given: GivenModel, options: Options) -> ModelSubject:
    """Return the subject of a model of named columns."""
    feature_names = options.listed("features")
    if feature_names is None and not hasattr(model_given.model, "feature_names_in_"):
        feature_names = list(model_given.names or ()) or None
    description = classifier.describe_model(model_given.model, feature_names)
    model, texts = code_texts(model_given.model)
    names = options.listed("sensitive")
    if names is None:
        raise UserError(
            f"say which of {', '.join(description.features[:20])} are sensitive, with"
            " public"
            " bounds: --sensitive NAME,NAME --bounds NAME=LOW:HIGH ..."
        )
    places = asked.sensitive_columns(names, description.features)
    for name in names:
        if name in texts:
            listed_texts = ", ".join(texts[name][:5])
            raise UserError(
                f"{name} holds text ({listed_texts}); noise is for numbers."
            )

    def read(table: InputTable) -> FloatArray:
        return records.model_matrix(
            table.columns, description.features, str(table.path), texts
        )

    return ModelSubject(
        model, description, places, asked.parse_bounds(options.bounds, names), read
    )


def _curves_subject(model_given: GivenModel, options: Options) -> ModelSubject:
    """Return the subject of a classifier of curves."""
    from curvote.flows.quantifying.curves import coefficient_model, table_records

    coefficients = coefficient_model(model_given.model)
    ends = (
        asked.parse_bounds(options.bounds, coefficients.names)
        if options.bounds
        else coefficients.bounds
    )
    description = classifier.describe_model(coefficients.model, coefficients.names)
    description = replace(description, kind=type(model_given.model).__name__)

    def read(table: InputTable) -> FloatArray:
        names = model_given.model.columns
        curves = records.model_matrix(table.columns, names, str(table.path))
        return table_records(curves, model_given.model, coefficients)

    return ModelSubject(
        coefficients.model,
        description,
        tuple(range(len(coefficients.names))),
        ends,
        read,
    )


def _read_records(
    model_given: GivenModel, subject: ModelSubject, options: Options
) -> RequestRecords:
    """Return the records that the options name, with labels and groups."""
    if options.data is None and model_given.pipeline and options.sensitive is None:
        from curvote.flows.quantifying.curves import (
            coefficient_model,
            test_client_records,
        )

        return RequestRecords(
            *test_client_records(
                model_given.pipeline, coefficient_model(model_given.model)
            )
        )
    table = InputTable.of(options.data)
    numbers = subject.read(table)
    labels = groups = None
    if options.label is not None:
        labels = _read_labels(table, subject, options)
    elif options.positive is not None:
        raise UserError("--positive is about a label: name its column by --label.")
    if options.group is not None:
        cells = table.cells(options.group, "--group")
        groups = records.group_names(cells, options.group)
    return RequestRecords(numbers, labels, groups)


def _read_labels(
    table: InputTable, subject: ModelSubject, options: Options
) -> NDArray[np.int64]:
    """Return the class index of each record's label."""
    name = str(options.label)
    classes = subject.described.classes
    cells = table.cells(name, "--label")
    return records.label_codes(cells, name, classes, options.positive)


def _sample_rows(n: int, rows: int) -> NDArray[np.int64]:
    """Return the rows to take, in order: a fixed random sample."""
    most = validate.at_least(1, rows=rows)
    if n <= most:
        return np.arange(n)
    chosen_rows = np.random.default_rng(SEED).choice(n, most, replace=False)
    return np.sort(chosen_rows).astype(np.int64)


def _optional_fields(subject: ModelSubject, options: Options) -> dict[str, Any]:
    """Return public and training data for the setting."""
    fields: dict[str, Any] = {}
    if options.public is not None:
        table = InputTable.of(options.public)
        fields["public"] = subject.read(table)
        if options.label in table.columns:
            fields["public_labels"] = _read_labels(table, subject, options)
    if options.train is not None:
        if options.label is None:
            raise UserError("--train needs the column of the label: --label NAME.")
        table = InputTable.of(options.train)
        classes = np.asarray(subject.described.classes)
        places = _read_labels(table, subject, options)
        fields["train"] = (subject.read(table), classes[places])
    return fields
