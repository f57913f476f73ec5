"""Runs in MLflow: a parent for each execution, and a child for each cell."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.chain.reputation import CHAMPION_ALIAS, REGISTERED, Reputation
from curvote.chain.system import Part
from curvote.flows.environment import process_tag
from curvote.flows.tracking import cells as words
from curvote.flows.tracking.cells import Headline, Metrics, Point
from curvote.flows.tracking.datasets import dataset_inputs
from curvote.flows.tracking.flavor import installed_version, log_model
from curvote.flows.tracking.store import delete_run, one_transaction
from curvote.flows.tracking.usage import usage_between
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml
from curvote.pipeline.plan.step import file_digest, json_digest
from curvote.pipeline.run.champion import ModelScore, Verdict, judge, score_model
from curvote.pipeline.store.records import RunRecord, run_ids

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run


# The version that a plain "give me the model" means; MLflow keeps `latest` to itself.
CURRENT_ALIAS = "current"
# The latest that was not better than the champion beyond chance.
CHALLENGER_ALIAS = "challenger"
_SCORE, _COMPARISONS = "score", "comparisons"


def link_model(client: MlflowClient, run_id: str, model: str) -> None:
    """Link a model of an earlier run to this run."""
    from mlflow.entities import LoggedModelOutput

    client.log_outputs(run_id, [LoggedModelOutput(model, 0)])


def register_model(
    log: ExperimentLog, cell: Cell, model: str, run_id: str, tags: Mapping[str, str]
) -> None:
    """Register a model's newest version as the current one, and judge it.

    Its tag ``headline`` describes it. One that is current already stays as it is.
    """
    from mlflow.exceptions import MlflowException

    client, name = log.client, re.sub(r"[/:]", "-", log.record.pipeline)
    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    aliased: dict[str, Any] = {}
    for alias in (CURRENT_ALIAS, CHAMPION_ALIAS):
        with suppress(MlflowException):  # none is called so yet
            aliased[alias] = client.get_model_version_by_alias(name, alias)
    current, champion = aliased.get(CURRENT_ALIAS), aliased.get(CHAMPION_ALIAS)
    if current and current.tags.get("model") == model:
        return
    score = None
    with suppress(UserError):  # what it was scored by is gone
        score = score_model(log.project, log.record, cell)
    looks = int(client.get_registered_model(name).tags.get(_COMPARISONS, 0))
    to_beat = champion.tags.get(_SCORE) if champion else None
    if score is None:
        verdict = Verdict("no number tells how good it is")
    elif champion is None:
        verdict = Verdict("the first champion", champion=True)
    elif to_beat is None:
        verdict = Verdict("the champion was named by hand: it has no number")
    else:
        verdict = judge(log.project, ModelScore(**json.loads(to_beat)), score, looks)
    tags = {**tags, "model": model, "verdict": verdict.words}
    tags |= {_SCORE: json.dumps(asdict(score))} if score else {}
    model_version = client.create_model_version(
        name,
        f"models:/{model}",
        run_id,
        tags,
        description=tags.get("headline"),
        model_id=model,
    )
    if verdict.counted:
        client.set_registered_model_tag(name, _COMPARISONS, str(looks + 1))
    rank = CHAMPION_ALIAS if verdict.champion else CHALLENGER_ALIAS
    for alias in (CURRENT_ALIAS, rank):
        client.set_registered_model_alias(name, alias, model_version.version)
    if verdict.champion:
        client.delete_registered_model_alias(name, CHALLENGER_ALIAS)


def link_registered(log: ExperimentLog, run_id: str, reputation: Reputation) -> None:
    """Link a run with the registered models that it asks about, and tag these.

    A version gets the figure, the alarms and the id of the pipeline's newest run. Where
    an alias names another one than at first, answers are about both: the run's tags
    ``versions`` and ``versions_now`` say so, and nothing is linked.
    """
    from mlflow.entities import LoggedModelInput
    from mlflow.exceptions import MlflowException

    client, versions = log.client, list[Any]()
    named = [*filter(None, map(REGISTERED.fullmatch, reputation.models))]
    for name, alias, version in (match.groups() for match in named):
        find = client.get_model_version_by_alias if alias else client.get_model_version
        with suppress(MlflowException):  # there is none
            versions.append(find(name, alias or version))
    registered = ", ".join(match[0] for match in named)  # no quotation marks in it
    now = ", ".join(f"models:/{v.name}/{v.version}" for v in versions)
    earlier = log.find("registered", registered)
    before = (earlier and earlier.data.tags["versions"]) or now
    tags = {"models": ", ".join(reputation.models), "registered": registered}
    tags |= {"versions": before} | ({} if before == now else {"versions_now": now})
    log.write(run_id, [], {}, tags)
    if before != now:
        return
    pipeline, run = log.record.pipeline, log.record.id
    newest = run_ids(log.project, pipeline, "completed", 1) == [run]
    sources = (str(v.source).removeprefix("models:/") for v in versions)
    inputs = [LoggedModelInput(source) for source in sources if source[:2] == "m-"]
    with suppress(MlflowException):  # not allowed, say: the next run tries again
        client.log_inputs(run_id, models=inputs)
        for v in versions if newest else ():
            for key, text in (reputation.texts() | {"run": run}).items():
                tag = f"{pipeline}.{key}"
                client.set_model_version_tag(v.name, v.version, tag, text)


_LATEST_FIRST = "attributes.start_time DESC"
_BATCH_SIZE = 100  # more parameters or tags at once are refused


@dataclass(frozen=True)
class ExperimentLog:
    """The writer of one record into one MLflow experiment."""

    client: MlflowClient
    experiment: str
    project: Project
    record: RunRecord

    @property
    def end(self) -> int:
        """The end of the run in milliseconds since 1970."""
        return _to_milliseconds(self.record.finished or self.record.started)

    def open(self, name: str, tags: Mapping[str, str]) -> str:
        """Create an open MLflow run and return its id."""
        mode = self.record.config.get("mode", "study")
        run_tags = {
            "mode": mode,
            # A study's noise comes from its seed, which can remove it again.
            "private": str(mode == "production").lower(),
            "curvote.pid": process_tag(),
            "code_version": installed_version("curvote"),
        }
        start = _to_milliseconds(self.record.started)
        run = self.client.create_run(
            self.experiment, start, run_tags | dict(tags), name
        )
        return str(run.info.run_id)

    def close(self, run_id: str) -> None:
        """Mark an MLflow run as finished at the record's end."""
        self.client.set_terminated(run_id, "FINISHED", self.end)

    def find(self, tag: str, value: str) -> Run | None:
        """Return the latest finished run that carries a tag."""
        wanted = f"tags.`{tag}` = '{value}' and attributes.status = 'FINISHED'"
        finished = self.client.search_runs(
            [self.experiment], wanted, max_results=1, order_by=[_LATEST_FIRST]
        )
        return finished[0] if finished else None

    def write(
        self,
        run_id: str,
        points: Iterable[Point],
        params: Mapping[str, str],
        tags: Mapping[str, str],
        model: str | None = None,
    ) -> None:
        """Log metrics (also of the ``model``), parameters and tags."""
        from mlflow.entities import Metric, Param, RunTag

        metrics = [Metric(n, v, self.end, at, model) for n, v, at in points]
        read = [Param(*pair) for pair in params.items()]
        marks = [RunTag(*pair) for pair in tags.items()]
        for start in range(0, max(len(metrics), len(read), len(marks)), _BATCH_SIZE):
            part = slice(start, start + _BATCH_SIZE)
            self.client.log_batch(run_id, metrics[part], read[part], marks[part])


