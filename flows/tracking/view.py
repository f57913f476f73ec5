"""Where MLflow's pages open: a view of an experiment that shows its numbers at once.

A list shows no metric unless somebody asks for its column. A saved view (MLflow keeps
it in a tag of the experiment) asks for those of the headline, and its charts draw them
against epsilon itself instead of the step.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from curvote.flows.tracking.headline import Headline
from curvote.flows.tracking.store import connect, experiment_of
from curvote.run import records
from curvote.run.project import Project

if TYPE_CHECKING:
    from mlflow import MlflowClient

_VIEW = "headline"
_NAME = "attributes.`Run Name`"
# MLflow opens with its pages for language models unless it is told what this is.
_KIND = "workflowType=machine_learning"
# A tag of an experiment holds 20,000 characters; a column stands there three times,
# quoted twice.
_MOST, _AROUND = 5_500, 24


def describe(client: MlflowClient, experiment: str, headline: Headline) -> None:
    """Give an experiment its view, after the newest of its runs."""
    if not headline.points:
        return
    view = {"name": "Headline", "createdAt": 0, "state": json.dumps(_state(headline))}
    tags = {
        f"mlflow.sharedViewState.{_VIEW}": json.dumps(view),
        "mlflow.note.content": headline.words,
        "mlflow.experimentKind": "custom_model_development",
    }
    for name, value in tags.items():
        client.set_experiment_tag(experiment, name, value)


def _state(headline: Headline) -> dict[str, Any]:
    """Return what MLflow keeps of a view: its columns, its charts and their x-axis."""
    metrics = [f"metrics.`{name}`" for name in _fitting(headline.names)]
    params = [f"params.`{name}`" for name in ("N", "d", "replicates")]
    columns = [*metrics, *params, "attributes.`Source`"]
    state = {
        "selectedColumns": columns,
        "columnOrder": [_NAME, *columns],
        "columnWidths": {_NAME: 330} | {name: 6 * len(name) for name in metrics},
        "chartsSearchFilter": headline.metric.name if headline.metric else "",
    }
    if headline.cell[headline.x] is not None:
        axis = {"xAxisKey": "metric", "selectedXAxisMetricKey": headline.x}
        state["globalLineChartConfig"] = axis | {"lineSmoothness": 0}
    return state


def _fitting(names: Sequence[str]) -> list[str]:
    """Return the first names, as many as the view has room for."""
    lengths = accumulate(len(name) + _AROUND for name in names)
    return [n for n, end in zip(names, lengths, strict=True) if end <= _MOST]


def address(project: Project) -> str:
    """Return the part of an address that opens the pipeline that was logged last."""
    logged = records.last_logged(project)
    with contextlib.suppress(Exception):  # whatever MLflow says: its pages will tell
        client = connect(project)
        found = experiment_of(client, project, logged) if logged else None
        if found:
            place = f"#/experiments/{found.experiment_id}/runs"
            return f"{place}?{_KIND}&viewStateShareKey={_VIEW}"
    return f"#/experiments?{_KIND}"
