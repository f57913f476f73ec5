"""Page of `curvote diff`: differences of two runs, with figures in pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from markupsafe import Markup

from curvote.durable import private_folder
from curvote.reporting import figures
from curvote.reporting.data import PageData
from curvote.reporting.gather import load_page_data
from curvote.reporting.page import embed_svg, template_environment
from curvote.run.changes import group_key_changes
from curvote.run.config.source import reads_user_file
from curvote.run.difference import RunComparison
from curvote.run.history import RunRecord
from curvote.run.loaded import require_artifacts
from curvote.run.pages import PAGE, STAMP
from curvote.run.project import Project
from curvote.run.store.artifacts import write_json

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
