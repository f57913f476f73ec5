"""`curvote ledger`: who was told what, is it in order, and all of it as a table."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.cli.commands.ledger import app
from curvote.ledger import places
from curvote.ledger.book import Ledger
from curvote.pipeline.config.project import Project
from curvote.pipeline.release.evidence import ledger_problems
from tests.ledgers import filled, says

SHA = hashlib.sha256
COLUMNS = ["population", "client", "release", "stage", "task", "number"]
COLUMNS += ["state", "epsilon", "delta", "time"]


@pytest.fixture
def empty(tmp_path: Path) -> Project:
    """Return a project that has released nothing."""
    (tmp_path / "pipelines.yaml").touch()
    return Project(tmp_path)


@pytest.fixture
def released(empty: Project) -> Project:
    """Return a project with two releases: one confirmed, with its artifact, one spent.

    Client "a" is in both; beside the private artifact stands one of a study.
    """
    published = manifest(empty, "privatize/k1", private=True, release={"id": "r1"})
    manifest(empty, "privatize/k2", private=False)
    with Ledger(empty.ledger) as ledger:
        for number, ids in ((1, ["a", "b"]), (2, ["a"])):
            facts: dict[str, Any] = {
                "stage": "privatize",
                "task": "t",
                "number": number,
            }
            budget = Budget(0.1 * number, 1e-7)
            ledger.set_cap("p", Budget(2, 1e-6))
            ledger.reserve(f"r{number}", ids, budget, population="p", facts=facts)
        ledger.confirm("r1", place="data/artifacts/privatize/k1", digest=published)
        ledger.mark_spent("r2", "killed")
    return empty


def manifest(project: Project, place: str, **values: object) -> str:
    """Write an artifact that is a manifest only; return its SHA-256."""
    folder = project.artifacts / place
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(values)
    (folder / "manifest.json").write_text(text)
    return SHA(text.encode()).hexdigest()


def curvote_ledger(project: Project, *words: str) -> Result:
    """Run `curvote ledger` on a project."""
    return CliRunner().invoke(app, [*words, "--project", str(project.root)])


def document(project: Project, *words: str) -> Any:
    """Return the one JSON document that a command prints."""
    result = curvote_ledger(project, *words)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_show_lists_the_releases(released: Project) -> None:
    """All, of one population, or about one client with the total."""
    rows = document(released, "show", "--json")
    assert [(r["release"], r["state"], r["clients"]) for r in rows] == [
        ("r1", "confirmed", 2),
        ("r2", "spent", 1),
    ]
    assert rows[0]["facts"] == {"stage": "privatize", "task": "t", "number": 1}
    assert document(released, "show", "--population", "p", "--json") == rows
    about = document(released, "show", "--client", "a", "--population", "p", "--json")
    assert (about["epsilon"], about["delta"], about["releases"]) == (0.3, 2e-7, rows)
    text = curvote_ledger(released, "show", "--client", "b", "--population", "p").stdout
    assert "r1" in text
    assert "r2" not in text
    assert "total of client b: epsilon 0.1, delta 1e-07" in text
    text = curvote_ledger(released, "show", "--client", "B", "--population", "p").stdout
    assert text == (
        "nothing was released about client 'B' of population 'p'; check how the id is"
        " written.\n"
    )


def test_show_says_what_a_client_may_spend(released: Project) -> None:
    """The cap of each population stands in the ledger alone, so it must be told."""
    said = curvote_ledger(released, "show").stdout.splitlines()
    with Ledger(released.ledger) as ledger:
        cap = ledger.cap("p")
    assert cap is not None
    line = f"cap of population p: epsilon {cap.epsilon:g}, delta {cap.delta:g}"
    assert f"{line} for each client" in said
    assert not [line for line in said if line.startswith("cap of population q")]


def test_a_question_that_means_nothing_is_refused(
    released: Project, tmp_path: Path
) -> None:
    """A client without its population, an unknown population, format or file."""
    for words, said in (
        (["show", "--client", "a"], "needs --population"),
        (["show", "--population", "pp"], "Did you mean 'p'"),
        (["show", "--ledger", str(tmp_path / "none")], "no such file"),
        (["check", "--ledger", str(tmp_path / "none")], "no such file"),
        (["export", "--format", "xml"], "format is 'xml'"),
        (["export", "--format", "parquet"], "needs --out"),
        (["export", "--out", str(tmp_path / "none" / "x.csv")], "cannot be written"),
    ):
        error = curvote_ledger(released, *words).exception
        assert isinstance(error, UserError)
        assert said in str(error)
    assert not (tmp_path / "none").exists()


def test_a_project_without_releases_has_no_ledger(empty: Project) -> None:
    """Looking makes none."""
    assert document(empty, "show", "--json") == []
    assert "nothing was released" in curvote_ledger(empty, "show").stdout
    check = curvote_ledger(empty, "check")
    assert (check.exit_code, check.stdout) == (0, "sound: 0 releases, 0 clients\n")
    assert document(empty, "export", "--format", "json") == []
    assert not empty.state.exists()


def test_a_sound_ledger_is_said_so(released: Project) -> None:
    """Studies, unfinished folders and what is computed from a release need no entry."""
    manifest(released, "train/k3", private=True)
    manifest(released, "privatize/.tmp-k4", private=True, release={"id": "r4"})
    result = curvote_ledger(released, "check")
    assert (result.exit_code, result.stdout) == (0, "sound: 2 releases, 2 clients\n")


def _unrecorded(project: Project) -> None:
    manifest(project, "privatize/k9", private=True, release={"id": "r9"})


def _set_aside(project: Project) -> None:
    manifest(project, "privatize/.altered-k9-0", private=True, release={"id": "r9"})


def _nameless(project: Project) -> None:
    manifest(project, "privatize/k9", private=True, release={})


def _torn(project: Project) -> None:
    _unrecorded(project)
    (project.artifacts / "privatize/k9/manifest.json").write_text('{"private"')


def _cancelled(project: Project) -> None:
    _unrecorded(project)
    with Ledger(project.ledger) as ledger:
        ledger.reserve("r9", ["a"], Budget(1), population="p", facts={})
        ledger.cancel("r9")


def _gone(project: Project) -> None:
    (project.artifacts / "privatize/k1").rename(project.root / "elsewhere")


def _altered(project: Project) -> None:
    manifest(project, "privatize/k1", private=True, release={"id": "r1"}, more=1)


def _no_ledger(project: Project) -> None:
    project.ledger.unlink()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_unrecorded, "privatize/k9: release r9 is not in the ledger"),
        (_set_aside, "privatize/.altered-k9-0: release r9 is not in the ledger"),
        (_nameless, "privatize/k9: a release without an id"),
        (_torn, "privatize/k9: no readable manifest"),
        (_cancelled, "privatize/k9: release r9 is there, but cancelled"),
        (_gone, "release r1: data/artifacts/privatize/k1 is missing"),
        (_altered, "release r1: data/artifacts/privatize/k1 is not what was confirmed"),
        (_no_ledger, "privatize/k1: release r1 is not in the ledger"),
    ],
)
def test_check_compares_the_ledger_with_the_store(
    released: Project, change: Callable[[Project], None], said: str
) -> None:
    """A release that is not recorded, or a record of what is not there: exit 1."""
    assert ledger_problems(released) == []
    change(released)
    (line,) = ledger_problems(released)
    assert said in line
    result = curvote_ledger(released, "check")
    assert (result.exit_code, result.stdout) == (1, f"{line}\n")


def test_a_damaged_ledger_is_a_user_error(released: Project) -> None:
    """Also where only its journal is left; never taken for "nothing released"."""
    path = released.ledger
    path.rename(f"{path}-wal")
    for words in (["check"], ["show"], ["export"]):
        error = curvote_ledger(released, *words).exception
        assert isinstance(error, UserError)
        assert "is missing but" in str(error)


def test_a_ledger_of_its_own_is_checked_alone(tmp_path: Path) -> None:
    """A client has a ledger and no project."""
    path = filled(tmp_path / "own.sqlite")
    result = CliRunner().invoke(app, ["check", "--ledger", str(path)])
    assert (result.exit_code, result.stdout) == (0, "sound: 3 releases, 350 clients\n")


@pytest.mark.parametrize(
    ("kind", "reader"),
    [
        ("csv", pd.read_csv),
        ("parquet", pd.read_parquet),
        ("json", pd.read_json),
    ],
)
def test_export_has_one_row_a_client_and_release(
    released: Project, tmp_path: Path, kind: str, reader: Callable[[Path], pd.DataFrame]
) -> None:
    """The same table in every format; the ending of the file says which."""
    out = tmp_path / f"ledger.{kind}"
    assert curvote_ledger(released, "export", "--out", str(out)).exit_code == 0
    table = reader(out)
    assert list(table) == COLUMNS
    assert table.astype(str).drop(columns="time").to_numpy().tolist() == [
        ["p", "a", "r1", "privatize", "t", "1", "confirmed", "0.1", "1e-07"],
        ["p", "b", "r1", "privatize", "t", "1", "confirmed", "0.1", "1e-07"],
        ["p", "a", "r2", "privatize", "t", "2", "spent", "0.2", "1e-07"],
    ]
    assert not list(tmp_path.glob(".ledger*"))


def test_export_to_standard_output_and_of_a_ledger_of_its_own(tmp_path: Path) -> None:
    """Facts that were not given stay empty; ids stay as they are."""
    path = filled(tmp_path / "own.sqlite")
    words = ["export", "--ledger", str(path), "--format", "json"]
    rows = json.loads(CliRunner().invoke(app, words).stdout)
    assert len(rows) == 800
    assert {row["task"] for row in rows} == {None}
    spent: dict[str, float] = {}
    for row in rows:
        counted = row["state"] != "cancelled"
        spent[row["client"]] = spent.get(row["client"], 0) + counted * row["epsilon"]
    sums = {client: epsilon for client, epsilon, _ in says(path)[1]}
    assert {c: round(e, 9) for c, e in spent.items() if e} == sums


def test_outside_of_a_project_it_is_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `curvote client` wrote is shown and checked; in a project, the project's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    told = CliRunner().invoke(app, ["show"])
    assert isinstance(told.exception, UserError)  # there is none: no project here
    own = filled(places.ledger_path())
    told = CliRunner().invoke(app, ["show", "--json"])
    assert [row["release"] for row in json.loads(told.stdout)] == [
        "r0",
        "r1",
        "r2",
        "r3",
    ]
    assert str(own) in told.stderr
    assert "sound: 3 releases" in CliRunner().invoke(app, ["check"]).stdout
    Path("pipelines.yaml").touch()
    assert "nothing was released" in CliRunner().invoke(app, ["show"]).stdout
