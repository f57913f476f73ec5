"""Rows of `scores --json`: what they are made of, and what stands beside them."""

import json
import shutil
from dataclasses import replace

import pandas as pd
import pytest

from curvote.base.errors import InternalError
from curvote.chain.lookup import all_systems
from curvote.chain.measure import SCORES, Metric
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import file_digest
from curvote.pipeline.run import results
from curvote.pipeline.run.results import mean_scores
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import MANIFEST, write_json
from tests import plain

F1 = Metric("f1", "F1", beside="misclassification", spread=True)


def _with_f1(project: Project) -> None:
    """Let the stored scores tell F1 of the method `mrma`: one less its error."""
    record = records.completed_run(project, "tiny")
    for _, key in record.stage_keys("report"):
        folder = project.clients / "report" / key
        path = folder / f"{SCORES.name}.parquet"
        table = pd.read_parquet(path)
        own = table[(table["metric"] == F1.beside) & (table["method"] == "mrma")]
        more = own.assign(metric=F1.name, value=1 - own["value"])
        pd.concat([table, more]).to_parquet(path)
        manifest = json.loads((folder / MANIFEST).read_text())
        sizes = {"bytes": path.stat().st_size, "sha256": file_digest(path)}
        manifest["tables"][SCORES.name] |= sizes
        write_json(folder / MANIFEST, manifest)


@pytest.fixture
def told(done: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A finished project, whose system has a second measure beside its error."""
    mrma = all_systems()[0]
    apart = Metric("apart", "apart", beside="f1")
    other = replace(mrma, metrics=(*mrma.metrics, F1, apart))
    monkeypatch.setattr(results, "find_system", lambda _: other)
    _with_f1(done)
    return done


def test_a_second_measure_has_its_own_standard_error(told: Project) -> None:
    """It is the same as that of what it was made of; others have none, not zero."""
    rows = mean_scores(told, records.completed_run(told, "tiny"))
    assert {row["metric"] for row in rows} == {"misclassification"}
    for row in rows:
        if row["method"] == "mrma":
            assert row["f1"] == pytest.approx(1 - row["value"])
            assert row["f1_se"] == pytest.approx(row["se"])
        else:
            assert (row["f1"], row["f1_se"]) == (None, None)
    assert any(row["f1_se"] for row in rows)


def test_a_note_stands_in_rows_of_its_own_metric_only(told: Project) -> None:
    """How often something happened is 0 where nobody tells it; it has no error."""
    rows = mean_scores(told, records.completed_run(told, "tiny"))
    assert all(0 <= row["none_passed"] <= 1 for row in rows)
    assert {row["none_passed"] for row in rows if row["method"] == "weak"} == {0}
    assert not any({"none_passed_se", "apart"} & set(row) for row in rows)


def test_one_replicate_has_no_standard_error(project: Project) -> None:
    """Null, beside what it stands for too."""
    plain.run(project, "tiny", "replicates=1", "epsilon=4", "learners=[centroid]")
    with pytest.MonkeyPatch.context() as patch:
        mrma = all_systems()[0]
        other = replace(mrma, metrics=(*mrma.metrics, F1))
        patch.setattr(results, "find_system", lambda _: other)
        _with_f1(project)
        rows = mean_scores(project, records.completed_run(project, "tiny"))
    assert {row["se"] for row in rows} == {row["f1_se"] for row in rows} == {None}
    assert any(row["f1"] for row in rows)


def test_a_standard_error_of_its_own_stands_beside_something() -> None:
    """A row has one already."""
    with pytest.raises(InternalError, match="f1: its standard error is its row's"):
        replace(F1, beside="")


def test_scores_need_only_what_was_scored(done: Project) -> None:
    """What it was computed from may be gone."""
    record = records.completed_run(done, "tiny")
    before = mean_scores(done, record)
    shutil.rmtree(done.artifacts)
    for folder in done.clients.iterdir():
        if folder.name != "report":
            shutil.rmtree(folder)
    assert mean_scores(done, record) == before


def test_many_scores_take_as_many_passes_as_few(
    done: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`curvote runs` means those of twenty runs: a pass for each score took seconds."""
    passes: list[object] = []
    groupby = pd.DataFrame.groupby

    def counted(table: pd.DataFrame, *by: object, **options: object) -> object:
        passes.append(by)
        return groupby(table, *by, **options)

    monkeypatch.setattr(pd.DataFrame, "groupby", counted)
    assert len(mean_scores(done, records.completed_run(done, "tiny"))) > 20
    assert len(passes) <= 2
