"""Target's side: the releases of all servers, and the models that combine them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from curvote.chain.stage import Columns, Inputs, Metadata, Params, StageContext
from curvote.chain.system import View
from curvote.messages.measures import MAJORITY
from curvote.systems.common.models import read_encoding, record_columns
from curvote.systems.transfer import settings
from curvote.systems.transfer.measures import ADAPT_TAR, STATED_WEIGHTS
from curvote.systems.transfer.method.combination import combine
from curvote.systems.transfer.method.model import Model
from curvote.systems.transfer.method.release import Release, check_release
from curvote.systems.transfer.method.task import Task

if TYPE_CHECKING:
    from curvote.systems.transfer.model import TransferClassifier


Releases = list[Release]
# What reads the settings that decide how releases are combined.
PARAMS = ("told", "target", "transfer.weights", "transfer.decide", "methods", "seed")
_RELEASE_INPUT = "privatize@"


def joint_task(public: Metadata, params: Params) -> Task:
    """Return the task that asks all servers of a cell."""
    return settings.build_task(public, params["told"], params)


def collect_releases(context: StageContext) -> tuple[Task, Releases]:
    """Return the task and the releases of one repetition of a stage."""
    task_of_all = joint_task(context.inputs["project"].metadata, context.params)
    names = [name for name in context.inputs if name.startswith(_RELEASE_INPUT)]
    return task_of_all, read_releases(
        task_of_all, (context.rows(name, "releases") for name in names)
    )


def count_records(inputs: Inputs) -> int:
    """Return the number of records behind all releases of the first repetition."""
    stage_inputs = (inputs[name] for name in inputs if name.startswith(_RELEASE_INPUT))
    return sum(
        int(stage_input.columns("releases", (0,))["n"].sum())
        for stage_input in stage_inputs
    )


def read_releases(task: Task, tables: Iterable[Columns]) -> Releases:
    """Return the releases of all servers, checked like received ones."""
    return [_read_release(task, rows) for rows in tables if len(rows["n"])]


def _read_release(task: Task, rows: Columns) -> Release:
    """Return one server's release from its table row."""
    server_task = task.for_server(str(rows["server"][0]))
    return check_release(
        server_task, int(rows["n"][0]), rows["values"][0].astype(np.int64)
    )


def combine_method(
    task: Task, releases: Releases, method: str, params: Params
) -> Model:
    """Return the classifier of one method; the majority is the target's."""
    rules = {
        STATED_WEIGHTS.name: params["transfer.weights"],
        MAJORITY.name: ADAPT_TAR.name,
    }
    return combine(
        task,
        releases,
        target=params["target"],
        weights=rules.get(method, method),
        decide=params["transfer.decide"],
    )


def final_model(view: View) -> TransferClassifier:
    """Return the target's classifier of the first repetition."""
    from curvote.systems.transfer.model import TransferClassifier  # scikit-learn

    params = {name: view.setting(name) for name in PARAMS}
    task = joint_task(view.metadata("project"), params)
    server_views = (view.at(server=name) for name in view.setting("names"))
    releases = read_releases(
        task,
        (server_view.columns("privatize", "releases") for server_view in server_views),
    )
    model = combine_method(task, releases, view.setting("methods")[0], params)
    encoding = read_encoding(view).to_json()
    return TransferClassifier(record_columns(view), encoding, model.to_json())
