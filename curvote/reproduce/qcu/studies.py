"""Studies of QCU: tables, records and models, read as its authors read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.datasets import churn, raw, stroke
from curvote.datasets.tables.published import PublishedTable
from curvote.errors import InternalError
from curvote.reproduce.qcu import settings
from curvote.run.project import Project
from curvote.utility.engines.base import Question
from curvote.validate import FloatArray

if TYPE_CHECKING:
    import pandas as pd

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
        file = raw.locate(project.root, self.table.file)
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
            return settings.select_records(records, setting)
        record = records[[self.single]]
        for name, value in self.misread.items():
            record[:, list(self.scales).index(name)] = value / self.scales[name]
        return record


STUDIES: Final = {
    "stroke": Study(
        stroke.TABLE,
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
        churn.TABLE,
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


def study_question(study: Study, model: Any, records: FloatArray) -> Question:
    """Return the robustness question of a model; sensitive columns in [0, 1]."""
    return Question(model, records, study.places, BOUNDS)
