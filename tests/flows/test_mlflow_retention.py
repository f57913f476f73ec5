"""What MLflow holds of runs whose records go: all of it, and nothing that is shown."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from curvote.flows.environment import prepare_environment
from curvote.flows.serving import retention
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records
from curvote.pipeline.store.garbage import RetentionLimits
from tests.mlflow_runs import children_of, log, mlflow_client
from tests.prepared import put_databases
from tests.tracked_run import make_record

OLD = RetentionLimits(runs=90 * 86_400)


@pytest.fixture(scope="module")
def project(
    tmp_path_factory: pytest.TempPathFactory, databases: Path
) -> Iterator[Project]:
    """A project whose MLflow database exists; the environment is put back."""
    before = dict(os.environ)
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    place = put_databases(databases, Project(tmp_path_factory.mktemp("forgotten")))
    place.pipelines_file.write_text("pipelines: {}\n")
    page = place.reports / "demo" / "report.html"
    page.parent.mkdir(parents=True)
    prepare_environment(place.root)
    yield place
    os.environ.clear()
    os.environ.update(before)


def logged(project: Project, name: str, page: str, **changes: object) -> str:
    """Log a run as `tracking.log_missing_runs` does; return its MLflow run."""
    (project.reports / "demo" / "report.html").write_text(page)
    record = records.save_record(project, make_record(name, **changes))
    run = log(project, record)
    records.save_record(project, replace(record, mlflow_run=run))
    return run


def files(project: Project) -> set[Path]:
    """Return the folders of runs and models that MLflow keeps."""
    place = project.state / "mlartifacts"
    return {*place.glob("*"), *place.glob("models/*")} - {place / "models"}


def test_old_runs_go_with_their_files_and_shown_ones_stay(project: Project) -> None:
    """Of four old runs the last is kept, and with it the one whose page it shows.

    A dry run takes nothing. The model that the kept run has stays, too.
    """
    steps = make_record().steps
    others = [step | {"key": f"{step['key']}-x"} for step in steps]
    alone = logged(project, "one", "<a>", steps=others)
    shown = logged(project, "two", "<b>")
    between = logged(project, "three", "<c>")
    last = logged(project, "four", "<b>")
    before = files(project)
    told = retention.collect_garbage(project, limits=OLD, dry_run=True)
    assert files(project) == before
    found = {pile.kind: pile for pile in told}
    assert set(found["records"].runs) == {"one", "three"}
    assert found["mlflow"].bytes > 0
    assert [p.kind for p in retention.collect_garbage(project, limits=OLD)] == list(
        found
    )
    client = mlflow_client()
    for run in (shown, last):
        assert client.get_run(run).info.lifecycle_stage == "active"
        for child in children_of(run):
            model = child.data.tags["model_uri"].removeprefix("models:/")
            assert client.get_logged_model(model)
    for run in (alone, between):
        with pytest.raises(Exception, match=f"{run} not found"):
            client.get_run(run)
    gone = before - files(project)
    assert {path.name for path in gone} >= {alone, between}
    assert any(path.parent.name == "models" for path in gone)
    assert {r.id for r in records.load_records(project)} == {"two", "four"}


def test_where_mlflow_fails_its_records_stay(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They are how the next time finds what is left; all else goes."""

    def fail(_: Project) -> None:
        raise OSError("no database")

    logged(project, "five", "<d>")
    logged(project, "six", "<e>")
    records.save_record(project, make_record("unlogged", status="failed"))
    records.save_record(project, make_record("newest"))
    monkeypatch.setattr("curvote.flows.tracking.store.connect", fail)
    retention.collect_garbage(project, limits=OLD)
    names = {record.id for record in records.load_records(project)}
    assert names >= {"five", "six", "newest"}
    assert "unlogged" not in names
    assert "MLflow keeps its runs (no database)" in capsys.readouterr().err
