"""Loading of a report's data from a run's artifacts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import pandas as pd

from curvote.chain.axis import EPSILON, Axis, Cell
from curvote.chain.lookup import find_system
from curvote.chain.measure import Metric
from curvote.chain.sent import MessageDescription
from curvote.reporting import source_words
from curvote.reporting.columns import assign_columns
from curvote.reporting.data import SCORE_COLUMNS, PageData
from curvote.reporting.outside import outsider_guarantees
from curvote.reporting.section import Section
from curvote.run import audited
from curvote.run.config.parts import Parts, describe_choices, find_part, labelled_parts
from curvote.run.config.settings import dotted_value, setting_name, stated_settings
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.release import production
from curvote.run.results import RunView, final_views, run_notes, run_systems
from curvote.run.summary import declared_rows, main_score_index, mean_scores


def load_page_data(project: Project, record: RunRecord) -> PageData:
    """Return everything that a report shows, from the tables of one run."""
    all_views, systems = final_views(project, record), run_systems(record)
    facts, settings = _merged_metadata(all_views[0]), all_views[0].settings
    metrics = {m.name: m for member in systems for m in member.metrics}
    x = systems[0].x
    scores = _load_scores(project, record, x, [*metrics.values()])
    sections = list(_load_sections(all_views, scores))
    return PageData(
        pipeline=record.pipeline,
        title=facts.get("title", record.pipeline),
        replicates=settings.replicates,
        seed=settings.seed,
        protocol=", ".join(main := _main_methods(record.config)),
        generated=record.started[:10],
        run_id=record.id,
        scores=scores,
        metrics=[m for m in metrics.values() if m.spread or not m.beside],
        main=main,
        x=x,
        bounds={m.name: b for m in metrics.values() if (b := facts.get(m.bound))},
        sections=sections,
        releases=_load_releases(
            record.config, facts.get("d", 0), private=settings.production
        ),
        public=[line for section in sections for line in section.public],
        notes=list(_page_notes(project, record, facts)),
        private=settings.production,
        overrides=record.overrides,
        losses=audited.exact_losses(project, record),
        audited=_audit_note(project, record),
        ledger=_release_entries(project, record),
        outside=outsider_guarantees(project, record) if settings.production else (),
        record=source_words.record_word(facts),
    )


def _load_scores(
    project: Project, record: RunRecord, x: Axis, metrics: Sequence[Metric]
) -> pd.DataFrame:
    """Return the score rows of a page; second measures have their own rows.

    What a rule took has the rule's name.
    """
    parts = list(labelled_parts(record.config))
    declared_scores = declared_rows(record, mean_scores(project, record))
    renamed = [_rename_by_rule(row, parts) for row in declared_scores]
    if (main := main_score_index(record, declared_scores)) is not None:
        renamed[main] = {**renamed[main], "main": True}
    of_each = {metric.name for metric in metrics if metric.group_kind}
    ungrouped = [row for row in renamed if row["metric"] not in of_each]
    rows = assign_columns(ungrouped, x.name)
    second_scores = [
        {**row, "metric": name, "value": row[name], "se": row[se]}
        for name, se in (metric.columns for metric in metrics if metric.spread)
        for row in rows
        if row["metric"] != name and row.get(name) is not None
    ]
    beside = [name for m in metrics if m.beside for name in m.columns]
    return pd.DataFrame(
        [*rows, *second_scores], columns=[*SCORE_COLUMNS, *beside, "main"]
    )


def _rename_by_rule(row: Mapping[str, Any], parts: Parts) -> Mapping[str, Any]:
    where = {
        "protocol": row["protocol"],
        "setting": setting_name(row.get("setting", {})),
    }
    part = find_part(
        parts, Cell.from_mapping({EPSILON.name: row[EPSILON.name], **where})
    )
    main = part.rule and row["method"] in find_system(part.settings.protocol).main
    return {**row, "method": part.rule} if main else row


def _merged_metadata(view: RunView) -> dict[str, Any]:
    """Return the metadata of a cell's stages; the first stage takes precedence."""
    merged: dict[str, Any] = {}
    for facts in view.every_facts():
        merged = facts | merged
    return merged


def _page_notes(
    project: Project, record: RunRecord, facts: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the notes that stand before any number."""
    yield from source_words.source_notes(facts, record.config)
    yield from _settings_note(record)
    yield from describe_choices(record.config)
    yield from run_notes(project, record)


def _main_methods(config: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the methods that a headline may state, by protocol name."""
    by_protocol: dict[str, list[str]] = {}
    for _, part in labelled_parts(config):
        member = find_system(part.settings.protocol)
        held_against = {method.name for method in member.methods if method.reference}
        candidates = [name for name in member.main if name not in held_against]
        by_protocol.setdefault(part.settings.called, []).extend(
            [part.rule] if part.rule else candidates
        )
    return by_protocol


def _load_sections(
    all_views: Sequence[RunView], scores: pd.DataFrame
) -> Iterator[Section]:
    """Yield the sections of systems that have something to show."""
    names = dict.fromkeys(name for view in all_views for name in view.system.sections)
    for name in names:
        section_views = [view for view in all_views if name in view.system.sections]
        section = import_module(name).gather(section_views, scores)
        if section is not None:
            yield section


def _settings_note(record: RunRecord) -> list[str]:
    """Return a note on the settings; the page shows data of the first one."""
    names = [
        name
        for labels, _ in stated_settings(record.config)
        if (name := setting_name(labels))
    ]
    if not names:
        return []
    listed = "; ".join(names)
    return [f"{len(names)} settings: {listed}. Constants and data are of the first."]


def _load_releases(
    config: Mapping[str, Any], d: int, *, private: bool
) -> list[MessageDescription]:
    """Return the descriptions of all messages that leave clients."""
    all_settings = [part.settings for _, part in labelled_parts(config)]
    several = len({settings.called for settings in all_settings}) > 1
    descriptions: dict[MessageDescription, None] = {}
    for settings in all_settings:
        values = settings.model_dump(mode="json")
        # Parts may differ in it; what a source decides, they share.
        dimension = dotted_value(values, "project.size") or d
        messages = find_system(settings.protocol).describe_messages(values, dimension)
        for release in messages:
            who = f"{settings.called}: {release.who}" if several else release.who
            descriptions[replace(release, who=who)] = None
    if not private:
        return list(descriptions)
    real = [release for release in descriptions if not release.study_only]
    epsilons = config.get("epsilon")
    return [
        replace(description, epsilon=epsilons[0]) if epsilons else description
        for description in real
    ]


def _audit_note(project: Project, record: RunRecord) -> str:
    """Return a note on the latest audit of the run's messages, "" if none."""
    verdicts_found = audited.stored_verdicts(project, record)
    if verdicts_found is None:
        return ""
    verdicts = [row["verdict"] for row in verdicts_found["rows"]]
    passed = verdicts.count("pass")
    return (
        f"{passed} of {len(verdicts)} messages passed on"
        f" {verdicts_found['audited'][:10]}"
    )


def _release_entries(project: Project, record: RunRecord) -> list[Any]:
    """Return the ledger's entries of this run's releases."""
    keys = {step["key"] for step in record.steps}
    return [
        entry for entry in production.ledger_entries(project) if entry.release in keys
    ]
