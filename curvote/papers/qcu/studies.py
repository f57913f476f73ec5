"""Studies of QCU: tables, records, models, the two classifiers, printed numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import InternalError
from curvote.base.validate import FloatArray
from curvote.data import raw_files
from curvote.data.public.published_tables import CHURN, STROKE
from curvote.data.reader import PublishedTable
from curvote.papers.rows import Row, percent, published_rows
from curvote.pipeline.config.project import Project
from curvote.systems.utility.method.engines.base import Question, Surface, choose_engine
from curvote.systems.utility.method.profile import Box, certify_box

if TYPE_CHECKING:
    import pandas as pd


_PLACES = {"first": 0, "second": 1}


def is_worst_case(setting: str) -> bool:
    """Return whether a setting is the worst of its records."""
    return setting.startswith("worst of ")


def record_group(setting: str) -> str:
    """Return the setting's name of its records alone: "first 100"."""
    some = setting.split(" of ")[1:]
    return f"first {some[0]}" if some else setting


def select_records(records: FloatArray, setting: str) -> FloatArray:
    """Return the records of a setting: "first", "second" or "first 100"."""
    if setting in _PLACES:
        return records[[_PLACES[setting]]]
    return records[: int(setting.removeprefix("first "))]


def summarize_shares(setting: str, shares: FloatArray) -> float:
    """Return the setting's summary of the shares: first, mean or minimum."""
    return float(np.min(shares) if is_worst_case(setting) else np.mean(shares))


UNIT: Final = np.array([0.0, 1.0])
BOUNDS: Final = np.tile(UNIT, (2, 1))
MODELS: Final = ("logistic", "forest")
_SEED: Final = 42
_HELD_OUT: Final = 0.2


@dataclass(frozen=True)
class Study:
    """A table: divisors of its columns, two sensitive columns, row count.

    ``single`` is the place of the record that has figures of its own, ``misread`` what
    the authors read there instead. Gaps are filled with the mean of the rows.
    """

    table: PublishedTable[Any]
    scales: Mapping[str, float]
    sensitive: tuple[str, str]
    rows: int | None = None
    single: int = 0
    misread: Mapping[str, float] = field(default_factory=dict)

    @property
    def places(self) -> tuple[int, ...]:
        """The places of the sensitive columns."""
        return tuple(list(self.scales).index(name) for name in self.sensitive)

    def read(self, project: Project) -> tuple[FloatArray, NDArray[np.int64]]:
        """Return the records (n, D) and their labels (n,), from a project's files."""
        file = raw_files.locate(project.root, self.table.file)
        if file is None:
            raise InternalError(f"{self.table.file}: neither a file nor an error")
        return self.scale_table(self.table.load(self.table.file, file.path))

    def scale_table(self, table: pd.DataFrame) -> tuple[FloatArray, NDArray[np.int64]]:
        """Return the scaled records (n, D) and labels (n,) of a table."""
        rows = table.iloc[: self.rows]
        columns = rows[list(self.scales)]
        scaled = columns.fillna(columns.mean()) / list(self.scales.values())
        labels = rows[self.table.schema.label].to_numpy(dtype=np.int64)
        return scaled.to_numpy(dtype=np.float64), labels

    def setting_records(self, records: FloatArray, setting: str) -> FloatArray:
        """Return the records that a setting names, (n, D): its age means ``single``."""
        if not setting.startswith("age "):
            return select_records(records, setting)
        record = records[[self.single]]
        for name, value in self.misread.items():
            record[:, list(self.scales).index(name)] = value / self.scales[name]
        return record


STUDIES: Final = {
    "stroke": Study(
        STROKE,
        {
            "age": 100,
            "hypertension": 1,
            "heart_disease": 1,
            "ever_married": 1,
            "avg_glucose_level": 300,
            "bmi": 50,
        },
        ("age", "bmi"),
        rows=1000,
        single=4,
    ),
    # The authors' edition has two columns more.
    "churn": Study(
        CHURN,
        {
            "CreditScore": 1000,
            "Age": 100,
            "Tenure": 10,
            "Balance": 250_000,
            "NumOfProducts": 4,
            "IsActiveMember": 1,
            "EstimatedSalary": 200_000,
        },
        ("Age", "EstimatedSalary"),
        misread={"Age": 22},
    ),
}


