"""Artifacts of a run on Prefect's pages: its plan, progress, results and releases.

They say what `curvote run` prints: counts that pipelines.yaml states, epsilons, scores,
and what is known from noised messages; no client, no id, no value of a record.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast
from uuid import UUID

from prefect import artifacts
from prefect.context import FlowRunContext

from curvote.flows import lines
from curvote.flows.tracking import cells
from curvote.messages import stages
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import Step
from curvote.pipeline.run import results
from curvote.pipeline.run.planner import Plan
from curvote.pipeline.run.run_object import PAGE, page_folder
from curvote.pipeline.store.records import RunRecord
from curvote.tasks.context import Progress

_MAX_ROWS = 60
# A stage that takes so long gets a bar, which moves this often; in seconds.
_LONG_SECONDS, _UPDATE_SECONDS = 10.0, 5.0
_DONE = {"run": "computed", "reuse": "reused", "copy": "taken over", "blocked": "waits"}


@contextmanager
def _harmless() -> Iterator[None]:
    """Turn what goes wrong into a line: a page is no reason to fail."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - theirs; the results stand
        text = f"warning: Prefect's page lacks a part ({type(error).__name__})"
        lines.write_line(text, "warning")


def show_plan(plan: Plan) -> None:
    """Show which stages are computed and why, and which are reused."""
    if FlowRunContext.get() is None:
        return
    counts = Counter((s.stage.name, s.reported_action, s.reason) for s in plan.steps)
    rows = ((n, s, _DONE[action], why) for (s, action, why), n in counts.items())
    table = _table(("steps", "stage", "this run", "why"), rows)
    released = _table(
        ("stage", "who", "how many", "epsilon of each", "this run"), _releases(plan)
    )
    with _harmless():
        artifacts.create_markdown_artifact(
            f"{table}\n\n**Releases about people**\n\n{released}"
            if released
            else table,
            key=_key(plan.configured.name, "plan"),
            description="What is computed, what is reused, and why.",
        )


def _releases(plan: Plan) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each message that leaves clients in production."""
    for step in plan.steps:
        if step.release is None:
            continue
        message = stages.stage_message(step.params)
        done = "drawn" if step.action == "run" else _DONE[step.reported_action]
        if step.release.by_envelope:
            done = "by envelopes, which their owners draw"
        elif step.action == "reuse":
            done = "released before: nothing is drawn, nothing is spent"
        count = message.invited_count(plan.configured.values())
        epsilon = f"{step.params['epsilon']:g}"
        yield step.stage.name, message.who, count, epsilon, done


def show_results(
    project: Project, record: RunRecord, rows: Sequence[Mapping[str, Any]] | None
) -> None:
    """Show the main number and the scores of a run, and where its report is.

    ``rows`` are its scores, None: they are read here.
    """
    if FlowRunContext.get() is None:
        return
    with _harmless():
        parts = [f"run {record.id}: {record.status}", record.why]
        page = page_folder(project, record) / PAGE
        if record.status == "completed" and page.is_file():
            parts.append(f"Report: `{page.resolve()}`")
            artifacts.create_link_artifact(
                page.resolve().as_uri(),
                str(page.resolve()),
                key=_key(record.pipeline, "report"),
                description="The report, a file of the machine that ran this.",
            )
        if record.mlflow_run:
            parts.append(f"MLflow: run `{record.mlflow_run}`")
        if record.status == "completed":
            parts += _results(project, record, rows)
        artifacts.create_markdown_artifact(
            "\n\n".join(filter(None, parts)),
            key=_key(record.pipeline, "summary"),
            description="The main number, and all scores.",
        )


def _results(
    project: Project, record: RunRecord, rows: Sequence[Mapping[str, Any]] | None
) -> list[str]:
    if record.config.get("mode") == "production":
        outcomes = results.production_outcomes(project, record)
        words = {cell: cells.format_outcome(v) for cell, v in outcomes.items()}
        names = [*dict.fromkeys(name for values in words.values() for name in values)]
        listed = ((c.words, *map(v.get, names)) for c, v in words.items())
        return ["Known from noised messages:", _table(("cell", *names), listed)]
    every = results.mean_scores(project, record) if rows is None else rows
    scores = [s for s in cells.load_scores(record, every) if not s.metric.group_kind]
    table = ((s.cell.words, s.method, s.metric.name, s.with_error) for s in scores)
    title = cells.study_headline(record, every).title
    return [
        f"**{title}**" if title else "",
        _table(
            ("cell", "method", "metric", "mean ± standard error (shares in %)"), table
        ),
    ]


@dataclass
class PageProgress:
    """Progress of a run's stages, on Prefect's pages beside ``show``."""

    show: Progress
    _started: dict[str, float] = field(default_factory=dict)
    _bars: dict[str, tuple[UUID, float]] = field(default_factory=dict)

    def __call__(self, step: Step, done: int, blocks: int) -> None:
        """Report blocks that are done; a short stage gets no bar."""
        self.show(step, done, blocks)
        now, share = time.monotonic(), 100.0 * done / max(blocks, 1)
        started = self._started.setdefault(step.name, now)
        bar = self._bars.get(step.name)
        waited = now - (bar[1] if bar else started)
        over = done == blocks and bar is not None
        if not over and waited < (_UPDATE_SECONDS if bar else _LONG_SECONDS):
            return
        text = f"{step.name}: {done} of {blocks} blocks"
        with _harmless():
            if bar:
                artifacts.update_progress_artifact(bar[0], share, text)
                name = bar[0]
            else:
                new = artifacts.create_progress_artifact(share, None, text)
                name = cast("UUID", new)  # outside of an event loop
            self._bars[step.name] = name, now


def _key(pipeline: str, kind: str) -> str:
    """Return a key as Prefect takes it: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", f"{pipeline}-{kind}".lower()).strip("-")


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table in Markdown, "" without rows; of a long one the beginning."""
    listed = iter(rows)
    body = [*islice(listed, _MAX_ROWS)]
    if not body:
        return ""
    further = sum(1 for _ in listed)
    every = [names, ["---"] * len(names), *body]
    text = "\n".join(f"| {' | '.join(map(_escape, row))} |" for row in every)
    return f"{text}\n\nand {further} more" if further else text


def _escape(value: Any) -> str:
    return "" if value is None else str(value).replace("|", "\\|").replace("\n", " ")
