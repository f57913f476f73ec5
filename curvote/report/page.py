"""Report of a run: one self-contained HTML file, and its figures beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from curvote.base.durable import private_folder
from curvote.base.errors import UserError
from curvote.chain.measure import Metric
from curvote.chain.registry import SYSTEMS
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.source import reads_user_file
from curvote.pipeline.plan import definitions
from curvote.pipeline.plan.step import file_digest, json_digest
from curvote.pipeline.run import audit_tasks
from curvote.pipeline.run.comparison import RunComparison, group_key_changes
from curvote.pipeline.run.results import run_systems
from curvote.pipeline.run.run_object import PAGE, STAMP, page_folder, require_artifacts
from curvote.pipeline.store.artifacts import write_json
from curvote.pipeline.store.records import RunRecord
from curvote.report import data as tables
from curvote.report import figures, promises, sentences, style
from curvote.report.data import PageData, find_method
from curvote.report.loader import load_page_data
from curvote.report.section import Section

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
    saved = figures.save_figures(data, folder / "figures")
    templates = template_environment()
    context = _template_context(data, saved)
    html = [
        (section.place, _render_section(templates, section, context))
        for section in data.sections
    ]
    text = templates.get_template(REPORT_TEMPLATE).render(
        context, placed=partial(_sections_at, html)
    )
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


def _render_section(
    templates: Environment, section: Section, context: Mapping[str, Any]
) -> Markup:
    """Return a section as trusted markup, which its template has escaped."""
    template = templates.from_string(section.template().read_text(encoding="utf-8"))
    drawing = context["figures"].get(section.name)
    text = template.render(context, section=section, drawing=drawing, embed=embed_svg)
    return Markup(text)  # noqa: S704


def _sections_at(html: Sequence[tuple[str, Markup]], place: str) -> Markup:
    return Markup("\n").join(part for where, part in html if where == place)


def _template_context(data: PageData, saved: dict[str, Path]) -> dict[str, Any]:
    return {
        "data": data,
        "words": sentences,
        "promises": promises,
        "learners": tables.learners(data.scores) or ["all"],
        "score_groups": [
            (m, score_rows_by_level(data, m)) for m in data.measured_metrics
        ],
        "methods": [find_method(name) for name in tables.series_names(data.scores)],
        "figures": {
            name: embed_both_sizes(data, name, saved[f"{name}.svg"])
            for name in figures.figure_drawers(data)
        },
    }


def score_rows_by_level(
    data: PageData, metric: Metric
) -> list[tuple[str, list[ScoreRow]]]:
    """Return a metric's score rows for the template, grouped by level."""
    scores, names = data.metric_scores(metric), tables.learners(data.scores)
    plain, marked = (tables.score_table(scores, metric, names, m) for m in ("", "*"))
    main = {name for names in data.main.values() for name in names}
    without = set(scores.loc[scores["learner"].isna(), "series"])
    lines = zip(plain.index, plain.to_numpy(), marked.to_numpy(), strict=True)
    groups: dict[str, list[ScoreRow]] = {}
    for (level, series), cells, marks in lines:
        row = _score_row(series, list(cells), list(marks), main, wide=series in without)
        groups.setdefault(tables.format_level(level), []).append(row)
    return list(groups.items())


def _score_row(
    series: str, cells: list[str], marks: list[str], main: set[str], *, wide: bool
) -> ScoreRow:
    method = find_method(series)
    pairs = list(zip(cells, marks, strict=True))[: 1 if wide else None]
    score_cells = [_score_cell(text, mark.endswith("*")) for text, mark in pairs]
    chief = method.name in main and not method.reference
    return ScoreRow(method.label, method.study_only, chief, score_cells, wide)


def _score_cell(text: str, best: bool) -> ScoreCell:
    value, _, se = text.partition(" ± ")
    return ScoreCell(value, se, best)


def embed_both_sizes(data: PageData, name: str, wide: Path) -> Markup:
    """Return a figure as markup, wide and for narrow screens."""
    narrow = figures.draw_figure(data, name, "svg", narrow=True)["svg"]
    return Markup("\n").join(
        (
            embed_svg(wide.read_bytes(), "wide", f"{name}-wide"),
            embed_svg(narrow, "narrow", f"{name}-narrow"),
        )
    )


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
        element.tag = _local_name(element.tag)
        element.attrib = {
            _local_name(key): _page_attribute(_local_name(key), value, prefix)
            for key, value in element.attrib.items()
        }
    width = float(root.attrib.pop("width").removesuffix("pt")) * _PIXELS_PER_POINT
    del root.attrib["height"], root.attrib["version"]
    root.attrib |= {
        "class": kind,
        "style": f"max-width: {width:.0f}px",
        "aria-hidden": "true",
    }
    text = ElementTree.tostring(root, encoding="unicode")
    return Markup(text)  # noqa: S704 - serialised just above, so escaped


