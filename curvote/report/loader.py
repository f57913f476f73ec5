"""Loader of a report's data, and guarantees against outsiders who see tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import pandas as pd

from curvote.chain import lookup
from curvote.chain.axis import EPSILON, Axis, Cell
from curvote.chain.lookup import all_systems, find_system
from curvote.chain.measure import Metric
from curvote.chain.system import MessageDescription
from curvote.messages.amplification import ShuffledGuarantee, crowd_size
from curvote.messages.message import message_of
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.settings import (
    PROTOCOL,
    Parts,
    describe_choices,
    dotted_value,
    find_part,
    labelled_parts,
    setting_name,
    stated_settings,
)
from curvote.pipeline.release.populations import ledger_entries
from curvote.pipeline.run import audit_tasks
from curvote.pipeline.run.results import (
    RunView,
    declared_rows,
    final_views,
    main_score_index,
    mean_scores,
    run_notes,
    run_systems,
)
from curvote.pipeline.store.artifacts import Artifact, checked_artifact
from curvote.pipeline.store.records import RunRecord
from curvote.report import sentences
from curvote.report.data import SCORE_COLUMNS, PageData
from curvote.report.section import Section


def outsider_guarantees(
    project: Project, record: RunRecord
) -> list[tuple[str, ShuffledGuarantee]]:
    """Return the guarantee of each released message against outsiders.

    Only of those that hide among others.
    """
    client_counts = {e.release: e.n_clients for e in ledger_entries(project)}
    guarantees = []
    for step in record.steps:
        stored = checked_artifact(project, step["stage"], step["key"])
        if "task" not in stored.metadata:
            continue
        task = lookup.read_task(stored.metadata["task"])
        message = message_of(task)
        if message.per_table or message.stage != step["stage"]:
            continue  # a table hides among no others; the rest tells what was asked
        # A round that stays open shows each batch by itself: the smallest counts.
        batches = stored.metadata.get("batches", [client_counts.get(step["key"], 0)])
        n = min(batches)
        if task.candidates:
            n = _min_votes(stored, message.table) if len(batches) == 1 else 0
        guarantee = ShuffledGuarantee.from_local(task.cost(), crowd_size(message, n))
        if guarantee:
            guarantees.append((message.name, guarantee))
    return guarantees


def _min_votes(stored: Artifact, table: str) -> int:
    """Return the least number of votes that any voted candidate has.

    Whoever answers decides how many there are, so they need not be even.
    """
    votes = stored.columns(table, (0,))["n"]
    return int(votes[votes > 0].min(initial=votes.max()))


Row = Mapping[str, Any]


def assign_columns(rows: Iterable[Row], x: str = "epsilon") -> list[dict[str, Any]]:
    """Return score rows with ``learner`` as column and ``level`` on axis ``x``.

    ``learner`` names the column: "cg, case=1, arrival 2". A score without a learner,
    such as a constant classifier's, stands in every column of its setting; where
    nothing there has a learner, the column is named after the setting. What others are
    held against stands in every column where its protocol measures nothing else, by one
    learner at most; where the others measure all of it, it stands there already. A
    score without a level, such as one without privacy, gets an infinite one.
    """
    axes = (axis.name for member in all_systems() for axis in member.axes)
    names = tuple(name for name in dict.fromkeys(axes) if name not in (x, "learner"))
    all_rows = list(rows)
    beside, repeated = _reference_protocols(all_rows)
    labelled = [
        (row, list(_distinctions(row, (*names, "group"))))
        for row in all_rows
        if row.get("protocol") not in repeated
    ]
    return [
        {**row, "learner": label, "level": math.inf if row[x] is None else row[x]}
        for row, apart in labelled
        for label in (
            [None]
            if _is_in_all_columns(row, beside)
            else _column_labels(row, apart, labelled)
        )
    ]


def _is_in_all_columns(row: Row, beside: set[str | None]) -> bool:
    """Return whether a score holds for all columns, as it has no grid."""
    alone = set(row.get("setting", {})) <= {PROTOCOL}
    return alone and row.get("protocol") in beside


def _reference_protocols(
    rows: Sequence[Row],
) -> tuple[set[str | None], set[str | None]]:
    """Return protocols of references only: valid everywhere, and repeated.

    First those whose scores hold for all of them, then those that others repeat.
    """
    references = {
        m.name for member in all_systems() for m in member.methods if m.reference
    }
    methods_by_protocol: dict[str | None, set[str]] = {}
    for row in rows:
        methods_by_protocol.setdefault(row.get("protocol"), set()).add(row["method"])
    reference_only = {
        name for name, methods in methods_by_protocol.items() if methods <= references
    }
    other_methods = {
        m
        for name in methods_by_protocol.keys() - reference_only
        for m in methods_by_protocol[name]
    }
    repeated = {
        name for name in reference_only if methods_by_protocol[name] <= other_methods
    }
    learners_by_protocol: dict[str | None, set[str | None]] = {}
    for row in rows:
        learners_by_protocol.setdefault(row.get("protocol"), set()).add(row["learner"])
    everywhere = {
        name
        for name in reference_only - repeated
        if other_methods and len(learners_by_protocol[name]) < 2
    }
    return everywhere, repeated


def _column_labels(
    row: Row, apart: list[str], labelled: list[tuple[Row, list[str]]]
) -> list[str | None]:
    if row["learner"] or not apart:
        return [_column_label(row["learner"], apart)]
    learners = (
        r["learner"]
        for r, distinctions in labelled
        if r["learner"] and distinctions == apart
    )
    labels = [_column_label(learner, apart) for learner in dict.fromkeys(learners)]
    return labels or [", ".join(apart)]


def _distinctions(row: Row, names: Iterable[str]) -> Iterator[str]:
    """Yield what distinguishes a score beside protocol, level and learner."""
    setting = setting_name(row.get("setting", {}))
    if setting:
        yield setting
    for name in names:
        if row.get(name) is not None:
            value = row[name]
            yield f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _column_label(learner: str | None, apart: list[str]) -> str | None:
    return ", ".join([learner, *apart]) if learner else None


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
        losses=audit_tasks.exact_losses(project, record),
        audited=_audit_note(project, record),
        ledger=_release_entries(project, record),
        outside=outsider_guarantees(project, record) if settings.production else (),
        record=sentences.record_word(facts),
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
    yield from sentences.source_notes(facts, record.config)
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
        module, _, function = name.partition(":")
        section = getattr(import_module(module), function)(section_views, scores)
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
    verdicts_found = audit_tasks.stored_verdicts(project, record)
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
    return [entry for entry in ledger_entries(project) if entry.release in keys]
