"""Report of a run: its data, one self-contained HTML file, and figures beside it."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from curvote.base.durable import private_folder
from curvote.base.errors import UserError
from curvote.chain import lookup, measure, registry, system
from curvote.chain.axis import EPSILON, Axis, Cell
from curvote.chain.lookup import all_systems, find_system
from curvote.data.lookup import record_numbers
from curvote.messages.amplification import ShuffledGuarantee, crowd_size
from curvote.messages.message import message_of
from curvote.pipeline.config import settings as run_settings
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.settings import labelled_parts, setting_name
from curvote.pipeline.config.source import reads_user_file
from curvote.pipeline.plan import definitions
from curvote.pipeline.plan import step as plan_step
from curvote.pipeline.release import evidence
from curvote.pipeline.run import audit_tasks, results
from curvote.pipeline.run.comparison import RunComparison, group_key_changes
from curvote.pipeline.run.run_object import PAGE, STAMP, page_folder, require_artifacts
from curvote.pipeline.store.artifacts import checked_artifact, write_json
from curvote.pipeline.store.records import RunRecord
from curvote.report import data as tables
from curvote.report import sentences, style
from curvote.report.data import SCORE_COLUMNS, PageData, Section, find_method


def outsider_guarantees(
    project: Project, record: RunRecord
) -> list[tuple[str, ShuffledGuarantee]]:
    """Return the guarantee of each released message against outsiders.

    Only of those that hide among others.
    """
    client_counts = {e.release: e.n_clients for e in evidence.ledger_entries(project)}
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
            n = 0
            if len(batches) == 1:  # the least that any has: they need not be even
                votes = stored.columns(message.table, (0,))["n"]
                n = int(votes[votes > 0].min(initial=votes.max()))
        guarantee = ShuffledGuarantee.from_local(
            task.cost(), crowd_size(message, n), message.shuffled_law(task)
        )
        if guarantee:
            guarantees.append((message.name, guarantee))
    return guarantees


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
    labelled = []
    for row in all_rows:
        if row.get("protocol") not in repeated:
            setting = setting_name(row.get("setting", {}))
            apart = [setting] if setting else []  # beside protocol, level and learner
            for name in (*names, "group"):
                if (value := row.get(name)) is not None:
                    text = f"{value:g}" if isinstance(value, float) else f"{value}"
                    apart.append(f"{name} {text}")
            labelled.append((row, apart))
    columns: list[dict[str, Any]] = []
    for row, apart in labelled:
        without_grid = set(row.get("setting", {})) <= {run_settings.PROTOCOL}
        if without_grid and row.get("protocol") in beside:
            labels: list[str | None] = [None]  # it holds for all columns
        elif row["learner"] or not apart:
            learner = row["learner"]
            labels = [", ".join([learner, *apart]) if learner else None]
        else:
            learners = (r["learner"] for r, other in labelled if other == apart)
            learner_names = dict.fromkeys(learner for learner in learners if learner)
            labels = [", ".join([learner, *apart]) for learner in learner_names]
            labels = labels or [", ".join(apart)]
        level = math.inf if row[x] is None else row[x]
        columns += [{**row, "learner": label, "level": level} for label in labels]
    return columns


def _reference_protocols(
    rows: Sequence[Row],
) -> tuple[set[str | None], set[str | None]]:
    """Return protocols of references only: valid everywhere, and repeated.

    First those whose scores hold for all of them, then those that others repeat.
    """
    known_methods = (m for member in all_systems() for m in member.methods)
    references = {method.name for method in known_methods if method.reference}
    methods: dict[str | None, set[str]] = {}
    learners: dict[str | None, set[str | None]] = {}
    for row in rows:
        methods.setdefault(row.get("protocol"), set()).add(row["method"])
        learners.setdefault(row.get("protocol"), set()).add(row["learner"])
    reference_only = {name for name in methods if methods[name] <= references}
    other_names = methods.keys() - reference_only
    other_methods = set[str]().union(*(methods[name] for name in other_names))
    repeated = {name for name in reference_only if methods[name] <= other_methods}
    alone = reference_only - repeated if other_methods else set()
    return {name for name in alone if len(learners[name]) < 2}, repeated


def load_page_data(project: Project, record: RunRecord) -> PageData:
    """Return everything that a report shows, from the tables of one run."""
    all_views = results.final_views(project, record)
    systems = results.run_systems(record)
    facts: dict[str, Any] = {}
    for stage_facts in all_views[0].every_facts():
        facts = stage_facts | facts  # the first stage takes precedence
    settings = all_views[0].settings
    metrics = {m.name: m for member in systems for m in member.metrics}
    x = systems[0].x
    scores = _load_scores(project, record, x, [*metrics.values()])
    sections: list[Section] = []
    names = dict.fromkeys(name for view in all_views for name in view.system.sections)
    for name in names:
        section_views = [view for view in all_views if name in view.system.sections]
        module, _, function = name.partition(":")
        section = getattr(import_module(module), function)(section_views, scores)
        if section is not None:
            sections.append(section)
    # The methods that a headline may state, by protocol name.
    main: dict[str, list[str]] = {}
    for _, part in labelled_parts(record.config):
        member = find_system(part.settings.protocol)
        held_against = {method.name for method in member.methods if method.reference}
        candidates = [name for name in member.main if name not in held_against]
        method_names = main.setdefault(part.settings.called, [])
        method_names += [part.rule] if part.rule else candidates
    notes = [*sentences.source_notes(facts, record.config)]
    named_settings = run_settings.stated_settings(record.config)
    if named := [text for label, _ in named_settings if (text := setting_name(label))]:
        notes.append(
            f"{len(named)} settings: {'; '.join(named)}."
            " Constants and data shown are those of the first."
        )
    notes += run_settings.describe_choices(record.config)
    notes += results.run_notes(project, record)
    audit, audited = audit_tasks.stored_verdicts(project, record), ""
    if audit is not None:
        verdicts = [row["verdict"] for row in audit["rows"]]
        passed, date = verdicts.count("pass"), audit["audited"][:10]
        audited = f"{passed} of {len(verdicts)} messages passed on {date}"
    keys = {step["key"] for step in record.steps}
    return PageData(
        pipeline=record.pipeline,
        title=facts.get("title", record.pipeline),
        replicates=settings.replicates,
        seed=settings.seed,
        protocol=", ".join(main),
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
        notes=notes,
        private=settings.production,
        overrides=record.overrides,
        losses=audit_tasks.exact_losses(project, record),
        audited=audited,
        ledger=[
            entry for entry in evidence.ledger_entries(project) if entry.release in keys
        ],
        outside=outsider_guarantees(project, record) if settings.production else (),
        record=sentences.record_word(facts),
    )


def _load_scores(
    project: Project, record: RunRecord, x: Axis, metrics: Sequence[measure.Metric]
) -> pd.DataFrame:
    """Return the score rows of a page; second measures have their own rows.

    What a rule took has the rule's name.
    """
    parts = list(labelled_parts(record.config))
    declared_scores = results.declared_rows(
        record, results.mean_scores(project, record)
    )
    renamed: list[Mapping[str, Any]] = []
    for row in declared_scores:
        setting = setting_name(row.get("setting", {}))
        where = {"protocol": row["protocol"], "setting": setting}
        cell = Cell.from_mapping({EPSILON.name: row[EPSILON.name], **where})
        part = run_settings.find_part(parts, cell)
        main = part.rule and row["method"] in find_system(part.settings.protocol).main
        renamed.append({**row, "method": part.rule} if main else row)
    if (index := results.main_score_index(record, declared_scores)) is not None:
        renamed[index] = {**renamed[index], "main": True}
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
    names = [*SCORE_COLUMNS, *beside, "main"]
    return pd.DataFrame([*rows, *second_scores], columns=names)


def _load_releases(
    config: Mapping[str, Any], d: int, *, private: bool
) -> list[system.MessageDescription]:
    """Return the descriptions of all messages that leave clients."""
    all_settings = [part.settings for _, part in labelled_parts(config)]
    several = len({settings.called for settings in all_settings}) > 1
    descriptions: dict[system.MessageDescription, None] = {}
    for settings in all_settings:
        values = settings.model_dump(mode="json")
        # Parts may differ in it; what a source decides, they share.
        has_size = run_settings.dotted_value(values, "project.size")
        dimension = (has_size and record_numbers(settings)) or d
        messages = find_system(settings.protocol).describe_messages(values, dimension)
        for release in messages:
            who = f"{settings.called}: {release.who}" if several else release.who
            descriptions[replace(release, who=who)] = None
    if not private:
        return list(descriptions)
    real = [release for release in descriptions if not release.study_only]
    epsilons = config.get("epsilon")
    return [replace(r, epsilon=epsilons[0]) if epsilons else r for r in real]


REPORT_TEMPLATE = "report.html.j2"
_INKS = {
    style.INK: "var(--ink)",
    style.MUTED: "var(--muted)",
    style.LINE: "var(--line)",
    style.PAPER: "var(--paper)",
    style.BLUE: "var(--blue)",
    style.GREEN: "var(--green)",
    style.BROWN: "var(--brown)",
    style.CLASS_COLOURS[0]: "var(--violet)",
}
_INK_PATTERN = re.compile("|".join(_INKS))
_PIXELS_PER_POINT = 1.25


@dataclass(frozen=True)
class ScoreCell:
    """One cell of the score table: value, one standard error, best of its level."""

    value: str
    se: str
    best: bool


@dataclass(frozen=True)
class ScoreRow:
    """One method at one level; ``wide``: its one cell spans all learners."""

    label: str
    study_only: bool
    main: bool
    cells: list[ScoreCell]
    wide: bool


def render_report(data: PageData, folder: Path) -> Path:
    """Write report.html and its figures into ``folder``; return the page's path.

    The page holds its style and figures, runs no script and asks for nothing. The
    same data give the same bytes. Files appear under their names only when complete.
    """
    from curvote.report import figures  # one that is drawn already needs none

    saved = figures.save_figures(data, folder / "figures")
    templates = template_environment()
    drawings = {}  # wide, and for narrow screens
    for name in figures.figure_drawers(data):
        narrow = figures.draw_figure(data, name, "svg", narrow=True)["svg"]
        images = {"wide": saved[f"{name}.svg"].read_bytes(), "narrow": narrow}
        parts = [embed_svg(svg, kind, f"{name}-{kind}") for kind, svg in images.items()]
        drawings[name] = Markup("\n").join(parts)
    context: dict[str, Any] = {
        "data": data,
        "words": sentences,
        "learners": tables.learners(data.scores) or ["all"],
        "score_groups": [
            (m, score_rows_by_level(data, m)) for m in data.measured_metrics
        ],
        "methods": [find_method(name) for name in tables.series_names(data.scores)],
        "figures": drawings,
    }
    html = []
    for section in data.sections:
        # A section's template has escaped its text: the markup is trusted.
        template = templates.from_string(section.template().read_text(encoding="utf-8"))
        drawing = drawings.get(section.name)
        more = {"section": section, "drawing": drawing, "embed": embed_svg}
        html.append((section.place, Markup(template.render(context, **more))))  # noqa: S704

    def placed(place: str) -> Markup:
        return Markup("\n").join(part for where, part in html if where == place)

    text = templates.get_template(REPORT_TEMPLATE).render(context, placed=placed)
    return figures.write_atomically(folder / "report.html", text.encode())


def template_environment() -> Environment:
    """Return the environment of page templates, with automatic escaping."""
    return Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def score_rows_by_level(
    data: PageData, metric: measure.Metric
) -> list[tuple[str, list[ScoreRow]]]:
    """Return a metric's score rows for the template, grouped by level."""
    scores, names = data.metric_scores(metric), tables.learners(data.scores)
    plain, marked = (tables.score_table(scores, metric, names, m) for m in ("", "*"))
    main = {name for names in data.main.values() for name in names}
    without = set(scores.loc[scores["learner"].isna(), "series"])
    lines = zip(plain.index, plain.to_numpy(), marked.to_numpy(), strict=True)
    groups: dict[str, list[ScoreRow]] = {}
    for (level, series), texts, marks in lines:
        method, wide = find_method(series), series in without
        cells = []
        for text, mark in list(zip(texts, marks, strict=True))[: 1 if wide else None]:
            value, _, se = text.partition(" ± ")
            cells.append(ScoreCell(value, se, mark.endswith("*")))
        chief = method.name in main and not method.reference
        row = ScoreRow(method.label, method.study_only, chief, cells, wide)
        groups.setdefault(tables.format_level(level), []).append(row)
    return list(groups.items())