def _local_name(name: str) -> str:
    return name.rpartition("}")[2]


def _page_attribute(key: str, value: str, prefix: str) -> str:
    if key == "id":
        return f"{prefix}-{value}"
    value = re.sub(r"^#|(?<=url\()#", f"#{prefix}-", value) if "#" in value else value
    return _INK_PATTERN.sub(lambda m: _INKS[m[0]], value) if key == "style" else value


def draw_report(project: Project, record: RunRecord) -> Path:
    """Return the path of a run's report, drawn anew if it would differ.

    That of the latest completed run stands under its pipeline's name, an earlier one's
    in a folder of its own. UserError: what an earlier run stored is gone.
    """
    folder = page_folder(project, record)
    digest = _report_digest(project, record)
    if _stamped_digest(folder) != digest:
        _draw_page(project, record, folder)
        write_json(folder / STAMP, {"digest": digest, "run": record.id})
    return folder / PAGE


def _draw_page(project: Project, record: RunRecord, folder: Path) -> None:
    # The drawing imports seconds' worth of libraries: only when it is needed.
    from curvote.report.loader import load_page_data

    try:
        data = load_page_data(project, record)
    except UserError:
        require_artifacts(project, record, [step["stage"] for step in record.steps])
        raise
    if record.config.get("mode") == "study" and reads_user_file(
        record.config["source"]
    ):
        private_folder(folder)  # its scores count records that nobody published
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STAMP).unlink(missing_ok=True)
    render_report(data, folder)


def _report_digest(project: Project, record: RunRecord) -> str:
    keys = [(step["stage"], step["key"]) for step in record.steps]
    loader_modules = ["curvote.report.loader", "curvote.report.page"]
    system_modules = [
        f"{SYSTEMS[member.name]}.system" for member in run_systems(record)
    ]
    parts = [name for member in run_systems(record) for name in member.sections]
    code = definitions.of_code([*loader_modules, *system_modules, *parts])
    templates = sorted(Path(__file__).parents[1].rglob("*.j2"))
    files = [file_digest(path) for path in templates]
    verdict = audit_tasks.stored_verdicts(project, record)
    return json_digest([keys, record.overrides, code, files, verdict])


def _stamped_digest(folder: Path) -> str | None:
    """Return the digest of the complete report in ``folder``, else None."""
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_complete = (folder / PAGE).is_file() and (folder / "figures").is_dir()
    return str(stamp["digest"]) if is_complete else None


COMPARISON_TEMPLATE = "difference.html.j2"


def draw_comparison(project: Project, comparison: RunComparison) -> Path:
    """Write the page of a comparison, and return its path."""
    data_by_run = {
        which: _load_run_data(project, run) for run, which in _labelled_runs(comparison)
    }
    pairs = [
        (name, _figure_pair(data_by_run, name))
        for name in _figure_names(data_by_run.values())
    ]
    folder = (
        project.reports / comparison.b.pipeline / f"{comparison.a.id}-{comparison.b.id}"
    )
    if any(
        reads_user_file(run.config["source"]) for run, _ in _labelled_runs(comparison)
    ):
        private_folder(folder.parent)
        private_folder(folder)  # records that nobody published stand behind it
    folder.mkdir(parents=True, exist_ok=True)
    template = template_environment().get_template(COMPARISON_TEMPLATE)
    keys = group_key_changes(comparison.keys)
    text = template.render(
        found=comparison, runs=_labelled_runs(comparison), keys=keys, pairs=pairs
    )
    path = figures.write_atomically(folder / PAGE, text.encode())
    write_json(folder / STAMP, {"digest": "", "run": comparison.b.id})
    return path


def _labelled_runs(comparison: RunComparison) -> tuple[tuple[RunRecord, str], ...]:
    return (comparison.a, "A"), (comparison.b, "B")


def _load_run_data(project: Project, record: RunRecord) -> PageData:
    require_artifacts(project, record, [step["stage"] for step in record.steps])
    return load_page_data(project, record)


def _figure_names(pages: Iterable[PageData]) -> list[str]:
    return list(
        dict.fromkeys(name for data in pages for name in figures.figure_drawers(data))
    )


def _figure_pair(data_by_run: Mapping[str, PageData], name: str) -> dict[str, Markup]:
    """Return a figure of each run that has it."""
    with_figure = {
        w: data
        for w, data in data_by_run.items()
        if name in figures.figure_drawers(data)
    }
    images = figures.draw_with_shared_axis([*with_figure.values()], name)
    return {
        which: embed_svg(svg, "own", f"{which}-{name}")
        for which, svg in zip(with_figure, images, strict=True)
    }