def _to_milliseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)


@dataclass(frozen=True)
class CellLog:
    """A cell to be logged: its part, metrics, method, and model factory.

    ``part`` is what it was configured as, ``method`` what the model is scored as.
    """

    cell: Cell
    part: Part
    metrics: Metrics
    method: str
    make: Callable[[Cell], Any]


def log_cell(
    log: ExperimentLog, parent: str, entry: CellLog
) -> tuple[dict[str, str], str | None]:
    """Log the child run of a cell; return its parameters and its model's id."""
    from mlflow.exceptions import MlflowException

    cell, record = entry.cell, log.record
    keys = words.stage_keys(record, cell)
    stored = words.cell_artifacts(log.project, record, cell)
    read = words.cell_params(record, cell, stored)
    name = str(cell) or record.pipeline
    run_id = log.open(name, {"mlflow.parentRunId": parent})
    digest = json_digest({"stages": keys, "model": entry.method})
    # The model of an earlier run with equal artifacts is linked, if there is one.
    earlier = log.find("cell_digest", digest)
    uri = earlier.data.tags.get("model_uri") if earlier else None
    model: str | None = uri.removeprefix("models:/") if uri else None
    exists = False
    with suppress(MlflowException):  # it is gone
        exists = bool(model and log.client.get_logged_model(model))
    fitted_model = None if exists else entry.make(cell)
    if model and exists:
        link_model(log.client, run_id, model)
    elif fitted_model is None:
        model = None
    else:
        # Made here: otherwise, with no active run, MLflow puts a model into the default
        # experiment, in a folder of wherever this was started. It allows no dots.
        title = " ".join(filter(None, (record.pipeline, str(cell), entry.method)))
        title = re.sub(r"""[/:%"']""", "-", title.replace(".", ","))
        logged_model = log.client.create_logged_model(
            log.experiment, title, run_id, params=read
        )
        model = str(logged_model.model_id)
        facts = words.stage_facts(stored)
        log_model(run_id, model, fitted_model, facts)
    tags = {f"key.{stage}": key for stage, key in keys.items()}
    tags |= words.chosen_by_rule(entry.part) | {"cell_digest": digest}
    tags |= {"model_uri": f"models:/{model}"} if model else {}
    place = words.axis_step(cell, words.x_axis(entry.part))
    points = [(name, value, place) for name, value in entry.metrics.items()]
    log.write(run_id, points, read, tags, model)
    log.close(run_id)
    return read, model


