"""Request of `curvote utility`: options as written, checked with model and records."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base import table_file, validate
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError, did_you_mean
from curvote.base.validate import FloatArray
from curvote.curves.columns import record_matrix
from curvote.curves.curve_classifier import CurveClassifier
from curvote.curves.encoding import Encoding
from curvote.mechanisms.base import SMALLEST_EPSILON, LabelMechanism
from curvote.mechanisms.factory import mechanism_class
from curvote.mechanisms.registry import MECHANISMS
from curvote.messages.roles import roles_of_table
from curvote.systems.utility.method import measurement
from curvote.systems.utility.method.deployment import (
    OUTPUT,
    READ_ORDER,
    Deployment,
    Setting,
    deployment_channel,
    make_setting,
)
from curvote.systems.utility.method.engines.discriminants import LinearModel
from curvote.systems.utility.method.models import records
from curvote.systems.utility.method.models.records import code_texts
from curvote.systems.utility.method.profile import Profile, build_profile
from curvote.systems.utility.method.scan import list_deployments
from curvote.systems.utility.stages import measure_drawn

# Coefficients beyond so many public scales from the public centre are clipped.
REACH = 3


def test_client_records(view: Any, column: str) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the numbers and labels of a study's own test clients, (n, d) and (n,).

    ``column`` is the one that holds what is sent. UserError: in production nobody may
    read them, or the pipeline has none.
    """
    if view.settings.production:
        raise UserError(
            "this pipeline is in production: its clients' own records are not to be"
            " read, not even for this. Give records of volunteers: --data FILE.csv"
        )
    if not view.holds("project", "encoded"):
        raise UserError("this pipeline keeps no records of its own; give --data FILE.")
    rows = view.columns("project", "encoded")
    params = {name: view.setting(name) for name in ("seed", "clients")}
    params["source.groups"] = getattr(view.settings.source, "groups", None)
    test = roles_of_table(rows, params, 0)["test"]
    return rows[column][test], (np.asarray(rows["label"])[test] > 0).astype(np.int64)


@dataclass(frozen=True)
class GivenModel:
    """Model with notes for its reader, and MLflow's names of its columns.

    ``pipeline`` is the one that it is the latest model of, None for any other.
    """

    model: Any
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None
    pipeline: Any = None


def sensitive_columns(named: Sequence[str], features: Sequence[str]) -> tuple[int, ...]:
    """Return the column numbers of the sensitive features."""
    if not named:
        raise UserError("no feature is sensitive: name them, --sensitive age,bmi.")
    for name in named:
        validate.one_of(features, sensitive=name)
    if len(set(named)) < len(named):
        raise UserError(f"--sensitive names a feature twice: {','.join(named)}.")
    return tuple(list(features).index(name) for name in named)


def parse_bounds(texts: Sequence[str], sensitive: Sequence[str]) -> FloatArray:
    """Return public bounds (s, 2) of texts ``name=low:high``, one a feature.

    UserError: one is missing, given twice, of no sensitive feature, or the wrong way.
    """
    by_name: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, _, ends = text.partition("=")
        low, _, high = ends.partition(":")
        try:
            least, most = float(low), float(high)
        except ValueError:
            raise UserError(
                f"--bounds {text}: write NAME=LOW:HIGH, such as age=0:100."
            ) from None
        if not (math.isfinite(least) and math.isfinite(most)):
            raise UserError(f"--bounds {text}: bounds are finite numbers.")
        if least >= most:
            turned = f"; the other way round: {name}={high}:{low}"
            turned = turned if least > most else ""
            raise UserError(
                f"--bounds {text}: the first must be below the second{turned}."
            )
        name = name.strip()
        if name not in sensitive:
            hint = did_you_mean(name, sensitive)
            raise UserError(f"--bounds {text}: {name!r} is not sensitive.{hint}")
        if name in by_name:
            raise UserError(f"--bounds gives those of {name} twice.")
        by_name[name] = least, most
    absent = [name for name in sensitive if name not in by_name]
    if absent:
        ask = " ".join(f"--bounds {name}=LOW:HIGH" for name in absent)
        raise UserError(
            f"no bounds of {', '.join(absent)}: state what anybody may know of the"
            f" least and the largest value, never the extremes of the records: {ask}"
        )
    return np.array([by_name[name] for name in sensitive])


