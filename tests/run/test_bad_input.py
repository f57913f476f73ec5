"""What is wrong is said once, with its place and the way out; nothing runs."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curvote.chain.axis import EPSILON, Axis
from curvote.chain.lookup import system, systems
from curvote.chain.measure import Metric
from curvote.chain.stage import Stage
from curvote.chain.tables import SIDES, STAGE_SIDES, Table
from curvote.errors import InternalError, UserError
from curvote.run import history, results
from curvote.run.config.file import PipelinesFile
from curvote.run.plan.fingerprint import of_file
from curvote.run.project import Project, is_raw
from curvote.run.store.arrow import to_columns
from curvote.run.store.artifacts import MANIFEST, Artifact, write_json
from tests import plain, production

COMMON = """\
pipelines:
  p:
    source: {name: simulated}
    clients: {train: 60, vote: 80, test: 40}
    project: {basis: bspline, size: 4}
    seed: 3
"""
TAUGHT = "    train: {count: 5, size: 20}\n    learners: [centroid]\n    epsilon: 1\n"


def refused(root: Path, text: str) -> str:
    """Return what is said of a file that is refused; nothing but it is there then."""
    (root / "pipelines.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        PipelinesFile(Project(root)).configured("p")
    assert [path.name for path in root.iterdir()] == ["pipelines.yaml"]
    return str(error.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "    protocol: drect\n",
            "7: protocol: 'drect' is not known. Did you mean 'direct'?",
        ),
        ("    protocols: [mrma, vots]\n", "'vots' is not known. Did you mean 'votes'?"),
        (
            f"{TAUGHT}    grid: {{project.size: []}}\n",
            "10: grid.project.size: is an axis:",
        ),
        (TAUGHT.replace("[centroid]", "[]"), "8: learners: is missing: `curvote list`"),
        (
            TAUGHT.replace(" 1\n", " []\n"),
            "9: epsilon: List should have at least 1 item",
        ),
        (f"{TAUGHT}    epsilon: 2\n", "10: epsilon stands here a second time."),
        (
            f"{TAUGHT}    grid: {{protocol: [a]}}\n",
            "is no axis of a grid: list protocols",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(more: str, said: str, tmp_path: Path) -> None:
    """An unknown system, an axis without values, an axis that stands twice."""
    message = refused(tmp_path, COMMON + more)
    assert said in message
    assert message.startswith("pipelines.yaml:")


SECTIONS = {
    "federation": "{servers: 3}",
    "votes": "{directions: 5}",
    "drift": "{at: 0.5}",
    "direct": "{arm: mean}",
    "aggregate": "{cutoff: 0.8}",
    "histogram": "{width: 0.5}",
    "train": "{count: 5, size: 20}",
}


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("one", systems(), ids=lambda one: one.name)
def test_a_section_that_nobody_reads_is_refused(
    one: Any, section: str, tmp_path: Path
) -> None:
    """With its line, who does read it, and what to do instead."""
    if section in one.settings.model_fields:
        return
    own = f"    protocol: {one.name}\n    {section}: {SECTIONS[section]}\n"
    message = refused(tmp_path, COMMON + own)
    line = f"pipelines.yaml:8: {section}: {one.name} never reads it: it belongs to"
    assert line in message
    assert re.search(r"Take it out, or name \w+\.", message)


def test_other_problems_are_said_in_the_same_pass(tmp_path: Path) -> None:
    """A section that nobody reads does not hide a key that is not known."""
    own = "    protocol: direct\n    votes: {}\n    clints: {}\n    epsilon: 1\n"
    message = refused(tmp_path, COMMON + own)
    assert "pipelines.yaml:8: votes: direct never reads it" in message
    assert "pipelines.yaml:9: clints: not known. Did you mean 'clients'?" in message


def test_systems_of_one_run_read_a_section_in_their_own_forms(tmp_path: Path) -> None:
    """What only one of them knows of it is no error for the other."""
    text = (
        COMMON + TAUGHT + "    protocols: [mrma, online]\n    online: {arrivals: 2}\n"
    )
    text = text.replace("simulated", "drifting").replace("train: 60", "train: 300")
    (tmp_path / "pipelines.yaml").write_text(text)
    made = PipelinesFile(Project(tmp_path)).configured("p")
    mrma, online = (setting.pipeline for setting in made.settings)
    assert online.online.arrivals == 2
    assert not hasattr(mrma.online, "arrivals")


# ------------------------------------------------------------------ of a system itself
def test_two_axes_of_one_name_are_our_bug() -> None:
    """And so are two metrics or two methods: nobody could tell which is meant."""
    one = systems()[0]
    with pytest.raises(InternalError, match="axes epsilon stands twice"):
        replace(one, axes=(*one.axes, Axis("epsilon", lambda _: [1])))
    with pytest.raises(InternalError, match="metrics misclassification stands twice"):
        replace(one, metrics=(*one.metrics, Metric("misclassification", "again")))
    assert replace(one, axes=(EPSILON,)).axes == (EPSILON,)


def test_a_metric_or_method_that_a_system_does_not_have_is_our_bug() -> None:
    """Whoever declares it reads its name."""
    one = systems()[0]
    beside = Metric("passed", "passed", beside="acuracy")
    with pytest.raises(InternalError, match="mrma: there is no metric acuracy"):
        replace(one, metrics=(*one.metrics, beside))
    with pytest.raises(InternalError, match="mrma: there is no method mrme"):
        replace(one, main=("mrme",))


def test_a_stage_repeats_over_the_first_of_its_system_s_index() -> None:
    """Another part's numbers would name other repetitions of what it reads."""
    one = system("federated")
    *others, last = one.stages
    for index in (("server",), ("server", "replicate"), ("replicat",)):
        stages = (*others, replace(last, index=index))
        with pytest.raises(InternalError, match="stage report repeats over"):
            replace(one, stages=stages)
        with pytest.raises(InternalError, match="which does not begin replicate, serv"):
            replace(one, stages=one.stages, production=stages)
    for index in (None, ("replicate", "server"), ("replicate",), ()):
        stages = (*others, replace(last, index=index))
        assert replace(one, stages=stages).stages == stages


