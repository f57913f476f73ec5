"""The same people again: an old, fresh or renamed account is no new budget.

Each attack gave 300 clients a second release before (issue 12, findings 7 and 8).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from curvote.client.ledger import Ledger
from curvote.errors import UserError
from curvote.privacy import Budget
from curvote.run import history, ledger_check, releases_log
from curvote.run.config import PipelinesFile
from curvote.run.history import begin, finish
from curvote.run.plan import Plan, make_plan
from curvote.run.project import Project
from tests import plain, production
from tests.processes import in_child

NAME, PEOPLE, CAP = "town", 140, 8.0
TABLE = {
    "name": "table",
    "path": "people.csv",
    "id": "person",
    "label": "outcome",
    "positive": "ill",
    "features": ["age", "dose"],
    "bounds": {"age": [0, 100], "dose": [-1, 3]},
}
TOWN = {
    "mode": "production",
    "source": TABLE,
    "clients": {"train": 60, "vote": 80},
    "project": {"basis": "identity", "rescale": "min_max", "bounds": "public"},
    "train": {"count": 5, "size": 20},
    "epsilon": 8,
    "learners": ["centroid"],
    "seed": 7,
    "ledger": {"per_client": {"epsilon": CAP}},
}
Rewrite = Callable[[int], str]


def write(root: Path, **changes: object) -> Project:
    """Write the pipeline, changed."""
    return plain.write(root, **{NAME: TOWN | changes})


def export(root: Path, spelling: Rewrite) -> None:
    """Write the people, each id as ``spelling`` makes it."""
    rng = np.random.default_rng(5)
    ill = rng.integers(0, 2, PEOPLE)
    people = pd.DataFrame(
        {
            "person": [spelling(1000 + i) for i in range(PEOPLE)],
            "age": (30 + 30 * ill + rng.normal(size=PEOPLE)).round(6),
            "dose": (ill + 0.1 * rng.normal(size=PEOPLE)).round(6),
            "outcome": np.where(ill == 1, "ill", "well"),
        }
    )
    people.to_csv(root / "people.csv", index=False)


def run(project: Project, *, recorded: bool = True, **told: bool) -> Plan:
    """Do all that the plan of a run says, with its record as a flow keeps it."""
    configured = PipelinesFile(project).configured(NAME)
    made = make_plan(project, configured, fetch=True, **told)
    record = begin(project, configured, made.steps, "test") if recorded else None
    for step in made.to_run():
        production.execute(project, step)
    if record:
        finish(project, record, "blocked" if made.blocked() else "completed")
    return made


def refused(project: Project, **told: bool) -> str:
    """Return what a run is refused with; it has reserved and changed nothing."""
    before = state(project)
    with pytest.raises(UserError) as raised:
        run(project, **told)
    assert state(project) == before
    return str(raised.value)


def state(project: Project) -> object:
    """Return what is released, and what the ledger says."""
    entries = production.entries(project)
    folders = sorted(p.name for p in project.artifacts.glob("*/*"))
    copy = releases_log.path_of(project)
    return entries, folders, copy.exists() and copy.read_bytes()


def saved(project: Project) -> bytes:
    """Return a backup of the ledger."""
    Ledger(project.ledger).close()  # nothing is left in its journal
    return project.ledger.read_bytes()


def restore(project: Project, backup: bytes | None) -> None:
    """Put an older ledger in place, or none."""
    for file in project.state.glob("ledger.sqlite*"):
        file.unlink()
    if backup is not None:
        project.ledger.write_bytes(backup)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project that has released once; tests must not change it."""
    root = tmp_path_factory.mktemp("first")
    project = write(root)
    export(root, str)
    run(project)
    return project


@pytest.fixture
def town(first: Project, tmp_path: Path) -> Project:
    """Return a copy of it, to be changed at will."""
    shutil.copytree(first.root, tmp_path, dirs_exist_ok=True)
    return Project(tmp_path)


