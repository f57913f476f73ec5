"""The page of `curvote diff`: what differs between two runs, their figures in pairs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from markupsafe import Markup

from curvote.durable import owner_folder
from curvote.reporting import figures
from curvote.reporting.gather import page_data
from curvote.reporting.page import embed, environment
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
    sides = [_figures(project, run, which) for run, which in _runs(found)]
    names = dict.fromkeys(chain.from_iterable(sides))
    pairs = [(name, [side.get(name) for side in sides]) for name in names]
    folder = project.reports / found.b.pipeline / f"{found.a.id}-{found.b.id}"
    if any(given(run.config["source"]) for run, _ in _runs(found)):
        owner_folder(folder.parent)
        owner_folder(folder)  # records that nobody published stand behind it
    folder.mkdir(parents=True, exist_ok=True)
    template = environment().get_template(TEMPLATE)
    text = template.render(found=found, runs=_runs(found), pairs=pairs)
    path = figures.write(folder / PAGE, text.encode())
    write_json(folder / STAMP, {"digest": "", "run": found.b.id})
    return path


def _runs(found: Difference) -> tuple[tuple[RunRecord, str], ...]:
    return (found.a, "A"), (found.b, "B")


def _figures(project: Project, record: RunRecord, which: str) -> Mapping[str, Markup]:
    """Return each figure of a run's report, by its name."""
    need(project, record, [step["stage"] for step in record.steps])
    data = page_data(project, record)
    return {
        name: embed(figures.draw(data, name, "svg", narrow=True)["svg"], "own", own)
        for name in figures.available(data)
        for own in [f"{which}-{name}"]
    }
