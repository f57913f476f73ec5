"""Who takes part: read once for each content of a file, and named as ever."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.messages import stages
from curvote.messages.roles import ROLES, split_roles
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.source import raw_files
from curvote.pipeline.plan import step
from curvote.pipeline.plan.step import Population, json_digest, lists_digest
from tests import production

N = 160
SOURCE = {
    "name": "table",
    "path": "people.csv",
    "id": "person",
    "label": "ill",
    "positive": 1,
    "features": ["age", "weight"],
    "bounds": {"age": [0, 100], "weight": [20, 220]},
    "duplicates": "keep",
}
TABLE = {
    "source": SOURCE,
    "project": {"basis": "identity", "rescale": "min_max", "bounds": "public"},
    "protocol": "direct",
    "direct": {"arm": "mean"},
    "clients": {"train": 60, "vote": 80},
}


def write(root: Path, first: int = 1, **changes: Any) -> Project:
    """Write a project whose clients stand in a file, numbered from ``first`` on."""
    lines = [f"{first + i},{i % 2},{20 + i % 60},{50 + i % 99}" for i in range(N)]
    text = "\n".join(["person,ill,age,weight", *lines, ""])
    (root / "people.csv").write_text(text)
    return production.write(root, **(TABLE | changes))


def people(project: Project) -> Population:
    """Return who takes part in the project's pipeline."""
    configured = PipelinesFile(project).configure_pipeline(production.NAME)
    raw = raw_files(project, configured.pipeline, fetch=False)
    assert isinstance(raw, tuple)
    return step.find_people(project, configured, raw)


def test_long_lists_have_the_digest_of_their_json() -> None:
    """Held one by one, in parts, in the order of their names."""
    lists = {"b": np.arange(-3, 150_000), "a": np.empty(0, np.int64), "d": np.arange(1)}
    plain = {name: values.tolist() for name, values in lists.items()}
    given = {name: (lambda own=values: own) for name, values in lists.items()}
    found = lists_digest({"c": 'so "named"'}, given)
    assert found == json_digest(plain | {"c": 'so "named"'})


def test_a_cohort_keeps_its_name(tmp_path: Path) -> None:
    """It is the digest of the sorted ids of every role, and of the population."""
    found = people(write(tmp_path))
    roles = split_roles(7, 0, N, {"test": 0, "vote": 80, "train": 60, "public": 0})
    members = {role: sorted((roles[role] + 1).tolist()) for role in ROLES}
    del members["judge"]  # who is not there names nothing
    pipeline = (
        PipelinesFile(Project(tmp_path)).configure_pipeline(production.NAME).pipeline
    )
    told = {"population": pipeline.population, **members}
    assert found.cohort == json_digest(told)
    assert found.everybody.tolist() == list(range(1, N + 1))
    senders = np.union1d(roles["train"], roles["vote"]) + 1
    assert found.senders.tolist() == senders.tolist()


def test_ids_are_read_once_for_each_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not again for the same bytes under another date; again for other bytes."""
    read: list[int] = []
    members = stages.client_groups
    monkeypatch.setattr(
        stages, "client_groups", lambda params: read.append(1) or members(params)
    )
    project = write(tmp_path)
    first = people(project).cohort
    write(tmp_path)  # the same bytes, written anew
    assert people(project).cohort == first
    assert len(read) == 1
    write(tmp_path, first=2)
    assert people(project).cohort != first
    write(tmp_path)
    assert people(project).cohort == first
    assert len(read) == 2
    assert people(project).senders.size
    assert len(read) == 3


def test_what_decides_a_cohort_asks_for_another_one(tmp_path: Path) -> None:
    """Seed, sizes and population: nobody is taken for a cohort that is kept."""
    changes = [{}, {"seed": 8}, {"clients": {"train": 70, "vote": 70}}]
    found = {people(write(tmp_path, **change)).cohort for change in changes}
    assert len(found) == 3


def test_a_kept_digest_is_its_owners_and_can_be_lost(tmp_path: Path) -> None:
    """It stands on the clients' side; a destroyed one is computed again."""
    project = write(tmp_path)
    first = people(project).cohort
    (kept,) = (project.clients / "cohorts").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    kept.write_text("[torn")
    assert people(project).cohort == first


def test_an_id_that_comes_twice_is_refused_before_any_plan(tmp_path: Path) -> None:
    """Although no other column is read for it."""
    project = write(tmp_path)
    text = (tmp_path / "people.csv").read_text()
    (tmp_path / "people.csv").write_text(text + "7,1,30,60\n")
    with pytest.raises(UserError, match="person repeats an earlier one"):
        people(project)