def test_an_old_a_lost_a_renamed_and_a_respelt_account_are_refused(
    town: Project,
) -> None:
    """All four attacks of the issue; each is told what to do, nothing is released."""
    week = saved(town)
    write(town.root, ledger={"per_client": {"epsilon": 2 * CAP}})
    with Ledger(town.ledger) as ledger:
        ledger.raise_cap("table", Budget(2 * CAP))
    run(town, new_release=True)
    now = saved(town)

    restore(town, week)  # 1: last week's ledger
    for told in ({}, {"new_release": True}, {"new_people": True}):
        assert "Put the newest ledger back" in refused(town, **told)
    restore(town, None)  # 2: none at all
    assert "Restore it from a backup" in refused(town)
    assert not town.ledger.exists()
    restore(town, now)
    assert {step.action for step in run(town).steps} == {"reuse"}

    wide = {"per_client": {"epsilon": 2 * CAP}}
    for name in ("other", "Table", "table "):  # 3: another name for the population
        write(town.root, ledger=wide | {"population": name})
        said = refused(town, new_release=True)
        assert "known in population 'table'" in said
        assert "Write `population: table` again" in said
        assert "--new-people" in said
    write(town.root, ledger=wide)
    respelt: list[Rewrite] = ["p{}".format, "0{}".format, "{}-A".format]
    for spelling in respelt:  # 4: the same people, exported by another program
        export(town.root, spelling)
        said = refused(town)
        assert "140 of 140 clients of town are new to population 'table'" in said
        assert "140 of its 140 known clients are not in the source" in said
        assert "write them as before" in said
        assert "--new-people" in said


@pytest.mark.parametrize("spelling", ["{}.0", " {}", "{} ", "{}.00", "\u00a0{}"])
def test_an_ordinary_export_names_the_same_people(town: Project, spelling: str) -> None:
    """Spaces and .0 are no new name: everything is reused, nothing is spent."""
    export(town.root, spelling.format)
    assert {step.action for step in run(town).steps} == {"reuse"}
    assert len(production.confirmed(town)) == 2


def test_two_spellings_of_one_id_in_a_file_are_an_error(town: Project) -> None:
    """Told plainly, with the row: one person must not stand in a table twice."""
    path = town.root / "people.csv"
    path.write_text(path.read_text().replace("\n1001,", "\n1000.0,"))
    said = refused(town)
    assert "person repeats an earlier one (spaces around an id" in said
    assert "row 2 '1000.0'" in said


def _ledger_and_releases(project: Project) -> None:
    restore(project, None)
    for stage in ("privatize", "evaluate"):
        shutil.rmtree(project.artifacts / stage)


def _but_the_copy(project: Project) -> None:
    _ledger_and_releases(project)
    shutil.rmtree(project.state / "runs")


def _but_the_records(project: Project) -> None:
    _ledger_and_releases(project)
    releases_log.path_of(project).unlink()


@pytest.mark.parametrize(
    ("lose", "told_by"),
    [
        (_ledger_and_releases, "releases.jsonl"),
        (_but_the_copy, "releases.jsonl"),
        (_but_the_records, "the record of run"),
    ],
)
def test_a_ledger_deleted_with_its_releases_is_still_missed(
    town: Project, lose: Callable[[Project], None], told_by: str
) -> None:
    """The copy tells of them, or the record of the run; the check says it as well."""
    lose(town)
    said = refused(town)
    assert "is gone" in said
    assert told_by in said
    assert "Put the newest ledger back" in said
    lines = ledger_check.problems(town)
    assert len(lines) == 2
    assert all(told_by in line and "is not in the ledger" in line for line in lines)


