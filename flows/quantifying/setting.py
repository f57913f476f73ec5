"""What `curvote utility` is asked: its options, checked, and the records they name."""

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
from curvote.flows.quantifying.model import Given
from curvote.utility.models import asked, classifier, records
from curvote.utility.models.texts import coded
from curvote.utility.setting import Setting, setting
from curvote.validate import FloatArray

# So many records of a larger file are taken, unless --rows says another number; the
# published procedure asks the model half a million times about each.
ROWS: Final = 1000
ROWS_AS_PUBLISHED: Final = 20
SEED: Final = 20240801


@dataclass(frozen=True)
class Options:
    """The options of the command as they were written."""

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
        """Return an option of several names, apart; None where it is not given."""
        given = getattr(self, name)
        if given is None:
            return None
        return [each.strip() for each in given.split(",") if each.strip()]


@dataclass(frozen=True)
class Table:
    """A table's columns by their names, and what errors call it."""

    path: Path
    columns: dict[str, list[Any]]

    @classmethod
    def of(cls, path: Path | None) -> Table:
        """Return the table at ``path``; UserError: none, or a name twice."""
        if path is None:
            raise UserError("give the records that will be noised: --data FILE.csv")
        frame = table_file.read(path)
        names = list(frame.columns)
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"{path}: two columns are called {name!r}; rename one.")
        return cls(path, {name: frame[name].tolist() for name in names})

    def cells(self, name: str, option: str) -> list[Any]:
        """Return a column that an option names."""
        if name not in self.columns:
            hint = did_you_mean(name, self.columns)
            raise UserError(f"{option} {name}: {self.path} has no such column.{hint}")
        return self.columns[name]


@dataclass(frozen=True)
class Subject:
    """A model of numbers, what of them is noised, and how a table is read for it.

    ``bounds`` (s, 2) are those of the columns ``places``.
    """

    model: Any
    described: classifier.Described
    places: tuple[int, ...]
    bounds: FloatArray
    read: Callable[[Table], FloatArray]


@dataclass(frozen=True)
class Records:
    """Records (n, D), their labels as classes' places and their groups, if known."""

    numbers: FloatArray
    labels: NDArray[np.int64] | None = None
    groups: NDArray[np.str_] | None = None

    def of(self, chosen: NDArray[np.int64]) -> Records:
        """Return some of the records."""
        labels = None if self.labels is None else self.labels[chosen]
        groups = None if self.groups is None else self.groups[chosen]
        return Records(self.numbers[chosen], labels, groups)


@dataclass(frozen=True)
class Ready:
    """A setting, what the model is, what to say of both, and if records are a sample.

    ``total`` is the number of records that there were.
    """

    setting: Setting
    described: classifier.Described
    notes: tuple[str, ...]
    total: int

    @property
    def sample(self) -> bool:
        """Whether the records are some of more."""
        return self.setting.n < self.total


def ready(given: Given, options: Options) -> Ready:
    """Return what is asked, with everything checked before anything is computed."""
    curves = isinstance(given.model, CurveClassifier) and options.sensitive is None
    subject = _curves(given, options) if curves else _named(given, options)
    every = _records(given, subject, options)
    chosen = every.of(_sampled(len(every.numbers), options.rows))
    what = subject.described
    kept, notes = records.clipped(
        chosen.numbers, subject.places, subject.bounds, what.features
    )
    made = setting(
        subject.model,
        kept,
        sensitive=subject.places,
        bounds=subject.bounds,
        features=what.features,
        labels=chosen.labels,
        groups=chosen.groups,
        client_side=options.client_side,
        **_others(subject, options),
    )
    told = (*given.notes, *notes, *_checked_answers(made))
    return Ready(made, what, told, len(every.numbers))


def _checked_answers(made: Setting) -> tuple[str, ...]:
    """Return what to say of the model's own answers to the records."""
    said = classifier.answers(made.model, made.records)
    labels = None if made.labels is None else made.classes[made.labels]
    same = classifier.sameness(said, labels)
    return () if same is None else (same,)


def _named(given: Given, options: Options) -> Subject:
    """Return a model of named columns, some of them sensitive."""
    own = options.listed("features")
    if own is None and not hasattr(given.model, "feature_names_in_"):
        own = list(given.names or ()) or None
    what = classifier.described(given.model, own)
    model, texts = coded(given.model)
    names = options.listed("sensitive")
    if names is None:
        raise UserError(
            f"say which of {', '.join(what.features[:20])} are sensitive, with public"
            " bounds: --sensitive NAME,NAME --bounds NAME=LOW:HIGH ..."
        )
    places = asked.sensitive_places(names, what.features)
    for name in names:
        if name in texts:
            known = ", ".join(texts[name][:5])
            raise UserError(f"{name} holds text ({known}); noise is for numbers.")

    def read(table: Table) -> FloatArray:
        return records.matrix(table.columns, what.features, str(table.path), texts)

    return Subject(model, what, places, asked.bounds(options.bounds, names), read)


def _curves(given: Given, options: Options) -> Subject:
    """Return a classifier of curves as one of what a client would send."""
    from curvote.flows.quantifying.curves import of_table, sent

    found = sent(given.model)
    ends = asked.bounds(options.bounds, found.names) if options.bounds else found.bounds
    what = classifier.described(found.model, found.names)
    what = replace(what, kind=type(given.model).__name__)

    def read(table: Table) -> FloatArray:
        names = given.model.columns
        curves = records.matrix(table.columns, names, str(table.path))
        return of_table(curves, given.model, found)

    return Subject(found.model, what, tuple(range(len(found.names))), ends, read)


def _records(given: Given, subject: Subject, options: Options) -> Records:
    if options.data is None and given.pipeline and options.sensitive is None:
        from curvote.flows.quantifying.curves import of_test_clients, sent

        return Records(*of_test_clients(given.pipeline, sent(given.model)))
    table = Table.of(options.data)
    numbers = subject.read(table)
    labels = groups = None
    if options.label is not None:
        labels = _labels(table, subject, options)
    elif options.positive is not None:
        raise UserError("--positive is about a label: name its column by --label.")
    if options.group is not None:
        cells = table.cells(options.group, "--group")
        groups = records.groups(cells, options.group)
    return Records(numbers, labels, groups)


def _labels(table: Table, subject: Subject, options: Options) -> NDArray[np.int64]:
    name = str(options.label)
    classes = subject.described.classes
    cells = table.cells(name, "--label")
    return records.labels(cells, name, classes, options.positive)


def _sampled(n: int, rows: int) -> NDArray[np.int64]:
    """Return which records are taken, in their order: at random, the same each time."""
    most = validate.at_least(1, rows=rows)
    if n <= most:
        return np.arange(n)
    drawn = np.random.default_rng(SEED).choice(n, most, replace=False)
    return np.sort(drawn).astype(np.int64)


def _others(subject: Subject, options: Options) -> dict[str, Any]:
    """Return what is public, and what the model's owner has to train on."""
    found: dict[str, Any] = {}
    if options.public is not None:
        table = Table.of(options.public)
        found["public"] = subject.read(table)
        if options.label in table.columns:
            found["public_labels"] = _labels(table, subject, options)
    if options.train is not None:
        if options.label is None:
            raise UserError("--train needs the column of the label: --label NAME.")
        table = Table.of(options.train)
        classes = np.asarray(subject.described.classes)
        places = _labels(table, subject, options)
        found["train"] = (subject.read(table), classes[places])
    return found