def check_epsilons(totals: Sequence[float]) -> tuple[float, ...]:
    """Return totals of epsilon in rising order, each once and above 0."""
    for value in totals:
        validate.positive(epsilon=value)
        if value < SMALLEST_EPSILON:
            raise UserError(
                f"epsilon is {value:g}; the least is {SMALLEST_EPSILON:.2g}."
            )
    return tuple(sorted(set(map(float, totals))))


# So many records of a larger file are taken, unless --rows says another number; the
# published procedure asks the model half a million times about each.
ROWS: Final = 1000
ROWS_AS_PUBLISHED: Final = 20
SEED: Final = 20240801


@dataclass(frozen=True)
class Options:
    """Options of the command, checked where neither model nor records are needed."""

    data: Path | None
    sensitive: str | None
    bounds: Sequence[str]
    epsilon: Sequence[float]
    target: float | None
    metric: str
    share: float | None
    label: str | None
    positive: str | None
    group: str | None
    public: Path | None
    train: Path | None
    mechanism: Sequence[str]
    read: Sequence[str]
    features: str | None
    rows: int | None
    confidence: float
    draws: int
    delta: float
    client_side: bool
    as_published: bool

    def __post_init__(self) -> None:
        for name in self.mechanism:
            validate.one_of(MECHANISMS, mechanism=name)
        for name in self.read:
            validate.one_of(READ_ORDER, read=name)
        for name in ("target", "share"):
            if getattr(self, name) is not None:
                validate.fraction(**{name: getattr(self, name)})
        validate.one_of(("agreement", "accuracy"), metric=self.metric)
        validate.fraction(confidence=self.confidence)
        validate.at_least(1, draws=self.draws)
        if not 0 <= self.delta < 1:
            raise UserError(f"delta is {self.delta!r}; it must be in [0, 1).")
        check_epsilons(self.epsilon)

    def listed(self, name: str) -> list[str] | None:
        """Return the names of an option, None where it is not given."""
        text = getattr(self, name)
        if text is None:
            return None
        return [part.strip() for part in text.split(",") if part.strip()]


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

    ``bounds`` (s, 2) are those of the columns ``places``; ``column`` is that of a
    pipeline's projected clients that holds what is sent, "" where none does.
    """

    model: Any
    described: records.ModelDescription
    places: tuple[int, ...]
    bounds: FloatArray
    read: Callable[[InputTable], FloatArray]
    column: str = ""

    def labels(self, table: InputTable, options: Options) -> NDArray[np.int64]:
        """Return the class index of each record's label."""
        name, classes = str(options.label), self.described.classes
        cells = table.cells(name, "--label")
        return records.label_codes(cells, name, classes, options.positive)