def embed_svg(svg: bytes, kind: str, prefix: str) -> Markup:
    """Return an SVG file as trusted markup for the page.

    Names get a ``prefix``, so that figures cannot refer to one another's parts; inks
    become the page's own colours; namespaces go, as HTML knows them.
    """
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own drawing
    for parent in root.iter():
        for child in list(parent):
            if _local_name(child.tag) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag, attributes = _local_name(element.tag), {}
        for name, value in element.attrib.items():
            text, key = value, _local_name(name)
            if key == "id":
                text = f"{prefix}-{value}"
            elif "#" in value:
                text = re.sub(r"^#|(?<=url\()#", f"#{prefix}-", value)
            if key == "style":
                text = _INK_PATTERN.sub(lambda m: _INKS[m[0]], text)
            attributes[key] = text
        element.attrib = attributes
    width = float(root.attrib.pop("width").removesuffix("pt")) * _PIXELS_PER_POINT
    del root.attrib["height"], root.attrib["version"]
    size = f"max-width: {width:.0f}px"
    root.attrib |= {"class": kind, "style": size, "aria-hidden": "true"}
    text = ElementTree.tostring(root, encoding="unicode")
    return Markup(text)  # noqa: S704 - serialised just above, so escaped


def _local_name(name: str) -> str:
    return name.rpartition("}")[2]


