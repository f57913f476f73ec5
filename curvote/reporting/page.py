"""The report: one HTML file that needs nothing else, and its figures beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from curvote.chain.measure import Metric
from curvote.reporting import data as tables
from curvote.reporting import figures, promises, style, words
from curvote.reporting.data import PageData
from curvote.reporting.methods import method_of
from curvote.reporting.section import Section

TEMPLATE = "report.html.j2"
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
_INK = re.compile("|".join(_INKS))
_PIXELS_PER_POINT = 1.25


@dataclass(frozen=True)
class Cell:
    """One cell of the score table: value, one standard error, best of its level."""

    value: str
    se: str
    best: bool


@dataclass(frozen=True)
class Row:
    """One method at one level; ``wide`` says that its one cell spans all learners."""

    label: str
    study_only: bool
    main: bool
    cells: list[Cell]
    wide: bool


def render(data: PageData, folder: Path) -> Path:
    """Write ``folder/report.html`` and ``folder/figures``; return the page's path.

    The page holds its style and figures, runs no script and asks for nothing. The
    same data give the same bytes. Files appear under their names only when complete.
    """
    saved = figures.save_figures(data, folder / "figures")
    templates = environment()
    context = _context(data, saved)
    html = [
        (section.place, _part(templates, section, context)) for section in data.sections
    ]
    text = templates.get_template(TEMPLATE).render(
        context, placed=partial(_placed, html)
    )
    return figures.write(folder / "report.html", text.encode())


def environment() -> Environment:
    """Return what finds the templates of pages, and escapes whatever they are given."""
    return Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _part(
    templates: Environment, section: Section, context: Mapping[str, Any]
) -> Markup:
    """Return a section as trusted markup: its template escapes whatever it is given."""
    template = templates.from_string(section.template().read_text(encoding="utf-8"))
    drawing = context["figures"].get(section.name)
    text = template.render(context, section=section, drawing=drawing, embed=embed)
    return Markup(text)  # noqa: S704


def _placed(html: Sequence[tuple[str, Markup]], place: str) -> Markup:
    return Markup("\n").join(part for where, part in html if where == place)


def _context(data: PageData, saved: dict[str, Path]) -> dict[str, Any]:
    return {
        "data": data,
        "words": words,
        "promises": promises,
        "learners": tables.learners(data.scores) or ["all"],
        "score_groups": [(m, score_groups(data, m)) for m in data.measured],
        "methods": [method_of(name) for name in tables.series_names(data.scores)],
        "figures": {
            name: embedded(data, name, saved[f"{name}.svg"])
            for name in figures.available(data)
        },
    }


def score_groups(data: PageData, metric: Metric) -> list[tuple[str, list[Row]]]:
    """Return a metric's table as rows, grouped by level, ready for the template."""
    scores, names = data.of(metric), tables.learners(data.scores)
    plain, marked = (tables.score_table(scores, metric, names, m) for m in ("", "*"))
    main = {name for names in data.main.values() for name in names}
    without = set(scores.loc[scores["learner"].isna(), "series"])
    lines = zip(plain.index, plain.to_numpy(), marked.to_numpy(), strict=True)
    groups: dict[str, list[Row]] = {}
    for (level, series), cells, marks in lines:
        row = _row(series, list(cells), list(marks), main, wide=series in without)
        groups.setdefault(tables.level(level), []).append(row)
    return list(groups.items())


def _row(
    series: str, cells: list[str], marks: list[str], main: set[str], *, wide: bool
) -> Row:
    method = method_of(series)
    pairs = list(zip(cells, marks, strict=True))[: 1 if wide else None]
    made = [_cell(text, mark.endswith("*")) for text, mark in pairs]
    chief = method.name in main and not method.reference
    return Row(method.label, method.study_only, chief, made, wide)


def _cell(text: str, best: bool) -> Cell:
    value, _, se = text.partition(" ± ")
    return Cell(value, se, best)


def embedded(data: PageData, name: str, wide: Path) -> Markup:
    """Return a figure for the page: the saved drawing, and one for narrow screens."""
    narrow = figures.draw(data, name, "svg", narrow=True)["svg"]
    return Markup("\n").join(
        (
            embed(wide.read_bytes(), "wide", f"{name}-wide"),
            embed(narrow, "narrow", f"{name}-narrow"),
        )
    )


def embed(svg: bytes, kind: str, prefix: str) -> Markup:
    """Turn an SVG file into an element of the page, as trusted markup.

    Names get a ``prefix``, so that figures cannot refer to one another's parts; inks
    become the page's own colours; namespaces go, as HTML knows them.
    """
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own drawing
    for parent in root.iter():
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {
            _local(key): _attribute(_local(key), value, prefix)
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


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _attribute(key: str, value: str, prefix: str) -> str:
    if key == "id":
        return f"{prefix}-{value}"
    value = re.sub(r"^#|(?<=url\()#", f"#{prefix}-", value) if "#" in value else value
    return _INK.sub(lambda m: _INKS[m[0]], value) if key == "style" else value
