"""The command `curvote reproduce`: what it runs, prints and refuses."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from curvote.base.errors import UserError
from curvote.cli.commands.runs import reproduce
from curvote.data.raw_files import Source
from curvote.papers.registry import reproductions
from curvote.papers.reproduction import Entry, Evidence
from curvote.papers.rows import COLUMNS
from tests.reproduce_rows import comparison, evidence, row, summaries

pytestmark = pytest.mark.usefixtures("blank_figures")
PIPELINES = """
pipelines:
  table-1: &plain
    source: {name: simulated}
    clients: {train: 500, vote: 2500, test: 500}
    project: {basis: bspline, size: 4, rescale: tanh}
    train: {count: 50, size: 50}
    epsilon: [1]
    learners: [logistic]
  figure-4:
    <<: *plain
    source: {name: nhanes}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two of the pipelines, and nothing that really runs."""
    (tmp_path / "pipelines.yaml").write_text(PIPELINES)
    monkeypatch.delenv("CURVOTE_DATA_MIRROR", raising=False)
    import_module(
        "curvote.flows.server.private"
    )  # takes the real one, before it is replaced
    monkeypatch.setattr("curvote.flows.environment.prepare_environment", lambda _: None)
    return tmp_path


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What was asked to run; it prints, and finds made-up scores."""
    asked: list[dict[str, Any]] = []

    def completed_run(_: object, given: dict[str, Any]) -> str:
        print("a run prints")
        asked.append(given)
        return str(given["pipeline"])

    def collected(entry: Entry, _: object, records: list[str]) -> Evidence:
        assert entry.pipelines == tuple(records)
        return evidence(entry.name, summaries(entry.name) if records else ())

    monkeypatch.setattr(
        "curvote.cli.run.run_to_completion", completed_run, raising=False
    )
    monkeypatch.setattr("curvote.papers.reproduction.collect_evidence", collected)
    return asked


def invoke(root: Path, *words: str) -> Result:
    """Run the command on a project."""
    app = typer.Typer()
    app.command()(reproduce)
    return CliRunner().invoke(app, [*words, "--project", str(root)])


def test_json_is_one_document(project: Path, runs: list[dict[str, Any]]) -> None:
    """Standard output holds the rows and nothing that a run may print."""
    done = invoke(project, "table-1", "--json", "--seed", "5")
    rows = json.loads(done.stdout)
    assert [list(one) for one in rows] == [list(COLUMNS)] * 48
    assert "a run prints" in done.stderr
    assert runs == [
        {
            "pipeline": "table-1",
            "replicates": 500,
            "seed": 5,
            "engine": None,
            "workers": None,
        }
    ]


def test_table_says_how_many_cells_agree(project, runs):
    """The table ends with the count, the worst cell and the files, which are there.

    A pipeline that the project lacks comes from the paper.
    """
    assert json.loads(invoke(project, "figure-2", "--json").stdout)
    assert [one["pipeline"] for one in runs] == ["figure-2"]
    runs.clear()
    done = invoke(project, "table-1", "--replicates", "3")
    assert runs[0]["replicates"] == 3
    assert "48 of 48 cells within 3 standard errors" in done.stdout
    written = done.stdout.split("written:\n")[1].split()
    assert len(written) == 4
    assert all(Path(path).is_file() for path in written)


def test_formulas_alone_run_nothing(project: Path, runs: list[dict[str, Any]]) -> None:
    """Their rows hold values; files and last words are like those of the others."""
    rows = json.loads(invoke(project, "table-1-dtk", "--json").stdout)
    done = invoke(project, "table-1-dtk")
    assert [list(one) for one in rows] == [list(COLUMNS)] * len(rows)
    assert {one["quantity"] for one in rows} == {"value"}
    assert runs == []
    assert done.stdout.startswith("DTK, Table 1")
    assert f"{len(rows)} of {len(rows)} ends" in done.stdout
    written = done.stdout.split("written:\n")[1].split()
    assert len(written) == 4
    assert all(Path(path).is_file() for path in written)


def not_to_be_had(_: object, source: Source) -> None:
    """There is no network."""
    raise UserError(f"{source.file} could not be downloaded.")