def draw_report(project: Project, record: RunRecord) -> Path:
    """Return the path of a run's report, drawn anew if it would differ.

    That of the latest completed run stands under its pipeline's name, an earlier one's
    in a folder of its own. UserError: what an earlier run stored is gone.
    """
    folder = page_folder(project, record)
    systems = results.run_systems(record)
    system_modules = [f"{registry.SYSTEMS[member.name]}.system" for member in systems]
    parts = [name for member in systems for name in member.sections]
    templates = sorted(Path(__file__).parents[1].rglob("*.j2"))
    digest = plan_step.json_digest(
        [
            [(step["stage"], step["key"]) for step in record.steps],
            record.overrides,
            definitions.of_code(["curvote.report.page", *system_modules, *parts]),
            [plan_step.file_digest(path) for path in templates],
            audit_tasks.stored_verdicts(project, record),
        ]
    )
    stamped = None  # the digest of the complete report in the folder
    if (folder / PAGE).is_file() and (folder / "figures").is_dir():
        with suppress(OSError, ValueError):
            stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
            stamped = str(stamp["digest"])
    if stamped != digest:
        try:
            data = load_page_data(project, record)
        except UserError:
            require_artifacts(project, record, [step["stage"] for step in record.steps])
            raise
        study, source = record.config.get("mode") == "study", record.config["source"]
        if study and reads_user_file(source):
            private_folder(folder)  # its scores count records that nobody published
        folder.mkdir(parents=True, exist_ok=True)
        (folder / STAMP).unlink(missing_ok=True)
        render_report(data, folder)
        write_json(folder / STAMP, {"digest": digest, "run": record.id})
    return folder / PAGE


