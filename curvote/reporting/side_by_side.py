"""The page of `curvote diff`: what differs between two runs, their figures in pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from markupsafe import Markup

from curvote.durable import owner_folder
from curvote.reporting import figures
from curvote.reporting.data import PageData
from curvote.reporting.gather import page_data
from curvote.reporting.page import embed, environment
from curvote.run.changes import grouped
from curvote.run.config.source import given
from curvote.run.difference import Difference
from curvote.run.history import RunRecord
from curvote.run.loaded import need
from curvote.run.pages import PAGE, STAMP
from curvote.run.project import Project
from curvote.run.store.artifacts import write_json

TEMPLATE = "difference.html.j2"


def draw(project: Project, found: Difference) -> Path:
    """Write the page and return its path; UserError: what a run stored is gone."""
    every = {which: _data(project, run) for run, which in _runs(found)}
    pairs = [(name, _pair(every, name)) for name in _names(every.values())]
    folder = project.reports / found.b.pipeline / f"{found.a.id}-{found.b.id}"
    if any(given(run.config["source"]) for run, _ in _runs(found)):
        owner_folder(folder.parent)
        owner_folder(folder)  # records that nobody published stand behind it
    folder.mkdir(parents=True, exist_ok=True)
    template = environment().get_template(TEMPLATE)
    keys = grouped(found.keys)
    text = template.render(found=found, runs=_runs(found), keys=keys, pairs=pairs)
    path = figures.write(folder / PAGE, text.encode())
    write_json(folder / STAMP, {"digest": "", "run": found.b.id})
    return path


def _runs(found: Difference) -> tuple[tuple[RunRecord, str], ...]:
    return (found.a, "A"), (found.b, "B")


def _data(project: Project, record: RunRecord) -> PageData:
    need(project, record, [step["stage"] for step in record.steps])
    return page_data(project, record)


def _names(every: Iterable[PageData]) -> list[str]:
    return list(
        dict.fromkeys(name for data in every for name in figures.available(data))
    )


def _pair(every: Mapping[str, PageData], name: str) -> dict[str, Markup]:
    """Return a figure of each run that has it."""
    own = {w: data for w, data in every.items() if name in figures.available(data)}
    drawn = figures.draw_alike([*own.values()], name)
    return {
        which: embed(svg, "own", f"{which}-{name}")
        for which, svg in zip(own, drawn, strict=True)
    }
