"""Stages of transfer: releases, their combination for the target, and scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.chain.system import View
from curvote.curves.encoding import Encoding
from curvote.messages.measures import MAJORITY
from curvote.messages.message import ClientData
from curvote.messages.stages import collect, collect_metadata
from curvote.systems.common.models import read_encoding, record_columns
from curvote.systems.common.study import score_table
from curvote.systems.common.tables import columns_of
from curvote.systems.transfer import measures, settings
from curvote.systems.transfer.messages import MESSAGES
from curvote.systems.transfer.method.model import Model, combine
from curvote.systems.transfer.method.release import Release, check_release
from curvote.systems.transfer.method.task import ASKS, Task

if TYPE_CHECKING:
    from curvote.systems.transfer.model import TransferClassifier

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
# What reads the settings that decide how releases are combined.
PARAMS = ("told", "target", "transfer.weights", "transfer.decide", "methods", "seed")
_RELEASE_INPUT = "privatize@"

collected_metadata = collect_metadata
collected = collect


def collected_task(inputs: Inputs, params: Params) -> Task:
    """Return the public task of a cell's server."""
    public, server = inputs["project"].metadata, params["server"]
    return settings.build_task(public, {server: params["asked"]}, params)


privatize_task = collected_task


def privatize_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the public task of a server, and its digest."""
    task = collected_task(inputs, params)
    return {"task": task.to_json(), "task_digest": task.digest()}


def privatize(context: StageContext) -> Rows:
    """Return the table ``releases``: one row of this server, its faults included."""
    params, project = context.params, context.inputs["project"].metadata
    task = Task.from_json(context.metadata["task"])
    records = context.rows("project", "encoded")
    rows = settings.server_rows(context, records)[params["server"]]
    if params["held_out"]:
        _, rows = settings.split_test(context, rows, records, params["held_out"])
    numbers, labels = server_features(context, records)[rows], records["label"][rows]
    if params["fault"] == "flipped":
        labels = np.asarray((labels + 1) % len(project["classes"]))
    elif params["fault"] == "random":
        rng = context.generator("fault")
        labels = rng.integers(len(project["classes"]), size=len(labels))
    (_, noise), *_ = context.noise(1)
    message = MESSAGES[ASKS].draw(task, ClientData(numbers, numbers, labels), noise)
    return {"releases": MESSAGES[ASKS].collect(task, message)}


def server_features(context: StageContext, records: Columns) -> np.ndarray:
    """Return the features (n, d) that servers release of."""
    encoding = Encoding.from_json(context.inputs["project"].metadata["encoding"])
    return records["coefficients" if settings.uses_coefficients(encoding) else "z"]


def joint_task(public: Metadata, params: Params) -> Task:
    """Return the task that asks all servers of a cell."""
    return settings.build_task(public, params["told"], params)


def read_releases(task: Task, tables: Iterable[Columns]) -> list[Release]:
    """Return the releases of all servers, checked like received ones."""
    return [
        check_release(
            task.for_server(str(rows["server"][0])),
            int(rows["n"][0]),
            rows["values"][0].astype(np.int64),
        )
        for rows in tables
        if len(rows["n"])
    ]


def collect_releases(context: StageContext) -> tuple[Task, list[Release]]:
    """Return the task and the releases of one repetition of a stage."""
    task = joint_task(context.inputs["project"].metadata, context.params)
    names = (name for name in context.inputs if name.startswith(_RELEASE_INPUT))
    return task, read_releases(task, (context.rows(n, "releases") for n in names))


def combine_method(
    task: Task, releases: list[Release], method: str, params: Params
) -> Model:
    """Return the classifier of one method; the majority is the target's."""
    rules = {
        measures.STATED_WEIGHTS.name: params["transfer.weights"],
        MAJORITY.name: measures.ADAPT_TAR.name,
    }
    weights, decide = rules.get(method, method), params["transfer.decide"]
    return combine(task, releases, params["target"], weights, decide)


def final_model(view: View) -> TransferClassifier:
    """Return the target's classifier of the first repetition."""
    from curvote.systems.transfer.model import TransferClassifier  # scikit-learn

    params = {name: view.setting(name) for name in PARAMS}
    task = joint_task(view.metadata("project"), params)
    servers = (view.at(server=name) for name in view.setting("names"))
    tables = (server.columns("privatize", "releases") for server in servers)
    releases = read_releases(task, tables)
    model = combine_method(task, releases, params["methods"][0], params)
    encoding = read_encoding(view).to_json()
    return TransferClassifier(record_columns(view), encoding, model.to_json())


