"""The smallest study of each system keeps its tables, scores, models and page."""

import os
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from curvote.chain.axis import Cell
from curvote.chain.registry import SYSTEMS
from curvote.data import raw_files
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.results import (
    RunView,
    final_model,
    final_views,
    mean_scores,
    replicate_scores,
)
from curvote.pipeline.store.artifacts import artifact
from curvote.pipeline.store.records import RunRecord, completed_run
from curvote.report.page import draw_report
from tests import drawings, plain
from tests.house import ROOT
from tests.pins import pinned
from tests.run import test_every_stage
from tests.run.test_every_stage import PIPELINES, pipeline_of

KIND = "studies"
STUDIES = {name: pipeline_of(given) for name, given in PIPELINES.items()}
STUDIES["auto"] = plain.of("auto") | {
    "project": {"basis": "bspline", "size": 4, "coordinates": "orthonormal"},
    "grid": {"clients.train": [40, 60]},
    "replicates": 2,
}
# Of a published file.
NUMBERS = "numbers"
# Its page is drawn, but not compared: there was none when the pins were made.
PAGELESS = {"labels_regression"}
# Rows of scores that are recorded in clear; the digest is of all.
CLEAR = 40


def finished(name: str, root: Path) -> tuple[Project, RunRecord]:
    """Return a project in which a study has run."""
    project = plain.write(root, tiny=STUDIES[name])
    (root / "data").mkdir()
    shutil.copy(ROOT / "data" / "sources.toml", root / "data")
    return project, plain.run(project)


def facts(project: Project, record: RunRecord) -> Any:
    """Return what a study finds: tables, scores, what models answer, a page's words."""
    cells = final_views(project, record)
    lines = [line(row) for row in pinned.plain(mean_scores(project, record))]
    table = replicate_scores(project, record)
    systems = sorted({view.system.name for view in cells})
    words = page(project, record)
    return {
        "systems": systems,
        "tables": tables(project, record),
        "rows": [*lines[:CLEAR], f"{len(lines)} rows {pinned.digest(lines)}"],
        "replicates": pinned.of_columns({c: table[c].to_numpy() for c in table}),
        "models": [f"{named(view.cell)}: {answers(view)}" for view in cells],
        "page": None if PAGELESS & {*systems} else words,
    }


def tables(project: Project, record: RunRecord) -> dict[str, list[Any]]:
    """Return the totals of each table of each stage, in the order of the cells."""
    found: dict[str, list[Any]] = {}
    for stage, key in dict.fromkeys((s["stage"], s["key"]) for s in record.steps):
        there = artifact(project, stage, key)
        for name in sorted(there.manifest["tables"]):
            parts = [there.columns(name, at) for at in there.places(name)]
            told = [pinned.totals(part) for part in parts]
            found.setdefault(f"{stage}/{name}", []).append(told)
    return found


def line(row: dict[str, Any]) -> str:
    """Return what a row of scores says, without what it says nothing of."""
    return "; ".join(f"{name} {own}" for name, own in row.items() if own is not None)


def records(view: RunView, model: Any) -> pd.DataFrame:
    """Return raw records of a cell's first clients, as its model takes them."""
    rows = view.columns("ingest", "clients", view.place())["curve"][:40]
    names = [name for name in model.columns if name != "server"]
    frame = pd.DataFrame(rows, columns=pd.Index(names, dtype=object))
    return frame.assign(server=0) if len(names) < len(model.columns) else frame


def answers(view: RunView) -> str | None:
    """Return a digest of what the model to keep of a cell answers, if there is one."""
    model = final_model(view.project, view.record, view.cell)
    return model and pinned.digest(model.predict(records(view, model)))[:16]


def named(cell: Cell) -> str:
    """Return a cell in words."""
    return ", ".join(f"{name} {own}" for name, own in cell.to_json().items())


def page(project: Project, record: RunRecord) -> dict[str, Any]:
    """Return a page's headings and the digest of its words, figures left out."""
    with drawings.left_blank():
        html = draw_report(project, record).read_text(encoding="utf-8")
    html = re.sub(r"(?s)<(svg|style|script)\b.*?</\1>|data:image/[^\"')]*", "", html)
    heads = re.findall(r"(?s)<h[1-4][^>]*>(.*?)</h[1-4]>", html)
    told = unescape(re.sub(r"<[^>]*>", " ", html))
    told = pinned.masked(" ".join(told.split()), str(project.root))
    return {
        "headings": [re.sub(r"<[^>]*>", "", unescape(head)).strip() for head in heads],
        "words": len(told.split()),
        "sha256": pinned.digest(told),
    }


def every(root: Path, _: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    """Yield the facts of all studies."""
    for name in STUDIES:
        yield name, facts(*finished(name, root / name))


def test_every_system_is_pinned() -> None:
    """In a cell of its own, but for a rule, and for what is never a study."""
    known = pinned.items(KIND)
    found = {system for item in known.values() for system in item["systems"]}
    assert found | {"auto", "monitor"} == set(SYSTEMS)
    assert set(known) == set(STUDIES)


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_finds_what_was_recorded(
    name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each table, each score, each answer of a model, each word of the page."""
    root = tmp_path / "project"
    if name == NUMBERS and not os.environ.get(raw_files.MIRROR):
        pytest.skip("needs the real file: CURVOTE_DATA_MIRROR unset")
    if name in {NUMBERS, "auto"}:
        project, record = finished(name, root)
    else:
        made = test_every_stage.finished(tmp_path_factory, name)
        project = Project(shutil.copytree(made.root, root))
        record = completed_run(project, "tiny")
    found = pinned.as_json(facts(project, record))
    assert not pinned.differences(found, pinned.recorded(KIND, name), 1e-6)


def test_a_comparison_sees_what_is_missing_moved_or_changed() -> None:
    """Not the last digits; a key whose value is None is not one that is not there."""
    known = {"a": None, "t": pinned.totals({"x": np.array([1.0, 2, 3])})}
    near = known | {"t": pinned.totals({"x": np.array([1 + 1e-12, 2, 3])})}
    moved = known | {"t": pinned.totals({"x": np.array([2.0, 1, 3])})}
    more = known | {"t": pinned.totals({"x": np.array([1.0, 2, 3.001])})}
    assert pinned.differences(near, known, 1e-6) == []
    for wrong in (moved, more, {"t": known["t"]}, known | {"b": None}):
        assert pinned.differences(wrong, known, 1e-6)
