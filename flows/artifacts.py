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
Rows = Sequence[Mapping[str, Any]]


@contextmanager
def _harmless() -> Iterator[None]:
    """Turn what goes wrong into a line: a page is no reason to fail."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - theirs; the results stand
        text = f"warning: Prefect's page lacks a part ({type(error).__name__})"
        lines.write_line(text, "warning")


@_harmless()
def show_plan(plan: Plan) -> None:
    """Show which stages are computed and why, and which are reused."""
    if FlowRunContext.get() is None:
        return
    counts = Counter((s.stage.name, s.reported_action, s.reason) for s in plan.steps)
    rows = ((n, s, _DONE[action], why) for (s, action, why), n in counts.items())
    text = _table(("steps", "stage", "this run", "why"), rows)
    names = "stage", "who", "how many", "epsilon of each", "this run"
    if released := _table(names, _releases(plan)):
        text += f"\n\n**Releases about people**\n\n{released}"
    key = _key(plan.configured.name, "plan")
    about = "What is computed, what is reused, and why."
    artifacts.create_markdown_artifact(text, key, about)


def _releases(plan: Plan) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each message that leaves clients in production."""
    for step in plan.steps:
        if step.release is None:
            continue
        done = "drawn" if step.action == "run" else _DONE[step.reported_action]
        if step.release.by_envelope:
            done = "by envelopes, which their owners draw"
        elif step.action == "reuse":
            done = "released before: nothing is drawn, nothing is spent"
        message = stages.stage_message(step.params)
        count = message.invited_count(plan.configured.values())
        yield step.stage.name, message.who, count, f"{step.params['epsilon']:g}", done


@_harmless()
def show_results(project: Project, record: RunRecord, rows: Rows | None) -> None:
    """Show the main number and the scores of a run, and where its report is.

    ``rows`` are its scores, None: they are read here.
    """
    if FlowRunContext.get() is None:
        return
    parts = [f"run {record.id}: {record.status}", record.why]
    if record.mlflow_run:
        parts.append(f"MLflow: run `{record.mlflow_run}`")
    if record.status == "completed":
        page = (page_folder(project, record) / PAGE).resolve()
        parts.append(f"Report: `{page}`")
        key, about = _key(record.pipeline, "report"), "On the machine that ran it."
        artifacts.create_link_artifact(page.as_uri(), str(page), key, about)
        parts += _results(project, record, rows)
    text = "\n\n".join(filter(None, parts))
    key, about = _key(record.pipeline, "summary"), "The main number, and all scores."
    artifacts.create_markdown_artifact(text, key, about)


def _results(project: Project, record: RunRecord, rows: Rows | None) -> list[str]:
    if record.config.get("mode") == "production":
        words = cells.outcome_texts(project, record)
        names = [*dict.fromkeys(name for values in words.values() for name in values)]
        listed = ((c.words, *map(v.get, names)) for c, v in words.items())
        parts = ["Known from noised messages:", _table(("cell", *names), listed)]
        for reputation in results.reputations(project, record).values():
            latest = reputation.windows[-_MAX_ROWS:]
            windows = ((str(w[0]), f"{w[1]:,}", reputation.words(w)) for w in latest)
            parts.append(_table(("window", "answers", reputation.figure), windows))
            parts.insert(0, f"**{reputation.title}**")
        return parts
    every = results.mean_scores(project, record) if rows is None else rows
    scores = [s for s in cells.load_scores(record, every) if not s.metric.group_kind]
    table = ((s.cell.words, s.method, s.metric.name, s.with_error) for s in scores)
    names = ["cell", "method", "metric", "mean ± standard error (shares in %)"]
    title = cells.study_headline(record, every).title
    return [f"**{title}**" if title else "", _table(names, table)]


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
        bar, moved = self._bars.get(step.name, (None, started))
        waits = now - moved < (_UPDATE_SECONDS if bar else _LONG_SECONDS)
        if waits and not (bar and done == blocks):
            return
        text = f"{step.name}: {done} of {blocks} blocks"
        with _harmless():
            if bar:
                artifacts.update_progress_artifact(bar, share, text)
            else:  # a UUID, as no event loop runs here
                bar = cast(
                    "UUID", artifacts.create_progress_artifact(share, None, text)
                )
            self._bars[step.name] = bar, now


def _key(pipeline: str, kind: str) -> str:
    """Return a key as Prefect takes it: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", f"{pipeline}-{kind}".lower()).strip("-")


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table in Markdown, "" without rows; of a long one the beginning."""
    body = [*rows]
    listed = [names, ["---"] * len(names), *body[:_MAX_ROWS]] if body else []
    cuts = [["", f"and {len(body) - _MAX_ROWS} more"]] if len(body) > _MAX_ROWS else []
    return "\n".join(f"| {' | '.join(map(_escape, row))} |" for row in listed + cuts)


def _escape(value: Any) -> str:
    return "" if value is None else str(value).replace("|", "\\|").replace("\n", " ")
