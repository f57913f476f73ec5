"""`curvote rerun` makes a run as it was, and says first what is other today."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from curvote.cli import app
from curvote.cli import run as running
from curvote.flows.tracking import log as tracking
from curvote.pipeline.plan import expand
from curvote.pipeline.store import records
from tests import plain
from tests.prepared import put_databases


@pytest.fixture(autouse=True)
def _no_server(own_variables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run without a server."""

    def run(project: Any, options: dict[str, Any]) -> None:
        plain.run(project, options["pipeline"], *options["overrides"])

    monkeypatch.setattr(running, "run_and_print", run)


def rerun(root: Path, *words: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(app.app, ["rerun", *words, "--project", str(root)])


def test_a_run_is_made_again_though_its_file_and_libraries_changed(
    tmp_path: Path, databases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its record, or from MLflow where the record is gone; bit for bit."""
    project = put_databases(databases, plain.write(tmp_path, own=plain.FEW))
    first = plain.run(project, "own", "train.count=4", "seed=3")
    tracking.log_missing_runs(project)
    assert "nothing differs" in rerun(tmp_path, first.id, "--dry-run").output
    other = {"train": {"count": 9, "size": 30}, "grid": {"aggregate.cutoff": [0.6]}}
    plain.write(tmp_path, own={**plain.FEW, **other})
    done = rerun(tmp_path, first.id)
    assert done.exit_code == 0, done.exception
    assert "pipelines.yaml: train.size 20 -> 30; it runs as before" in done.output
    assert "8 of 8 steps are stored" in done.output
    again = records.latest_run(project, "own")
    assert again
    keys = [[s["key"] for s in run.steps] for run in (first, again)]
    assert keys[0] == keys[1]
    plain.write(tmp_path, own={"source": {"name": "circle"}, "protocol": "labels"})
    known = expand.library_versions
    monkeypatch.setattr(expand, "library_versions", lambda x: known(x) | {"numpy": "9"})
    kept = records.load_record(project, first.id)
    records.delete_records(project, [first.id])
    for name in (first.id, str(kept and kept.mlflow_run)):
        done = rerun(tmp_path, name, "--dry-run")
        assert done.exit_code == 0, done.exception
        assert "labels never reads it" in done.output
        assert "-> 9 (ingest, project, privatize, train," in done.output


def test_what_cannot_be_made_again_is_refused(tmp_path: Path) -> None:
    """A release, a run that nobody knows, a pipeline that is not there any more."""
    project = plain.write(tmp_path, own=plain.FEW)
    first = plain.run(project, "own")
    assert "no run 'other'" in str(rerun(tmp_path, "other").exception)
    plain.write(tmp_path, new=plain.FEW)
    refused = str(rerun(tmp_path, first.id).exception)
    assert "no pipeline 'own'" in refused
    assert "train: {count: 5, size: 20}" in refused
    release = {**first.config, "mode": "production"}
    records.save_record(project, records.replace(first, config=release))
    refused = str(rerun(tmp_path, first.id).exception)
    assert "its noise was drawn once" in refused
    assert "--new-release" in refused
