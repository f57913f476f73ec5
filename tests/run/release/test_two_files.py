"""Two files of one's own in one project: two populations, no second budget."""

from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.ledger.book import Ledger
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml, parse_value
from curvote.pipeline.release.evidence import ProjectAccounts
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import Plan, make_plan
from curvote.pipeline.store.records import record_end, record_start
from tests import plain, production
from tests.town import PEOPLE, TABLE, TOWN, export

VILLAGE = TOWN | {"source": TABLE | {"path": "village.csv"}}


@pytest.fixture
def both(town: Project) -> Project:
    """Return the town that released, with a village of other people beside it."""
    people = town.root / "people.csv"
    kept = people.read_bytes()
    export(town.root, lambda i: f"v{i}")
    people.rename(town.root / "village.csv")
    people.write_bytes(kept)
    return plain.write(town.root, town=TOWN, village=VILLAGE)


def village(project: Project, ids: str = "v{}") -> None:
    """Write the village's people anew."""
    people = project.root / "people.csv"
    kept = people.read_bytes()
    export(project.root, ids.format)
    people.rename(project.root / "village.csv")
    people.write_bytes(kept)


def released(project: Project, name: str = "village", **told: bool) -> Plan:
    """Do all that the plan of a run says, and keep its record."""
    configured = PipelinesFile(project).configure_pipeline(name)
    made = make_plan(project, configured, fetch=True, **told)
    record = record_start(project, made.configured, made.steps, "test")
    for step in made.steps_to_run():
        execute_step(project, step)
    record_end(project, record, "completed")
    return made


def spent(project: Project) -> dict[str, int]:
    """Return how many people of each population have spent something."""
    with Ledger(project.ledger) as ledger:
        names = {entry.population for entry in ledger.entries()}
        return {name: ledger.count_spenders(name) for name in names}


def test_two_files_are_two_populations(
    both: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first keeps its name and its keys, the other has its file's; both repeat."""
    before = {step.key for step in released(both, "town").steps}
    capsys.readouterr()
    released(both)
    assert "village.csv are counted as a population of their own" in (
        capsys.readouterr().err
    )
    assert spent(both) == {"table": PEOPLE, "village.csv": PEOPLE}
    assert {s.action for s in released(both).steps} == {"reuse"}
    again = released(both, "town")
    assert {s.action for s in again.steps} == {"reuse"}
    assert {s.key for s in again.steps} == before
    assert len(production.confirmed(both)) == 4


def test_the_file_may_say_otherwise(both: Project) -> None:
    """`population: table` holds them to the same account, as it ever did."""
    own = {"ledger": {**TOWN["ledger"], "population": "table"}}
    plain.write(both.root, town=TOWN, village=VILLAGE | own)
    with pytest.raises(UserError, match="are new to population 'table'"):
        released(both)


@pytest.mark.parametrize("known", [1, PEOPLE])
def test_an_id_in_both_files_is_asked_about(both: Project, known: int) -> None:
    """Even a single one; whoever says that they are others says it once."""
    path = both.root / "village.csv"
    header, *rows = path.read_text().splitlines(keepends=True)
    same = [row.replace("v", "", 1) for row in rows[:known]]
    path.write_text("".join([header, *same, *rows[known:]]))
    with pytest.raises(UserError, match="in population 'table', where they have") as no:
        released(both)
    assert "write `population: table`" in str(no.value)
    assert "--new-people" in str(no.value)
    assert spent(both) == {"table": PEOPLE}
    released(both, new_people=True)
    assert {s.action for s in released(both).steps} == {"reuse"}


def test_a_file_in_the_place_of_another_is_no_other_population(both: Project) -> None:
    """Renamed, exported anew and under another pipeline: nobody begins anew."""
    plain.write(both.root, village=VILLAGE)
    with pytest.raises(UserError, match="are new to population 'table'"):
        released(both)


@pytest.mark.parametrize("path", ["./village.csv", "moved.csv"])
def test_a_file_that_moves_keeps_its_population(both: Project, path: str) -> None:
    """The ledger knows the pipeline, and holds it to what it has spent."""
    released(both)
    if path == "moved.csv":
        (both.root / "village.csv").rename(both.root / path)
    moved = VILLAGE | {"source": TABLE | {"path": path}}
    plain.write(both.root, town=TOWN, village=moved)
    with pytest.raises(UserError, match=r"population 'village\.csv' have no room"):
        released(both)
    assert spent(both) == {"table": PEOPLE, "village.csv": PEOPLE}


def test_a_pipeline_of_another_name_shares_its_file_s_population(both: Project) -> None:
    """As for the first file: the people are those of the file."""
    released(both)
    plain.write(both.root, town=TOWN, village=VILLAGE, hamlet=VILLAGE)
    with pytest.raises(UserError, match="no room"):
        released(both, "hamlet", new_release=True)


def test_accounts_name_both(both: Project) -> None:
    """What a witness or a restored ledger is held against; one file has one name."""
    assert ProjectAccounts(both).populations == {"table", "people.csv", "village.csv"}
    assert ProjectAccounts(both).caps("village.csv")
    file = both.root / "pipelines.yaml"
    values = parse_value(file.read_text())
    del values["pipelines"]["village"]
    file.write_text(as_yaml(values))
    assert ProjectAccounts(both).populations == {"table"}


def test_a_study_is_no_population(tmp_path: Path) -> None:
    """It keeps its configuration as it was stated, whatever else is there."""
    export(tmp_path, str)
    study = {key: own for key, own in TOWN.items() if key not in {"mode", "ledger"}}
    study |= {"clients": {"train": 60, "vote": 60, "test": 20}, "replicates": 1}
    project = plain.write(tmp_path, study=study)
    made = make_plan(project, PipelinesFile(project).configure_pipeline("study"))
    assert made.configured.pipeline.ledger is None
