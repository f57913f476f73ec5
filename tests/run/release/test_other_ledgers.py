"""The same people again: an old, fresh or renamed account is no new budget.

Each attack gave 300 clients a second release before (issue 12, findings 7 and 8).
"""

import sqlite3

import pytest

from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.ledger.book import Ledger
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.release import production as caps
from curvote.pipeline.run.planner import make_plan
from tests import plain, production
from tests.town import (
    CAP,
    NAME,
    PEOPLE,
    TOWN,
    Rewrite,
    export,
    refused,
    restore,
    run,
    saved,
    state,
    write,
)


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
    assert "`curvote ledger restore FILE`" in refused(town)
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


@pytest.mark.parametrize(
    "altered",
    [
        "UPDATE clients SET total = 1",
        "UPDATE totals SET epsilon = '0.1' WHERE id = (SELECT max(id) FROM totals)",
        "DELETE FROM members; DELETE FROM releases; UPDATE clients SET total = 1",
        "UPDATE caps SET epsilon = '1000'",
    ],
)
def test_an_altered_account_is_no_new_budget(town: Project, altered: str) -> None:
    """Totals set back, releases taken out, a cap raised: by hand, in one statement."""
    db = sqlite3.connect(town.ledger)
    db.executescript(altered)
    db.close()
    said = refused(town, new_release=True)
    assert "not what was entered" in said or "is not in the ledger" in said


@pytest.mark.parametrize("spelling", ["{}.0", " {}", "{} ", "{}.00", "\u00a0{}"])
def test_an_ordinary_export_names_the_same_people(town: Project, spelling: str) -> None:
    """Spaces and .0 are no new name: everything is reused, nothing is spent."""
    export(town.root, spelling.format)
    assert {step.action for step in run(town).steps} == {"reuse"}
    assert len(production.confirmed(town)) == 2


def test_two_spellings_of_one_id_in_a_file_are_an_error(town: Project) -> None:
    """Told plainly, with its line: one person must not stand in a table twice."""
    path = town.root / "people.csv"
    path.write_text(path.read_text().replace("\n1001,", "\n1000.0,"))
    said = refused(town)
    assert "person repeats an earlier one (spaces around an id" in said
    assert "line 3 '1000.0'" in said


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
        assert "`curvote ledger raise-cap table --cap" in refused(town, **told)
    with Ledger(town.ledger) as book:
        assert book.cap("table") == Budget(CAP)
        stated = Budget(8.12345678901)
        command = caps.raise_cap_command("my town", stated, Budget(CAP))
    assert "raise-cap 'my town' --cap 8.12345678901" in command


@pytest.mark.parametrize(
    "override", ["ledger.per_client.epsilon=100", "ledger.population=other"]
)
def test_no_override_touches_the_account(town: Project, override: str) -> None:
    """On the command line as little as in the file."""
    before = state(town)
    with pytest.raises(UserError):
        make_plan(
            town,
            PipelinesFile(town).configure_pipeline(NAME, [override]),
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
        make_plan(town, PipelinesFile(town).configure_pipeline("copied"), fetch=True)


def test_a_study_declares_nobody(project: Project) -> None:
    """Its clients have no account."""
    configured = PipelinesFile(project).configure_pipeline("tiny")
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