def test_an_older_ledger_is_found_by_each_trace_alone(
    town: Project, tmp_path: Path
) -> None:
    """The manifest's head, the copy's head, the record: each of them is enough."""
    now = saved(town)
    for kept in ("artifacts", "releases.jsonl", "runs"):
        restore(town, None)
        root = tmp_path / "only" / kept
        shutil.copytree(town.root, root, ignore=shutil.ignore_patterns("only"))
        project = Project(root)
        with Ledger(project.ledger):
            pass  # a fresh one
        if kept != "artifacts":
            for stage in ("privatize", "evaluate"):
                shutil.rmtree(project.artifacts / stage)
        if kept != "releases.jsonl":
            releases_log.path_of(project).unlink()
        if kept != "runs":
            shutil.rmtree(project.state / "runs")
        assert "Put the newest ledger back" in refused(project)
        restore(town, now)


def test_the_copy_alone_is_written_again_aloud(
    town: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the ledger, line for line; a plan writes nothing."""
    path = releases_log.path_of(town)
    before = path.read_bytes()
    path.unlink()
    make_plan(town, PipelinesFile(town).configured(NAME))
    assert not path.exists()
    run(town)
    assert path.read_bytes() == before
    assert "was written again from the ledger" in capsys.readouterr().err
    run(town)
    assert "releases.jsonl" not in capsys.readouterr().err


def test_the_copy_says_what_the_ledger_does_and_names_nobody(town: Project) -> None:
    """A line a reservation and settlement, for the owner's eyes; no id, no digest."""
    path = releases_log.path_of(town)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["state"] for line in lines] == ["reserved", "confirmed"] * 2
    assert [line["clients"] for line in lines] == [60, 60, 80, 80]
    columns = {"release", "population", "clients", "epsilon", "delta", "state", "head"}
    assert {frozenset(line) for line in lines} == {frozenset(columns)}
    assert path.stat().st_mode & 0o777 == 0o600
    with Ledger(town.ledger) as ledger:
        assert all(ledger.knows(line["head"]) for line in lines)
        heads = [line["head"] for line in lines]
        for entry in ledger.entries():
            manifest = json.loads(
                (town.root / str(entry.place) / "manifest.json").read_text()
            )
            assert manifest["release"]["head"] in heads


def test_a_torn_or_missing_line_heals(town: Project) -> None:
    """A kill between the ledger and the copy blocks nobody and loses nothing."""
    path = releases_log.path_of(town)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for left in (b"".join(lines[:-1]), whole[:-40], b"".join(lines[:1])):
        path.write_bytes(left)
        assert ledger_check.problems(town) == []
        with Ledger(town.ledger) as ledger:
            releases_log.catch_up(town, ledger)
            releases_log.catch_up(town, ledger)
        assert path.read_bytes().startswith(left)
        assert {line["head"] for line in releases_log.lines(town)} == {
            json.loads(line)["head"] for line in lines
        }
    run(town)


@pytest.mark.parametrize(
    "ledger",
    [{"per_client": {"epsilon": 100}}, {"per_client": {"epsilon": CAP, "delta": 1e-5}}],
)
def test_a_higher_cap_in_the_file_releases_nothing(
    town: Project, ledger: dict[str, object]
) -> None:
    """Only `raise-cap` raises it; the message has the whole command."""
    write(town.root, ledger=ledger)
    for told in ({}, {"new_release": True}, {"new_people": True}):
        assert "`curvote ledger raise-cap table --epsilon" in refused(town, **told)
    with Ledger(town.ledger) as book:
        assert book.cap("table") == Budget(CAP)


@pytest.mark.parametrize(
    "override", ["ledger.per_client.epsilon=100", "ledger.population=other"]
)
def test_no_override_touches_the_account(town: Project, override: str) -> None:
    """On the command line as little as in the file."""
    before = state(town)
    with pytest.raises(UserError):
        make_plan(
            town,
            PipelinesFile(town).configured(NAME, [override]),
            fetch=True,
            new_release=True,
        )
    assert state(town) == before


def test_a_lower_cap_in_the_file_holds(town: Project) -> None:
    """After a raise the pipeline's own limit still stops it, until it is changed."""
    with Ledger(town.ledger) as ledger:
        ledger.raise_cap("table", Budget(2 * CAP))
    assert "no room" in _new_release_refused(town)
    write(town.root, ledger={"per_client": {"epsilon": 2 * CAP}})
    run(town, new_release=True)
    assert len(production.confirmed(town)) == 4


