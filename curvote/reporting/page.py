"""The report: one HTML file that needs nothing else, and its figures beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from curvote.reporting import data as tables
from curvote.reporting import figures, promises, style, words
from curvote.reporting.alt_texts import alt_texts
from curvote.reporting.data import PageData
from curvote.reporting.methods import ARMS, method_of

TEMPLATE = "report.html.j2"
_INKS = {
    style.INK: "var(--ink)",
    style.MUTED: "var(--muted)",
    style.LINE: "var(--line)",
    style.PAPER: "var(--paper)",
    style.LOOKS["mr"].colour: "var(--blue)",
    style.LOOKS["all_data"].colour: "var(--green)",
    style.LOOKS["voting"].colour: "var(--brown)",
    style.CLASS_COLOURS[0]: "var(--violet)",
}
_INK = re.compile("|".join(_INKS))
_PIXELS_PER_POINT = 1.25


@dataclass(frozen=True)
class Cell:
    """One cell of the score table: percent, one standard error, best of its epsilon."""

    value: str
    se: str
    best: bool


@dataclass(frozen=True)
class Row:
    """One method at one epsilon; ``wide`` says that its one cell spans all learners."""

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
    text = _environment().get_template(TEMPLATE).render(_context(data, saved))
    return figures.write(folder / "report.html", text.encode())


def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _context(data: PageData, saved: dict[str, Path]) -> dict[str, object]:
    methods = [method_of(name) for name in tables.series_names(data.scores)]
    return {
        "data": data,
        "words": words,
        "promises": promises,
        "learners": tables.learners(data.scores) or ["all"],
        "score_groups": score_groups(data.scores),
        "methods": methods,
        "figures": {
            name: embedded(data, name, saved[f"{name}.svg"])
            for name in figures.available(data)
        },
        "card_figure": (
            embed(data.card.svg, "card", "card") if data.card else Markup()
        ),
        "alt": alt_texts(data),
        "cut": figures.used_from(data.cutoff),
    }


def score_groups(scores: pd.DataFrame) -> list[tuple[str, list[Row]]]:
    """Return the score table's rows, grouped by epsilon, ready for the template."""
    if scores.empty:
        return []
    plain, marked = tables.score_table(scores), tables.score_table(scores, mark="*")
    named = tables.with_series(scores)
    without = set(named.loc[named["learner"].isna(), "series"])
    lines = zip(plain.index, plain.to_numpy(), marked.to_numpy(), strict=True)
    groups: dict[str, list[Row]] = {}
    for (level, series), cells, marks in lines:
        row = _row(series, list(cells), list(marks), wide=series in without)
        groups.setdefault(tables.level(level), []).append(row)
    return list(groups.items())


def _row(series: str, cells: list[str], marks: list[str], *, wide: bool) -> Row:
    method = method_of(series)
    pairs = list(zip(cells, marks, strict=True))[: 1 if wide else None]
    made = [_cell(text, mark.endswith("*")) for text, mark in pairs]
    main = series.rpartition(": ")[2] in {"mrma", *ARMS}
    return Row(method.label, method.study_only, main, made, wide)


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