def aggregate_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the joint task, the number of records, and the target.

    The number of records is that of the first repetition.
    """
    task = joint_task(inputs["project"].metadata, params)
    releases = (
        inputs[name].columns("releases", (0,))
        for name in inputs
        if name.startswith(_RELEASE_INPUT)
    )
    record_count = sum(int(columns["n"].sum()) for columns in releases)
    return {"task": task.to_json(), "target": params["target"], "about": record_count}


def aggregate(context: StageContext) -> Rows:
    """Return the table ``weights``: a row for each method and server that it weighs."""
    task, releases = collect_releases(context)
    names = ("server", "weight", "agreement", "agreement_se")
    rows = [
        (method, *(getattr(summary, name) for name in names))
        for method in context.params["methods"]
        for summary in combine_method(task, releases, method, context.params).servers
        if summary.weight is not None
    ]
    kinds = dict.fromkeys(("method", *names), object) | {"weight": np.float64}
    return {"weights": columns_of(rows, kinds)}


def report(context: StageContext) -> Rows:
    """Return the table ``scores``: error, F1 and balanced accuracy of each method."""
    task, releases = collect_releases(context)
    records, tested = context.rows("project", "encoded"), test_rows(context)
    numbers = server_features(context, records)[tested]
    labels = records["label"][tested]
    rows = []
    for method in context.params["methods"]:
        model = combine_method(task, releases, method, context.params)
        scores = measures.class_scores(labels, model.codes(numbers), len(task.classes))
        rows += [(method, metric, value) for metric, value in scores.items()]
    return score_table(rows)


def test_rows(context: StageContext) -> Codes:
    """Return the target's rows that are only tested."""
    return _split_rows(context)[1]


def crossed(context: StageContext) -> Rows:
    """Return the table ``crossed``: a row for each release and tested server.

    Of the target's records those are tested that were set aside, of others all.
    """
    task, releases = collect_releases(context)
    records = context.rows("project", "encoded")
    numbers = server_features(context, records)
    server_rows = settings.server_rows(context, records) | {
        context.params["target"]: test_rows(context)
    }
    all_rows = np.concatenate([*server_rows.values()])
    ends = np.cumsum([0, *map(len, server_rows.values())])
    rows: list[tuple[Any, ...]] = []
    for server in [release.server for release in releases]:
        params = {**context.params, "target": server}
        model = combine_method(task, releases, measures.ADAPT_TAR.name, params)
        codes, labels = model.codes(numbers[all_rows]), records["label"][all_rows]
        for tested, low, high in zip(server_rows, ends, ends[1:], strict=False):
            scores = measures.class_scores(
                labels[low:high], codes[low:high], len(task.classes)
            )
            rows.append((server, tested, int(high - low), *scores.values()))
    kinds: dict[str, Any] = dict.fromkeys(measures.CROSSED.columns, np.float64)
    kinds |= {"server": object, "tested": object, "n": np.int64}
    return {measures.CROSSED.name: columns_of(rows, kinds)}


WEAK_PENALTY = 1e4  # a ridge that only separated classes feel


def report_clean(context: StageContext) -> Rows:
    """Return the table ``scores`` of the pooled and the target's own classifier.

    That is logistic regression on records as they are, unpenalised but for what keeps
    it finite. It has an intercept for each server: that of the target counts, as
    classes are not equally frequent everywhere.
    """
    records = context.rows("project", "encoded")
    sources, tested = _split_rows(context)
    own_rows, labels = sources.pop(context.params["target"]), records["label"]
    n_classes = len(context.inputs["project"].metadata["classes"])
    # What a task takes from [0, 1]: z is the same, from [-1, 1].
    cube = (1 + np.clip(records["z"], -1, 1)) / 2
    rows = []
    for method, parts in (
        (measures.POOLED.name, [own_rows, *sources.values()]),
        (measures.TARGET.name, [own_rows]),
    ):
        every = np.concatenate(parts)
        servers = np.eye(len(parts))
        predictions = _predict_without_noise(
            np.hstack([cube[every], servers.repeat([len(part) for part in parts], 0)]),
            labels[every],
            np.hstack([cube[tested], np.tile(servers[:1], (len(tested), 1))]),
        )
        scores = measures.class_scores(labels[tested], predictions, n_classes)
        rows += [(method, metric, value) for metric, value in scores.items()]
    return score_table(rows)


def _split_rows(context: StageContext) -> tuple[dict[str, Codes], Codes]:
    """Return the training rows of each server, and the tested rows."""
    records, params = context.rows("project", "encoded"), context.params
    server_rows, target = settings.server_rows(context, records), params["target"]
    tested, kept_rows = settings.split_test(
        context, server_rows[target], records, params["transfer.test"]
    )
    return server_rows | {target: kept_rows}, tested


def _predict_without_noise(inputs: Array, labels: Codes, queries: Array) -> Codes:
    """Return the predicted class of each query."""
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(labels)) < 2:
        return np.full(len(queries), labels[0])
    learner = LogisticRegression(C=WEAK_PENALTY, solver="newton-cholesky")
    return np.asarray(learner.fit(inputs, labels).predict(queries), dtype=np.int64)
