"""`curvote init`, `check`, and what `run` says of a file: words, JSON, exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from curvote.flows import display, lines
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.planner import make_plan
from tests import plain
from tests.datasets.test_own_data import STUDY
from tests.datasets.test_own_data import project as project  # noqa: PLC0414 - a fixture
from tests.flows.test_cli import curvote


@pytest.fixture
def say(
    project: Project,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """Return the command line, standing in a project with a table."""
    monkeypatch.chdir(project.root)

    return lambda *words: curvote(capsys, monkeypatch, *words)


def files(root: Path) -> dict[Path, bytes]:
    """Return every file of a project and what is in it."""
    return {p: p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def test_a_card_is_printed_and_stored_nowhere(say: Any, project: Project) -> None:
    """Neither as words nor as JSON; both say the same."""
    before = files(project.root)
    code, out, _ = say("check", "study")
    assert code == 0
    assert "study can run; type: curvote run study" in out
    code, told, _ = say("check", "study", "--json")
    card = json.loads(told)
    assert card["rows"] == 150
    assert f"clients  {card['clients']}" in out
    assert all(f"look: {remark}" in out for remark in card["remarks"])
    assert files(project.root) == before


def test_a_schedule_that_never_fires_is_found_by_check(
    say: Any, project: Project
) -> None:
    """Before `serve` refuses it."""
    plain.write(project.root, study=STUDY | {"schedule": {"cron": "0 25 * * 1"}})
    code, _, err = say("check", "study")
    assert code == 2
    assert "study: no schedule at '0 25 * * 1' (UTC)" in err


def test_a_wrong_file_ends_with_2_and_its_line(say: Any, project: Project) -> None:
    """Everything at once, before a server starts."""
    path = project.root / "people.csv"
    path.write_text(path.read_text().replace(",ill\n", ",il\n", 1))
    code, out, err = say("check", "study")
    assert (code, out) == (2, "")
    assert "column 'outcome' needs two labels, one of them 'ill'" in err
    path.unlink()
    code, _, err = say("check", "study")
    assert code == 2
    assert err.startswith("curvote: pipelines.yaml:")
    assert "no file" in err


def test_a_source_without_a_file_is_right_as_it_stands(say: Any) -> None:
    """It has nothing to read; JSON says null."""
    plain.write(Path.cwd(), tiny=plain.TINY)
    assert say("check", "tiny")[1] == (
        "tiny can run: its source, simulated, is no file of yours to check.\n"
    )
    assert json.loads(say("check", "tiny", "--json")[1]) is None


def test_a_wide_table_shows_what_lies_outside_most(say: Any, project: Project) -> None:
    """Forty columns, and how many more there are."""
    names = [f"x{i:02}" for i in range(60)]
    rows = [",".join([*names, "label"])]
    for person in range(30):
        values = [str(9 if i == 47 else person / 30) for i in range(60)]
        rows.append(",".join([*values, "ab"[person % 2]]))
    (project.root / "wide.csv").write_text("\n".join(rows) + "\n")
    source = {"name": "table", "path": "wide.csv", "label": "label", "positive": "a"}
    source |= {"features": names, "bounds": {name: [0, 1] for name in names}}
    clients = {"clients": {"train": 20, "vote": 5, "test": 5}}
    train = {"train": {"count": 5, "size": 20}}
    plain.write(project.root, wide=STUDY | {"source": source} | clients | train)
    out = say("check", "wide")[1]
    assert "and 20 more columns; --json prints all." in out
    assert "x47     0 to 1" in out


def test_a_run_says_once_what_was_filled(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, only where the file is read, and never in lines for a program."""
    plan = make_plan(project, PipelinesFile(project).configure_pipeline("study"))
    display.print_user_file(project, plan)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("people.csv: 1 missing value filled with the public centre;")
    assert "10 repeated records left out (`curvote check study`)" in said
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "is_for_program", lambda: True)
        display.print_user_file(project, plan)
    plain.run(project, "study")
    again = make_plan(project, PipelinesFile(project).configure_pipeline("study"))
    display.print_user_file(project, again)
    assert not capsys.readouterr().err


def test_init_asks_for_one_file(say: Any) -> None:
    """And a folder that has a pipelines.yaml stays as it is."""
    code, _, err = say("init", "new", "--table", "people.csv", "--curves", "people.csv")
    assert (code, err.count("\n")) == (2, 1)
    before = files(Path.cwd())
    code, _, err = say("init", "--table", "people.csv")
    assert code == 2
    assert "is there already, and init never overwrites" in err
    assert files(Path.cwd()) == before
    code, _, err = say("init", "people.csv")
    assert code == 2
    assert "people.csv is a file;" in err
    code, out, _ = say("init", "new", "--table", "people.csv")
    assert code == 0
    assert "curvote check people --project new" in out
    assert "path: ../people.csv" in Path("new/pipelines.yaml").read_text()