COMPARISON_TEMPLATE = "difference.html.j2"


def draw_comparison(project: Project, comparison: RunComparison) -> Path:
    """Write the page of a comparison, and return its path."""
    from curvote.report import figures

    runs = (comparison.a, "A"), (comparison.b, "B")
    pages = {}
    for run, which in runs:
        require_artifacts(project, run, [step["stage"] for step in run.steps])
        pages[which] = load_page_data(project, run)
    drawers = {which: figures.figure_drawers(data) for which, data in pages.items()}
    pairs = []
    for name in dict.fromkeys(name for names in drawers.values() for name in names):
        having = [which for which in pages if name in drawers[which]]
        images = figures.draw_with_shared_axis([pages[w] for w in having], name)
        pair = {
            which: embed_svg(svg, "own", f"{which}-{name}")
            for which, svg in zip(having, images, strict=True)
        }
        pairs.append((name, pair))
    a, b = comparison.a, comparison.b
    folder = project.reports / b.pipeline / f"{a.id}-{b.id}"
    if any(reads_user_file(run.config["source"]) for run, _ in runs):
        private_folder(folder.parent)
        private_folder(folder)  # records that nobody published stand behind it
    folder.mkdir(parents=True, exist_ok=True)
    template = template_environment().get_template(COMPARISON_TEMPLATE)
    keys = group_key_changes(comparison.keys)
    text = template.render(found=comparison, runs=runs, keys=keys, pairs=pairs)
    path = figures.write_atomically(folder / PAGE, text.encode())
    write_json(folder / STAMP, {"digest": "", "run": comparison.b.id})
    return path
