"""Logging of runs in MLflow, and the view in which its pages open.

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
from curvote.flows.tracking.store import connect, find_experiment
from curvote.run import records
from curvote.run.project import Project

if TYPE_CHECKING:
    from mlflow import MlflowClient

_VIEW_KEY = "headline"
_NAME_COLUMN = "attributes.`Run Name`"
# MLflow opens with its pages for language models unless it is told what this is.
_PAGE_KIND = "workflowType=machine_learning"
# A tag of an experiment holds 20,000 characters; a column stands there three times,
# quoted twice.
_MAX_CHARACTERS, _QUOTE_CHARACTERS = 5_500, 24


def set_view(client: MlflowClient, experiment: str, headline: Headline) -> None:
    """Set the view of an experiment from the headline of its newest run."""
    if not headline.points:
        return
    view = {
        "name": "Headline",
        "createdAt": 0,
        "state": json.dumps(_view_state(headline)),
    }
    tags = {
        f"mlflow.sharedViewState.{_VIEW_KEY}": json.dumps(view),
        "mlflow.note.content": headline.summary_text,
        "mlflow.experimentKind": "custom_model_development",
    }
    for name, value in tags.items():
        client.set_experiment_tag(experiment, name, value)


def _view_state(headline: Headline) -> dict[str, Any]:
    """Return MLflow's state of a view: columns, charts and their x-axis."""
    metrics = [f"metrics.`{name}`" for name in _fitting_names(headline.metric_names)]
    params = [f"params.`{name}`" for name in ("N", "d", "replicates")]
    columns = [*metrics, *params, "attributes.`Source`"]
    state = {
        "selectedColumns": columns,
        "columnOrder": [_NAME_COLUMN, *columns],
        "columnWidths": {_NAME_COLUMN: 330} | {name: 6 * len(name) for name in metrics},
        "chartsSearchFilter": headline.metric.name if headline.metric else "",
    }
    if headline.cell[headline.x] is not None:
        axis = {"xAxisKey": "metric", "selectedXAxisMetricKey": headline.x}
        state["globalLineChartConfig"] = axis | {"lineSmoothness": 0}
    return state


def _fitting_names(names: Sequence[str]) -> list[str]:
    """Return as many of the first names as the view has room for."""
    lengths = accumulate(len(name) + _QUOTE_CHARACTERS for name in names)
    return [n for n, end in zip(names, lengths, strict=True) if end <= _MAX_CHARACTERS]


def page_fragment(project: Project) -> str:
    """Return the address part that opens the last logged pipeline."""
    logged = records.last_logged_pipeline(project)
    with contextlib.suppress(Exception):  # whatever MLflow says: its pages will tell
        client = connect(project)
        experiment = find_experiment(client, project, logged) if logged else None
        if experiment:
            place = f"#/experiments/{experiment.experiment_id}/runs"
            return f"{place}?{_PAGE_KIND}&viewStateShareKey={_VIEW_KEY}"
    return f"#/experiments?{_PAGE_KIND}"
