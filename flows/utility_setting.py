"""What `curvote utility` is asked: its options, checked, and the records they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote import table_file, validate
from curvote.curve_classifier import CurveClassifier
from curvote.errors import UserError, did_you_mean
from curvote.utility.models import asked, classifier, records
from curvote.utility.setting import Setting, setting
from curvote.validate import FloatArray
from flows.utility_model import Given

# So many records of a larger file are taken, unless --rows says another number.
ROWS: Final = 1000
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
    rows: int | None = None
    client_side: bool = False

    def listed(self, name: str) -> list[str] | None:
        """Return an option of several names, apart; None where it is not given."""
        given = getattr(self, name)
        if given is None:
            return None
        return [each.strip() for each in given.split(",") if each.strip()]


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
    made = _of_curves(given, options) if curves else _of_file(given, options)
    said = classifier.answers(made.setting.model, made.setting.records)
    labels = made.setting.labels
    classes = np.asarray(made.setting.model.classes_)
    same = classifier.sameness(said, None if labels is None else classes[labels])
    return replace(made, notes=(*made.notes, *([same] if same else [])))


def _of_file(given: Given, options: Options) -> Ready:
    """Return what is asked of a model of named columns."""
    own = options.listed("features")
    if own is None and not hasattr(given.model, "feature_names_in_"):
        own = list(given.names or ()) or None
    what = classifier.described(given.model, own)
    names = options.listed("sensitive")
    if names is None:
        raise UserError(
            f"say which of {', '.join(what.features[:20])} are sensitive, with public"
            " bounds: --sensitive NAME,NAME --bounds NAME=LOW:HIGH ..."
        )
    places = asked.sensitive_places(names, what.features)
    ends = asked.bounds(options.bounds, names)
    columns = _columns(options.data)
    rows = records.matrix(columns, what.features, str(options.data))
    return _assembled(given, options, what, (rows, columns), (places, ends))


def _assembled(
    given: Given,
    options: Options,
    what: classifier.Described,
    table: tuple[FloatArray, dict[str, list[Any]]],
    noised: tuple[tuple[int, ...], FloatArray],
) -> Ready:
    rows, columns = table
    places, ends = noised
    chosen = _sampled(len(rows), options.rows)
    labels = _labels(columns, options, what)
    groups = _groups(columns, options)
    kept, notes = records.clipped(rows[chosen], places, ends, what.features)
    made = setting(
        given.model,
        kept,
        sensitive=places,
        bounds=ends,
        features=what.features,
        labels=None if labels is None else labels[chosen],
        groups=None if groups is None else groups[chosen],
        client_side=options.client_side,
        **_others(options, what),
    )
    return Ready(made, what, (*given.notes, *notes), len(rows))


def _of_curves(given: Given, options: Options) -> Ready:
    """Return what is asked of a classifier of curves: of what a client would send."""
    from flows.utility_curves import of_table, of_test_clients, sent

    found = sent(given.model)
    ends = asked.bounds(options.bounds, found.names) if options.bounds else found.bounds
    columns: dict[str, list[Any]] = {}
    labels = None
    if options.data is None:
        rows, labels = of_test_clients(given.pipeline, found)
    else:
        columns = _columns(options.data)
        curves = records.matrix(columns, given.model.columns, str(options.data))
        rows = of_table(curves, given.model, found)
    what = classifier.described(found.model, found.names)
    what = replace(what, kind=type(given.model).__name__)
    places = tuple(range(len(found.names)))
    own = replace(given, model=found.model)
    made = _assembled(own, options, what, (rows, columns), (places, ends))
    if labels is None:
        return made
    chosen = _sampled(len(rows), options.rows)
    return replace(made, setting=replace(made.setting, labels=labels[chosen]))


def _columns(path: Path | None) -> dict[str, list[Any]]:
    """Return a table's columns by their names, each once."""
    if path is None:
        raise UserError("give the records that will be noised: --data FILE.csv")
    frame = table_file.read(path)
    names = list(frame.columns)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(f"{path}: two columns are called {twice[0]!r}; rename one.")
    return {name: frame[name].tolist() for name in names}


def _sampled(n: int, rows: int | None) -> NDArray[np.int64]:
    """Return which records are taken, in their order: at random, the same each time."""
    most = ROWS if rows is None else validate.at_least(1, rows=rows)
    if n <= most:
        return np.arange(n)
    drawn = np.random.default_rng(SEED).choice(n, most, replace=False)
    return np.sort(drawn).astype(np.int64)


def _labels(
    columns: dict[str, list[Any]], options: Options, what: classifier.Described
) -> NDArray[np.int64] | None:
    if options.label is None:
        if options.positive is not None:
            raise UserError("--positive is about a label: name its column by --label.")
        return None
    cells = _cells(columns, options.label, "--label", options.data)
    return records.labels(cells, options.label, what.classes, options.positive)


def _groups(columns: dict[str, list[Any]], options: Options) -> NDArray[np.str_] | None:
    if options.group is None:
        return None
    cells = _cells(columns, options.group, "--group", options.data)
    return records.groups(cells, options.group)


def _cells(
    columns: dict[str, list[Any]], name: str, option: str, path: Path | None
) -> list[Any]:
    if name not in columns:
        hint = did_you_mean(name, columns)
        raise UserError(f"{option} {name}: {path} has no such column.{hint}")
    return columns[name]


def _others(options: Options, what: classifier.Described) -> dict[str, Any]:
    """Return what is public, and what the model's owner has to train on."""
    found: dict[str, Any] = {}
    if options.public is not None:
        columns = _columns(options.public)
        found["public"] = records.matrix(columns, what.features, str(options.public))
        if options.label in columns:
            cells = columns[options.label]
            found["public_labels"] = records.labels(
                cells, str(options.label), what.classes, options.positive
            )
    if options.train is not None:
        found["train"] = _train(options, what)
    return found


def _train(
    options: Options, what: classifier.Described
) -> tuple[FloatArray, NDArray[Any]]:
    if options.label is None:
        raise UserError("--train needs the column of the label: --label NAME.")
    path = options.train
    columns = _columns(path)
    rows = records.matrix(columns, what.features, str(path))
    cells = _cells(columns, options.label, "--label", path)
    places = records.labels(cells, options.label, what.classes, options.positive)
    return rows, np.asarray(what.classes)[places]
