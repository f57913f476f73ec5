"""From a run's artifacts to what its report shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import pandas as pd

from curvote.chain.axis import EPSILON, Axis, Cell
from curvote.chain.lookup import system
from curvote.chain.measure import Metric
from curvote.chain.sent import Sent
from curvote.reporting import source_words
from curvote.reporting.columns import columns
from curvote.reporting.data import SCORE_COLUMNS, PageData
from curvote.reporting.outside import outside
from curvote.reporting.section import Section
from curvote.run import audited
from curvote.run.config.parts import Parts, belonging, parts_of, reasons
from curvote.run.config.settings import dotted, named, stated
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.release import production
from curvote.run.results import RunView, notes, systems_of, views
from curvote.run.summary import declared, main_score, summary


def page_data(project: Project, record: RunRecord) -> PageData:
    """Collect everything a report shows from the tables of one run."""
    every, systems = views(project, record), systems_of(record)
    facts, settings = _facts(every[0]), every[0].settings
    metrics = {m.name: m for one in systems for m in one.metrics}
    x = systems[0].x
    scores = _scores(project, record, x, [*metrics.values()])
    sections = list(_sections(every, scores))
    return PageData(
        pipeline=record.pipeline,
        title=facts.get("title", record.pipeline),
        replicates=settings.replicates,
        seed=settings.seed,
        protocol=", ".join(main := _main(record.config)),
        generated=record.started[:10],
        run_id=record.id,
        scores=scores,
        metrics=[m for m in metrics.values() if m.spread or not m.beside],
        main=main,
        x=x,
        bounds={m.name: b for m in metrics.values() if (b := facts.get(m.bound))},
        sections=sections,
        releases=_releases(
            record.config, facts.get("d", 0), private=settings.production
        ),
        public=[line for section in sections for line in section.public],
        notes=list(_notes(project, record, facts)),
        private=settings.production,
        overrides=record.overrides,
        losses=audited.exact_losses(project, record),
        audited=_audited(project, record),
        ledger=_ledger(project, record),
        outside=outside(project, record) if settings.production else (),
        record=source_words.record_of(facts),
    )


def _scores(
    project: Project, record: RunRecord, x: Axis, metrics: Sequence[Metric]
) -> pd.DataFrame:
    """Return the scores; a second measure has rows of its own on a page.

    What a rule took has the rule's name.
    """
    parts = list(parts_of(record.config))
    own = declared(record, summary(project, record))
    every = [_ruled(row, parts) for row in own]
    if (main := main_score(record, own)) is not None:
        every[main] = {**every[main], "main": True}
    of_each = {metric.name for metric in metrics if metric.each}
    whole = [row for row in every if row["metric"] not in of_each]
    rows = columns(whole, x.name)
    further = [
        {**row, "metric": name, "value": row[name], "se": row[se]}
        for name, se in (metric.columns for metric in metrics if metric.spread)
        for row in rows
        if row["metric"] != name and row.get(name) is not None
    ]
    beside = [name for m in metrics if m.beside for name in m.columns]
    return pd.DataFrame([*rows, *further], columns=[*SCORE_COLUMNS, *beside, "main"])


def _ruled(row: Mapping[str, Any], parts: Parts) -> Mapping[str, Any]:
    where = {"protocol": row["protocol"], "setting": named(row.get("setting", {}))}
    part = belonging(parts, Cell.of({EPSILON.name: row[EPSILON.name], **where}))
    main = part.rule and row["method"] in system(part.settings.protocol).main
    return {**row, "method": part.rule} if main else row


def _facts(view: RunView) -> dict[str, Any]:
    """Return what the stages of a cell recorded, the first that says it."""
    found: dict[str, Any] = {}
    for facts in view.every_facts():
        found = facts | found
    return found


def _notes(
    project: Project, record: RunRecord, facts: Mapping[str, Any]
) -> Iterator[str]:
    """Yield what a reader is told before any number."""
    yield from source_words.notes(facts, record.config)
    yield from _settings(record)
    yield from reasons(record.config)
    yield from notes(project, record)


def _main(config: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the methods that may stand in a headline, by what tables call a system."""
    found: dict[str, list[str]] = {}
    for _, part in parts_of(config):
        own = system(part.settings.protocol)
        held_against = {method.name for method in own.methods if method.reference}
        fit = [name for name in own.main if name not in held_against]
        found.setdefault(part.settings.called, []).extend(
            [part.rule] if part.rule else fit
        )
    return found


def _sections(every: Sequence[RunView], scores: pd.DataFrame) -> Iterator[Section]:
    """Yield what only some systems show, each from the cells of those that name it."""
    names = dict.fromkeys(name for view in every for name in view.system.sections)
    for name in names:
        own = [view for view in every if name in view.system.sections]
        section = import_module(name).gather(own, scores)
        if section is not None:
            yield section


def _settings(record: RunRecord) -> list[str]:
    """Say what else was varied; what stands below is that of the first setting."""
    names = [name for own, _ in stated(record.config) if (name := named(own))]
    if not names:
        return []
    listed = "; ".join(names)
    return [f"{len(names)} settings: {listed}. Constants and data are of the first."]


def _releases(config: Mapping[str, Any], d: int, *, private: bool) -> list[Sent]:
    """Return what leaves clients, protocol after protocol where there are several."""
    every = [part.settings for _, part in parts_of(config)]
    several = len({settings.called for settings in every}) > 1
    found: dict[Sent, None] = {}
    for settings in every:
        values = settings.model_dump(mode="json")
        # Parts may differ in it; what a source decides, they share.
        own = dotted(values, "project.size") or d
        told = system(settings.protocol).sent(values, own)
        for release in told:
            who = f"{settings.called}: {release.who}" if several else release.who
            found[replace(release, who=who)] = None
    if not private:
        return list(found)
    real = [release for release in found if not release.study_only]
    stated = config.get("epsilon")
    return [replace(one, epsilon=stated[0]) if stated else one for one in real]


def _audited(project: Project, record: RunRecord) -> str:
    """Say what the latest audit of what these clients send found, and when."""
    found = audited.saved(project, record)
    if found is None:
        return ""
    verdicts = [row["verdict"] for row in found["rows"]]
    passed = verdicts.count("pass")
    return f"{passed} of {len(verdicts)} messages passed on {found['audited'][:10]}"


def _ledger(project: Project, record: RunRecord) -> list[Any]:
    """Return the ledger's entries of this run's releases."""
    keys = {step["key"] for step in record.steps}
    return [entry for entry in production.entries(project) if entry.release in keys]