@dataclass(frozen=True)
class Request:
    """Checked setting, description of the model, and notes on both.

    ``total`` is the number of records that there were.
    """

    options: Options
    setting: Setting
    described: records.ModelDescription
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
    fields: dict[str, Any] = {}
    if options.data is None and model.pipeline and options.sensitive is None:
        numbers, fields["labels"] = test_client_records(model.pipeline, subject.column)
    else:
        table = InputTable.of(options.data)
        numbers = subject.read(table)
        if options.label is not None:
            fields["labels"] = subject.labels(table, options)
        elif options.positive is not None:
            raise UserError("--positive is about a label: name its column by --label.")
        if options.group is not None:
            cells = table.cells(options.group, "--group")
            fields["groups"] = records.group_names(cells, options.group)
    total, usual = len(numbers), ROWS_AS_PUBLISHED if options.as_published else ROWS
    most = validate.at_least(1, rows=options.rows or usual)
    if total > most:  # a fixed random sample, in order
        chosen = np.random.default_rng(SEED).choice(total, most, replace=False)
        chosen.sort()
        numbers = numbers[chosen]
        fields = {name: values[chosen] for name, values in fields.items()}
    description = subject.described
    clipped, notes = records.clip_records(
        numbers, subject.places, subject.bounds, description.features
    )
    if options.public is not None:
        table = InputTable.of(options.public)
        fields["public"] = subject.read(table)
        if options.label in table.columns:  # read by nothing, but checked
            subject.labels(table, options)
    if options.train is not None:
        if options.label is None:
            raise UserError("--train needs the column of the label: --label NAME.")
        table = InputTable.of(options.train)
        classes = np.asarray(description.classes)
        places = subject.labels(table, options)
        fields["train"] = (subject.read(table), classes[places])
    setting = make_setting(
        subject.model,
        clipped,
        sensitive=subject.places,
        bounds=subject.bounds,
        features=description.features,
        client_side=options.client_side,
        **fields,
    )
    predictions = records.checked_answers(setting.model, setting.records)
    labels = None if setting.labels is None else setting.classes[setting.labels]
    note = records.constant_note(predictions, labels)
    all_notes = (*model.notes, *notes, *(() if note is None else (note,)))
    return Request(options, setting, description, all_notes, total)


def _columns_subject(model_given: GivenModel, options: Options) -> ModelSubject:
    feature_names = options.listed("features")
    if feature_names is None and not hasattr(model_given.model, "feature_names_in_"):
        feature_names = list(model_given.names or ()) or None
    description = records.describe_model(model_given.model, feature_names)
    model, texts = code_texts(model_given.model)
    names = options.listed("sensitive")
    if names is None:
        raise UserError(
            f"say which of {', '.join(description.features[:20])} are sensitive, with"
            " public bounds: --sensitive NAME,NAME --bounds NAME=LOW:HIGH ..."
        )
    places = sensitive_columns(names, description.features)
    for name in names:
        if name in texts:
            listed = ", ".join(texts[name][:5])
            raise UserError(f"{name} holds text ({listed}); noise is for numbers.")

    def read(table: InputTable) -> FloatArray:
        where, columns = str(table.path), description.features
        return records.model_matrix(table.columns, columns, where, texts)

    bounds = parse_bounds(options.bounds, names)
    return ModelSubject(model, description, places, bounds, read)


def _curves_subject(model_given: GivenModel, options: Options) -> ModelSubject:
    """Return the subject of a classifier of curves: of the d numbers c1, ..., cd.

    A client would send its coefficients, noised, and the server would judge those; a
    linear classifier of z, or of the coefficients, is one of what the server then has.
    UserError: these have no public bounds, neither those of z nor stated ones.
    """
    classifier = model_given.model
    encoding = Encoding.from_json(classifier.encoding)
    coef = np.asarray(classifier.coef)
    if encoding.feature_map == "inner_products":
        coef = encoding.projection.gram @ coef
    negative, positive = classifier.classes_
    model = LinearModel(coef, float(classifier.intercept), (negative, positive))
    names = tuple(f"c{place}" for place in range(1, len(coef) + 1))
    constants, rescaled = encoding.constants, encoding.feature_map == "rescaled"
    ends: tuple[Any, Any]
    if rescaled and encoding.rescale in {"tanh", "max_abs", "min_max"}:
        ends = -1.0, 1.0
    elif "lower" in constants:
        ends = constants["lower"], constants["upper"]
    elif "scale" not in constants:
        raise UserError(
            "this pipeline states no public bounds of its coefficients (rescale:"
            f" {encoding.rescale}): no noise on them can be measured. State centre and"
            " scale, or lower and upper, and run it again."
        )
    elif rescaled:
        ends = -float(REACH), float(REACH)
    else:
        reach = REACH * np.asarray(constants["scale"])
        centre = np.asarray(constants["centre"])
        ends = centre - reach, centre + reach
    bounds = np.column_stack([np.broadcast_to(end, encoding.d) for end in ends])
    if options.bounds:
        bounds = parse_bounds(options.bounds, names)
    description = records.describe_model(model, names)
    description = replace(description, kind=type(classifier).__name__)
    column = "z" if rescaled else "coefficients"

    def read(table: InputTable) -> FloatArray:
        columns, where = classifier.columns, str(table.path)
        curves = records.model_matrix(table.columns, columns, where)
        encoded = encoding.encode(record_matrix(curves, columns, encoding.projection))
        return encoded.z if rescaled else encoded.coefficients

    places = tuple(range(len(names)))
    return ModelSubject(model, description, places, bounds, read, column)