def test_absent_data_say_what_to_put_where(project, monkeypatch):
    """Where published files are missing, the error goes on with names and places."""
    monkeypatch.setattr("curvote.data.raw_files.download_file", not_to_be_had)
    refused = invoke(project, "figure-4").exception
    assert isinstance(refused, UserError)
    first, advice = (problem.message for problem in refused.problems)
    assert first.endswith("could not be downloaded.")
    assert "PAXHR_H.XPT (https://" in advice
    assert str(project / "data" / "raw") in advice
    assert "CURVOTE_DATA_MIRROR" in advice


def contest(root: Path, *sources: str) -> None:
    """Give the project the ten pipelines of the contest; these read files."""
    names = reproductions()["beyond"].pipelines
    others = ["simulated"] * (len(names) - len(sources))
    entries = [
        f"  {name}:\n    <<: *plain\n    source: {{name: {source}}}\n"
        for name, source in zip(names, [*others, *sources], strict=True)
    ]
    (root / "pipelines.yaml").write_text(PIPELINES + "".join(entries))


def test_all_absent_files_are_told_before_anything_runs(project, runs, monkeypatch):
    """What several pipelines need is asked for once, and nothing runs without it."""
    monkeypatch.setattr("curvote.data.raw_files.download_file", not_to_be_had)
    contest(project, "nhanes-2003", "nhanes", "nhanes-2003")
    refused = invoke(project, "beyond").exception
    assert isinstance(refused, UserError)
    *failed, advice = (problem.message for problem in refused.problems)
    assert len(failed) == 2
    assert advice.count("nhanes_2003_2006_activity_2h.csv") == 1
    assert advice.count("PAXHR_H.XPT") == 1
    assert runs == []


def test_ten_pipelines_run_in_order_and_each_is_announced(project, runs):
    """A run of ten says where it is; the rows of all of them are one document."""
    contest(project)
    done = invoke(project, "beyond", "--json", "--replicates", "2")
    assert [one["pipeline"] for one in runs] == list(
        reproductions()["beyond"].pipelines
    )
    assert {one["replicates"] for one in runs} == {2}
    assert "beyond-phonemes (4 of 10)\na run prints" in done.stderr
    assert json.loads(done.stdout)


def test_other_errors_stay_as_they_are(project, monkeypatch):
    """A mistake that has nothing to do with data gets no advice about data."""

    def fail(*_: object) -> None:
        raise UserError("seed is wrong.")

    monkeypatch.setattr("curvote.cli.run.run_to_completion", fail, raising=False)
    refused = invoke(project, "table-1").exception
    assert isinstance(refused, UserError)
    assert [problem.message for problem in refused.problems] == ["seed is wrong."]


def test_interrupted_says_how_to_go_on(project, monkeypatch):
    """Ctrl-C ends with one line and exit 130."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("curvote.cli.run.run_to_completion", stop, raising=False)
    stopped = invoke(project, "table-1")
    assert stopped.exit_code == 130
    assert "`curvote reproduce table-1` goes on" in stopped.stderr


def test_figures_are_laid_out_by_epsilon() -> None:
    """A line a method, a column an epsilon; only what differs is named."""
    given = [
        row("cases-a3", "weak", 0.5, setting={"case": case}, learner="cg", epsilon=e)
        for case in "56"
        for e in (10.0, 1.0)
    ]
    rows = comparison("cases-a3", given)
    lines, columns = reproductions()["cases-a3"].laid_out(rows)
    assert columns == ["setting", "epsilon 1", "epsilon 10"]
    assert lines[0] == {
        "setting": "case=5",
        "epsilon 1": "50.00 ± 0.20",
        "epsilon 10": "50.00 ± 0.20",
    }


def test_worst_cell_is_named() -> None:
    """The last words name the cell that is farthest from the paper."""
    rows = comparison("table-a1", summaries("table-a1"))
    rows[2]["curvote"] += 7
    said = list(reproductions()["table-a1"].conclusions(rows))
    assert "38 of 38 cells within 3 standard errors, the paper's" in said[1]
    assert said[2].startswith("largest difference: 7.10 points (")
    assert "coefs" in said[2]