# The parameters of each cell, and the id of its model.
LoggedCells = dict[Cell, tuple[dict[str, str], str | None]]


def log_run_with_cells(
    log: ExperimentLog,
    cells: Sequence[CellLog],
    headline: Headline,
    report: Path | None,
) -> str:
    """Log parent, cells and files, all or nothing; return the parent's id."""
    titles = headline.title, *log.record.overrides
    name = ", ".join(titles) if headline.title else log.record.id
    parent = ""
    try:
        with one_transaction(log.client):
            parent = log.open(name, {"curvote.run": log.record.id})
            logged = {entry.cell: log_cell(log, parent, entry) for entry in cells}
            _fill_parent(log, parent, logged, headline)
        pages = [] if report is None else [report / "report.html"]
        pages += sorted((report / "figures").glob("*.png")) if report else []
        files = [file for file in pages if file.is_file()]
        if report and files:  # or the run is linked with the one of equal files
            digests = {str(f.relative_to(report)): file_digest(f) for f in files}
            digest = json_digest(digests)
            earlier = log.find("report_digest", digest)
            holder = earlier.data.tags["figures_run"] if earlier else parent
            for file in () if earlier else files:
                place = file.parent.relative_to(report).as_posix()
                log.client.log_artifact(parent, str(file), place.strip(".") or None)
            log.client.set_tag(parent, "report_digest", digest)
            log.client.set_tag(parent, "figures_run", holder)
        _, model = logged.get(headline.cell, ({}, None))
        if model:  # that of the headline is the current one
            link_model(log.client, parent, model)
            tags = {"curvote.run": log.record.id, "cell": str(headline.cell)}
            tags["headline"] = headline.title
            register_model(log, headline.cell, model, parent, tags)
        if headline.reputation and headline.reputation.models:
            link_registered(log, parent, headline.reputation)
        log.close(parent)
    except BaseException:
        with contextlib.suppress(Exception):
            delete_run(log.client, log.experiment, parent)
        raise
    return parent


def _fill_parent(
    log: ExperimentLog, parent: str, logged: LoggedCells, headline: Headline
) -> None:
    from mlflow.entities import Metric

    stored = words.cell_artifacts(log.project, log.record, headline.cell)
    facts = words.stage_facts(stored)
    points = [*headline.points]
    # The best possible value at each step, if the data set knows it.
    best = facts.get(headline.metric.bound) if headline.metric else None
    if headline.metric and best is not None:
        bound, steps = f"{headline.metric.name}.bayes", {at for _, _, at in points}
        points += [(bound, float(best), step) for step in sorted(steps)]
    # The duration in seconds, and the share of steps that drew nothing anew.
    started = datetime.fromisoformat(log.record.started)
    finished = datetime.fromisoformat(log.record.finished or log.record.started)
    points.append(("duration", (finished - started).total_seconds(), 0))
    reused = [entry["action"] in {"reuse", "copy"} for entry in log.record.steps]
    points.append(("reused", sum(reused) / max(1, len(reused)), 0))
    read, _ = logged.get(headline.cell, ({}, None))
    sizes = words.run_sizes(log.record, read, facts)
    inputs = dataset_inputs(stored)
    keys = [entry["key"] for entry in log.record.steps]
    protocols = dict.fromkeys(cell["protocol"] or "" for cell in logged)
    command = words.run_command(log.record)
    about = [f"Run `{log.record.id}`: `{command}`."]
    if headline.points:
        cell = f"The cell is {headline.cell.words}; the others are runs below this one."
        ways = f"Steps are {headline.x}: fractions times 1000, counts as they are."
        if headline.reputation:
            ways = (
                "Steps are looks, of all answers so far; of window/ they are windows."
            )
        about = [headline.summary_text, *about, cell, ways]
    tags = {
        "protocol": ", ".join(protocols),
        "headline": str(headline.cell),
        "pipeline_key": json_digest(keys),
        "mlflow.source.name": command,
        "mlflow.source.type": "LOCAL",
        "mlflow.note.content": "\n\n".join(about),
        "data": ", ".join(str(dataset_input.dataset.name) for dataset_input in inputs),
    }
    # Parameters that all cells have in common.
    first, *other_params = [params for params, _ in logged.values()] or [{}]
    common = {
        k: v for k, v in first.items() if all(o.get(k) == v for o in other_params)
    }
    log.write(parent, points, common | sizes, tags)
    log.client.log_inputs(parent, inputs)
    end = log.end + 1000  # a record has whole seconds
    used = usage_between(_to_milliseconds(log.record.started), end)
    machine = [
        Metric(f"system/{name}", value, moment, step)
        for step, (moment, values) in enumerate(used)
        for name, value in values.items()
    ]
    log.client.log_batch(parent, machine)
    config = as_yaml(log.record.config)
    log.client.log_text(parent, config, "config.yaml")
    plan = json.dumps(log.record.steps, indent=1)
    log.client.log_text(parent, plan, "plan.json")