Progress = Callable[[str], None]


@dataclass(frozen=True)
class DeploymentRows:
    """Deployment with its rows: of all records, then of each group."""

    deployment: Deployment
    rows: list[measurement.Row]

    @property
    def row(self) -> measurement.Row:
        """Row of all records."""
        return self.rows[0]


@dataclass(frozen=True)
class Analysis:
    """Result of the command: rows, floors among them, and recommendations."""

    ready: Request
    profile: Profile
    lines: list[DeploymentRows]
    advice: dict[float | None, measurement.Recommendation]


def analyse(ready: Request, say: Progress) -> Analysis:
    """Return the analysis of a model and its records, by the steps of the stages."""
    setting, options, n = ready.setting, ready.options, ready.setting.n
    if options.metric == "accuracy" and setting.labels is None:
        raise UserError("accuracy is about a label: name its column by --label.")
    reads = tuple(name for name in READ_ORDER if name in options.read)
    needs = {
        "decode": (setting.public, "public records as its prior: --public FILE.csv"),
        "retrain": (setting.train, "training records: --train FILE.csv"),
    }
    for name in reads:
        if name in needs and needs[name][0] is None:
            raise UserError(f"--read {name} needs {needs[name][1]}")
    if options.as_published:
        say(f"asking about {n} records as published, 516,446 times each or more")
    totals = check_epsilons(options.epsilon)
    candidates = list_deployments(
        setting,
        totals,
        tuple(options.mechanism) or None,
        reads=reads or None,
        delta=options.delta,
    )
    _check_mechanisms(setting, candidates)
    published = SeededEntropy(SEED) if options.as_published else None
    profile = build_profile(setting, published=published)
    say(f"the model is known around {n} records (engine {profile.engine})")
    from joblib import Parallel, delayed

    measure_one = partial(
        measure_drawn,
        setting,
        profile,
        number=options.draws,
        seed=SEED,
        confidence=options.confidence,
    )
    measurements = Parallel(n_jobs=-1, prefer="threads")(
        map(delayed(measure_one), candidates)
    )
    scanned = list(zip(candidates, measurements, strict=True))
    say(f"{len(candidates)} deployments measured")
    common: dict[str, Any] = {"target": options.target, "sample": ready.sample}
    lines = [
        DeploymentRows(pair[0], measurement.make_rows(setting, *pair, **common))
        for pair in scanned
    ]
    aim = {**common, "metric": options.metric, "share": options.share, "seed": SEED}
    advice = {
        total: measurement.recommend(setting, profile, scanned, epsilon=total, **aim)
        for total in ((None,) if options.target is not None else totals)
    }
    say("recommended from one half of the records, with the figures of the other")
    return Analysis(ready, profile, lines, advice)


def _check_mechanisms(setting: Setting, candidates: Sequence[Deployment]) -> None:
    """Refuse a mechanism that cannot be made, or whose outputs are no number each."""
    first = {candidate.mechanism: candidate for candidate in reversed(candidates)}
    for name, deployment in first.items():
        if deployment.free or name == OUTPUT:
            continue
        law = deployment_channel(setting, deployment).law(setting.values[:1])
        if law is None and issubclass(mechanism_class(name), LabelMechanism):
            raise UserError(
                f"--mechanism {name}: its outputs are codes, and no number that could"
                " stand in a feature's place."
            )