@pytest.mark.parametrize(
    ("side", "unit"),
    [
        ("server", "client"),
        ("server", "record"),
        ("public", "record"),
        ("srv", "message"),
    ],
)
def test_a_unit_that_contradicts_its_side_is_our_bug(side: str, unit: str) -> None:
    """No row of the server's tables stands for a client: said before anything runs."""
    with pytest.raises(InternalError, match=f"table t: a row is a {unit}, but"):
        Table("t", {"x": "int64"}, side=side, unit=unit)
    assert unit not in SIDES.get(side, ())


@pytest.mark.parametrize(
    ("side", "table"),
    [
        ("client", "server"),
        ("client (study)", "server"),
        ("client (study)", "client"),
        ("client -> server", "client"),
        ("server", "client (study)"),
        ("server -> servers", "client"),
    ],
)
def test_a_table_stands_where_its_side_may_read(side: str, table: str) -> None:
    """It stands in its stage's root of the store, whatever it says of itself."""
    made = Table("t", {"x": "int64"}, side=table, unit=SIDES[table][0])
    with pytest.raises(InternalError, match=r"stage s of side .* cannot make table t"):
        Stage("s", "nowhere", side=side, tables=(made,))
    own = STAGE_SIDES[side][0]
    made = Table("t", {"x": "int64"}, side=own, unit=SIDES[own][0])
    assert is_raw(side) == own.startswith("client")
    assert Stage("s", "nowhere", side=side, tables=(made,)).tables == (made,)
    with pytest.raises(InternalError, match="there is no side 'servers'"):
        Stage("s", "nowhere", side="servers")


# --------------------------------------------------------------- of the version before
def _without_kinds(path: Path) -> None:
    """Write a table as it was before fields told their kinds."""
    table = pq.read_table(path)
    fields = [pa.field(each.name, each.type) for each in table.schema]
    pq.write_table(table.cast(pa.schema(fields)), path)


