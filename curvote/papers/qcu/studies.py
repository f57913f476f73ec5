"""Studies of QCU: tables, records, models, the two classifiers, printed curves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import InternalError
from curvote.base.validate import FloatArray
from curvote.data import raw_files
from curvote.data.public.published_tables import CHURN, STROKE
from curvote.data.reader import PublishedTable
from curvote.papers.qcu.laws import BOUNDS
from curvote.papers.rows import Row, percent, published_rows
from curvote.pipeline.config.project import Project
from curvote.systems.utility.method.engines.base import Question, Surface, choose_engine
from curvote.systems.utility.method.profile import Box, certify_box

if TYPE_CHECKING:
    import pandas as pd

_SEED: Final = 42
_WORST: Final = "worst of "


def record_group(setting: str) -> str:
    """Return the setting's name of its records alone: "first 100"."""
    some = setting.split(" of ")[1:]
    return f"first {some[0]}" if some else setting


def select_records(records: FloatArray, setting: str) -> FloatArray:
    """Return the records of a setting: "first", "second" or "first 100"."""
    places = {"first": slice(0, 1), "second": slice(1, 2)}
    if setting in places:
        return records[places[setting]]
    return records[: int(setting.removeprefix("first "))]


def summarize_shares(setting: str, shares: FloatArray) -> float:
    """Return the setting's summary of shares in percent: first, mean or minimum."""
    worst = setting.startswith(_WORST)
    return 100 * float(np.min(shares) if worst else np.mean(shares))


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

POINT: Final = np.array([[0.5, 0.5]])


def example_network() -> Any:
    """Return example 5: two rectified units with the printed weights."""
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier((2,), max_iter=1)
    model.partial_fit(BOUNDS, [1, 2], classes=[1, 2])
    outer, offset = np.array([[-3.05, 0.40], [4.02, -0.22]]), np.array([0.94, -0.58])
    # Two classes have one output here: the second less the first.
    inner = np.array([[-1.86, -2.09], [0.12, -0.46]])
    model.coefs_ = [inner.T, np.diff(outer, axis=0).T]
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


def analyze(question: Question, **precision: float) -> RobustModel:
    """Return the surface and the box of a question."""
    surface = answer_surface(question)
    values, bounds = question.values, question.bounds
    box = certify_box(surface, values, bounds=bounds, **precision)
    return RobustModel(question, surface, box)


def answer_surface(question: Question) -> Surface:
    """Return the answer surface that the engine reads from the model."""
    engine, _ = choose_engine(question)
    return engine.surface(question)


def analyze_example(name: str, **precision: float) -> RobustModel:
    """Return what is known of one of `CLASSIFIERS` around (.5, .5)."""
    question = Question(CLASSIFIERS[name](), POINT, (0, 1), BOUNDS)
    return analyze(question, **precision)


@lru_cache(maxsize=4)
def analyze_setting(project: Project, name: str, setting: str) -> RobustModel:
    """Return the surface and box of a model ("stroke-forest") around some records.

    ``setting`` names them as `record_group` and "age 79" do.
    """
    study, records, model = _fitted_model(project, name)
    chosen = study.setting_records(records, setting)
    return analyze(Question(model, chosen, study.places, BOUNDS))


@lru_cache(maxsize=4)
def _fitted_model(project: Project, name: str) -> tuple[Study, FloatArray, Any]:
    """Return a study, its records and a model fitted on four fifths of them."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    table, _, kind = name.partition("-")
    records, labels = STUDIES[table].read(project)
    model = {
        "logistic": LogisticRegression(random_state=_SEED),
        "forest": RandomForestClassifier(100, random_state=_SEED),
    }[kind]
    X, _, y, _ = train_test_split(
        records, labels, test_size=0.2, random_state=_SEED, stratify=labels
    )
    return STUDIES[table], records, model.fit(X, y)


@cache
def printed_curves(figure: str) -> list[Row]:
    """Return the columns of a row for each printed cell of a figure, in their order.

    ``published`` is the share of drawn answers and ``claimed`` the bound by theory, in
    percent; beside them stand ``empirical``, the share itself, and its ``draws``.
    """
    cells: dict[tuple[str | float, ...], Row] = {}
    for line in published_rows("qcu", "qcu_figures.csv", figure=figure):
        cell = {
            "setting": line["records"],
            "learner": line["model"],
            "method": line["mechanism"],
            "epsilon": line["epsilon"],
            "quantity": "agreement",
        }
        curve = cells.setdefault(tuple(cell.values()), cell)
        if line["quantity"] == "theory":
            curve["claimed"] = percent(line["value"])
        else:
            curve |= {"published": percent(line["value"]), "draws": line["draws"]}
            curve["empirical"] = line["value"]
    return list(cells.values())