def fit_model(kind: str, records: FloatArray, labels: NDArray[np.int64]) -> Any:
    """Return the model ``kind``, fitted on four fifths of the records."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    model = {
        "logistic": LogisticRegression(random_state=_SEED),
        "forest": RandomForestClassifier(100, random_state=_SEED),
    }[kind]
    X, _, y, _ = train_test_split(
        records, labels, test_size=_HELD_OUT, random_state=_SEED, stratify=labels
    )
    return model.fit(X, y)


POINT: Final = np.array([[0.5, 0.5]])
PRINTED_RADIUS: Final = 0.20  # example 1 and figure 3
PRINTED_BOXES: Final = {  # example 3 and figure 5
    "a": np.array([[0.0, 0.55], [0.0, 0.8]]),
    "b": np.array([[0.0, 0.7], [0.0, 0.7]]),
}


def example_network() -> Any:
    """Return example 5: two rectified units with the printed weights."""
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier((2,), max_iter=1)
    model.partial_fit(BOUNDS, [1, 2], classes=[1, 2])
    outer, offset = np.array([[-3.05, 0.40], [4.02, -0.22]]), np.array([0.94, -0.58])
    # Two classes have one output here: the second less the first.
    model.coefs_ = [
        np.array([[-1.86, -2.09], [0.12, -0.46]]).T,
        np.diff(outer, axis=0).T,
    ]
    model.intercepts_ = [np.array([3.71, -0.08]), np.diff(offset)]
    return model


def example_quadratic() -> Any:
    """Return example 4: normal classes around (0, 0) and (1, 1), variances 1 and 2."""
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

    # Four points of the wanted mean and variance are what it estimates them from.
    corners = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    X = np.vstack([corners, 1 + math.sqrt(2) * corners])
    return QuadraticDiscriminantAnalysis().fit(X, np.repeat([1, 2], len(corners)))


CLASSIFIERS: Final = {"network": example_network, "quadratic": example_quadratic}


def example_question(model: Any) -> Question:
    """Return the robustness question of a classifier around (.5, .5)."""
    return Question(model, POINT, (0, 1), BOUNDS)


def quadratic_distance(point: FloatArray) -> float:
    """Return a point's distance from the boundary of example 4."""
    return abs(2 * math.sqrt(math.log(2) + 1) - float(np.hypot(*(point + 1))))


@dataclass(frozen=True)
class RobustModel:
    """Records and model as a question, with its surface and box."""

    question: Question
    surface: Surface
    box: Box

    @property
    def values(self) -> FloatArray:
        """The sensitive values of the records, (n, s)."""
        return self.question.values


@lru_cache(maxsize=4)
def analyze_setting(project: Project, name: str, setting: str) -> RobustModel:
    """Return the surface and box of ``name`` around a setting's records.

    ``setting`` names them as `settings.record_group` and "age 79" do.
    """
    study, records, model = _fitted_model(project, name)
    return analyze(study, model, study.setting_records(records, setting))


@lru_cache(maxsize=4)
def _fitted_model(project: Project, name: str) -> tuple[Study, FloatArray, Any]:
    table, _, kind = name.partition("-")
    study = STUDIES[table]
    records, labels = study.read(project)
    return study, records, fit_model(kind, records, labels)


def analyze(study: Study, model: Any, records: FloatArray) -> RobustModel:
    """Return the surface and the box of a model around records (n, D)."""
    query = Question(model, records, study.places, BOUNDS)
    surface = answer_surface(query)
    box = certify_box(surface, query.values, bounds=query.bounds)
    return RobustModel(query, surface, box)


def answer_surface(query: Question) -> Surface:
    """Return the answer surface that the engine reads from the model."""
    engine, _ = choose_engine(query)
    return engine.surface(query)


class PrintedCurve(NamedTuple):
    """The place of a printed value: model, records, mechanism, epsilon."""

    model: str
    records: str
    mechanism: str
    epsilon: float

    @property
    def columns(self) -> Row:
        """The columns of a row that name the place."""
        return {
            "setting": self.records,
            "learner": self.model,
            "method": self.mechanism,
            "epsilon": self.epsilon,
        }


class PrintedValue(NamedTuple):
    """A printed value: shares, and draws behind the empirical one."""

    empirical: float
    theory: float
    draws: int


def agreement_row(
    curve: PrintedCurve, value: PrintedValue, paper: FloatArray, ours: FloatArray
) -> Row:
    """Return the row of a printed cell: shares (n,) as published and by us."""
    return curve.columns | {
        "quantity": "agreement",
        "published": percent(value.empirical),
        "curvote": percent(summarize_shares(curve.records, paper)),
        "corrected": percent(summarize_shares(curve.records, ours)),
        "claimed": percent(value.theory),
    }


@cache
def printed_values(figure: str) -> Mapping[PrintedCurve, PrintedValue]:
    """Return the values of a figure of the file, in its order."""
    columns_of: dict[PrintedCurve, dict[str, str]] = {}
    for row in published_rows("qcu", "qcu_figures.csv"):
        if row["figure"] == figure:
            names = (row["model"], row["records"], row["mechanism"])
            curve = PrintedCurve(*names, float(row["epsilon"]))
            quantities = columns_of.setdefault(curve, {})
            quantities |= {row["quantity"]: row["value"]}
            quantities |= {"draws": row["draws"]} if row["draws"] else {}
    printed = {}
    for curve, its in columns_of.items():
        shares = float(its["empirical"]), float(its["theory"])
        printed[curve] = PrintedValue(*shares, int(its["draws"]))
    return printed