def test_tables_of_the_version_before_are_read(
    finished: Project, tmp_path: Path
) -> None:
    """Every table of a run: vectors, categories, text and numbers as they were."""
    found = [f for root in finished.stores for f in root.glob("*/*/*.parquet")]
    names = {path.stem for path in found} - {"scores"}
    assert {"clients", "encoded", "reports", "weak", "votes", "ensemble"} <= names
    for path in found:
        copy = shutil.copy(path, tmp_path / path.name)
        _without_kinds(Path(copy))
        new, old = (to_columns(path.stem, pq.read_table(file)) for file in (path, copy))
        assert set(new) == set(old)
        for column, values in new.items():
            assert np.array_equal(values, old[column]), f"{path.stem}.{column}"


def _made_before(artifact: Path) -> None:
    """Give an artifact the form that the version before wrote."""
    manifest = json.loads((artifact / MANIFEST).read_text())
    for name, entry in manifest["tables"].items():
        path = artifact / f"{name}.parquet"
        _without_kinds(path)
        entry["replicates"] = [
            place[0] if place else -1 for place in entry.pop("places")
        ]
        entry |= {"bytes": path.stat().st_size, "sha256": of_file(path)}
    manifest["components"]["contract"] = 2
    write_json(artifact / MANIFEST, manifest)


def test_production_goes_on_from_what_the_version_before_stored(tmp_path: Path) -> None:
    """What was asked of clients stands; the server's last stage gives the same."""
    project = production.write(tmp_path)
    made = production.run(project)
    keys = {step.stage.name: step.key for step in made.steps}
    ensemble = project.artifacts / "aggregate" / keys["aggregate"]
    before = Artifact(ensemble).columns("ensemble", (0,))
    for stage in ("ingest", "project"):
        _made_before(project.clients / stage / keys[stage])
    _made_before(project.artifacts / "train" / keys["train"])
    shutil.rmtree(ensemble)
    again = production.run(project)
    assert {s.stage.name for s in again.steps if s.action == "run"} == {"aggregate"}
    after = Artifact(ensemble).columns("ensemble", (0,))
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert len(production.confirmed(project)) == 2


def test_scores_of_the_version_before_are_told_from_ours(done: Project) -> None:
    """A column for each metric: whose run it was is said, and what to do."""
    record = history.completed(done, "tiny")
    for _, key in record.keys("report"):
        folder = done.clients / "report" / key
        old = pa.table(
            {"replicate": [0], "method": ["mrma"], "misclassification": [0.2]}
        )
        pq.write_table(old, folder / "scores.parquet")
        manifest = json.loads((folder / MANIFEST).read_text())
        path = folder / "scores.parquet"
        entry = {"rows": 1, "bytes": path.stat().st_size, "sha256": of_file(path)}
        write_json(folder / MANIFEST, manifest | {"tables": {"scores": entry}})
    with pytest.raises(UserError, match=r"an earlier version .* `curvote run tiny`"):
        results.summary(done, record)


def test_a_record_of_the_version_before_is_read(done: Project) -> None:
    """It named every coordinate, and held sections of all systems."""
    record = history.completed(done, "tiny")
    more = {"federation": {"servers": 5}, "votes": {"directions": 9}}
    config = (
        record.config | more | {"online": record.config["online"] | {"arrivals": 1}}
    )
    absent = dict.fromkeys(("protocol", "epsilon", "learner", "setting", "arrival"))
    steps = [step | {"cell": absent | step["cell"]} for step in record.steps]
    old = history.save(done, replace(record, config=config, steps=steps))
    assert results.summary(done, old) == results.summary(done, record)
    assert plain.to_run(plain.plan(done)) == set()


def test_scores_of_a_metric_that_nobody_declares_are_our_bug(
    done: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not shown under a name that nobody explains."""
    record = history.completed(done, "tiny")
    other = replace(systems()[0], metrics=(Metric("accuracy", "right"),))
    monkeypatch.setattr(results, "system", lambda _: other)
    with pytest.raises(InternalError, match="scores of misclassification, none_passed"):
        results.summary(done, record)