def _new_release_refused(project: Project) -> str:
    with pytest.raises(UserError) as raised:
        run(project, recorded=False, new_release=True)
    return str(raised.value)


def test_new_people_are_told_once(town: Project) -> None:
    """Then they are a cohort as any other, and scheduled runs go on by themselves."""
    export(town.root, lambda i: str(i + 5000))
    refused(town)
    run(town, new_people=True)
    assert len(production.confirmed(town)) == 4
    assert {step.action for step in run(town).steps} == {"reuse"}
    with Ledger(town.ledger) as ledger:
        assert len(ledger.spent("table").clients) == 2 * PEOPLE
        assert ledger.problems() == []


def test_a_growing_population_is_nothing_new(town: Project) -> None:
    """Known people stay in the file, others join and some leave: nobody is asked."""
    path = town.root / "people.csv"
    header, *rows = path.read_text().splitlines(keepends=True)
    more = [f"9{row}" for row in rows]
    path.write_text("".join([header, *rows[20:], *more]))
    with pytest.raises(UserError, match="no room"):  # the ledger knows them
        run(town, recorded=False)


def test_a_pipeline_of_another_name_is_no_other_population(town: Project) -> None:
    """The clients are recognised, whatever the pipeline is called."""
    plain.write(
        town.root, copied=TOWN | {"ledger": {**TOWN["ledger"], "population": "b"}}
    )
    with pytest.raises(UserError, match="clients of copied are known in population"):
        make_plan(town, PipelinesFile(town).configured("copied"), fetch=True)


def test_a_study_declares_nobody(project: Project) -> None:
    """Its clients have no account."""
    configured = PipelinesFile(project).configured("tiny")
    with pytest.raises(UserError, match="--new-people: tiny is a study"):
        make_plan(project, configured, new_people=True)


@pytest.mark.parametrize("where", ["privatize", "ledger"])
def test_delta_above_a_ten_thousandth_is_refused(town: Project, where: str) -> None:
    """A delta of .999999 is hardly any noise, called by its epsilon."""
    accounts = {"per_client": {"epsilon": CAP, "delta": 0.999999}}
    changes: dict[str, object] = {"ledger": accounts}
    if where == "privatize":
        params = {"mechanism": "gaussian", "params": {"delta": 0.999999}}
        changes |= {"privatize": params}
    write(town.root, **changes)
    assert "at most 0.0001" in refused(town)


def test_a_run_record_of_a_study_tells_of_no_release(town: Project) -> None:
    """Only production needs the ledger."""
    records = history.load_all(town)
    assert records
    for record in records:
        history.save(town, _as_study(record))
    _ledger_and_releases(town)
    releases_log.path_of(town).unlink()
    assert ledger_check.problems(town) == []


def _as_study(record: history.RunRecord) -> history.RunRecord:
    return history.RunRecord(**(vars(record) | {"config": {"mode": "study"}}))


@pytest.mark.parametrize("call", range(1, 7))
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_beside_the_copy_heals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int, after: bool
) -> None:
    """Before or after each of its writes: the next run goes on, the copy is whole."""
    project = production.write(tmp_path)
    write_copy, calls = releases_log.catch_up, iter(range(1, 100))

    def dies(*given: Any) -> int:
        now = next(calls) == call
        if now and not after:
            os._exit(9)
        done = write_copy(*given)
        if now:
            os._exit(9)
        return done

    with monkeypatch.context() as patch:
        patch.setattr(releases_log, "catch_up", dies)
        os.waitpid(in_child(lambda: production.run(project)), 0)
    production.run(project)
    assert len(production.confirmed(project)) == 2
    assert ledger_check.problems(project) == []
    with Ledger(project.ledger) as ledger:
        heads = [movement.head for movement in ledger.movements()]
    assert [line["head"] for line in releases_log.lines(project)] == heads
