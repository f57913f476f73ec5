"""Runs logged into a project's own MLflow, and how they are read back."""

from typing import Any

import numpy as np

from curvote.chain.axis import Cell
from curvote.curves.basis import projection
from curvote.curves.columns import grid_names
from curvote.curves.curve_classifier import CurveClassifier
from curvote.curves.encoding import Encoding, Linear
from curvote.flows.tracking import log as tracking
from curvote.pipeline.config.project import Project
from curvote.pipeline.store.records import RunRecord
from tests.tracked_run import make_rows, store

GRID = np.linspace(0.0, 1.0, 20)


def a_classifier(_cell: Cell | None = None) -> CurveClassifier:
    """Return the same small classifier for every cell."""
    constants = {"centre": np.zeros(4), "scale": np.ones(4)}
    encoding = Encoding(projection("bspline", 4, GRID), "tanh", constants)
    return CurveClassifier.of(
        encoding,
        grid_names(GRID),
        Linear(np.array([1.0, -1.0, 2.0, 0.5]), 0.1, encoding.feature_map),
        ("no", "yes"),
    )


def mlflow_client() -> Any:
    """Return a client of the store that the environment names."""
    import mlflow

    return mlflow.MlflowClient()


def log(project: Project, record: RunRecord, **changes: Any) -> str:
    """Store a record and log it; return the MLflow run."""
    store(project, record)
    given: dict[str, Any] = {"report": project.reports / "demo"}
    given |= {"model_of": a_classifier} | changes
    return tracking.log_run(project, record, rows=make_rows(), **given)


def runs_of(where: str = "", name: str = "demo") -> list[Any]:
    """Return the runs of a pipeline, those that a filter lets through."""
    import mlflow

    found = mlflow.search_runs(
        experiment_names=[name], filter_string=where, output_format="list"
    )
    return list(found)


def children_of(parent: str, name: str = "demo") -> list[Any]:
    """Return the runs below another one."""
    return runs_of(f"tags.`mlflow.parentRunId` = '{parent}'", name)


def count_models(name: str) -> int:
    """Return how many models a pipeline's runs have logged."""
    import mlflow

    experiment = mlflow.get_experiment_by_name(name)
    assert experiment is not None
    client = mlflow.MlflowClient()
    return len(client.search_logged_models([experiment.experiment_id]))
