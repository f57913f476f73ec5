"""A user's own files: what is counted in them is their owner's to know."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from curvote.base.errors import UserError
from curvote.data.raw_files import digest
from curvote.pipeline.config.project import Project
from curvote.report.page import draw_report
from tests import plain, private_table

TABLE = {name: said for name, said in private_table.TABLE.items() if name != "id"}
STUDY = private_table.STUDY | {
    "source": TABLE,
    "clients": {"train": 40, "vote": 60, "test": 30},
}
REAL = private_table.REAL | {"clients": {"train": 40, "vote": 60}}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project with 150 people, ten of whom are like ten others."""
    rng = np.random.default_rng(5)
    ill = rng.integers(0, 2, 140)
    people = pd.DataFrame(
        {
            "person": [f"p{i}" for i in range(140)],
            "age": (30 + 30 * ill + rng.normal(size=140)).round(6),
            "dose": (ill + 0.1 * rng.normal(size=140)).round(6),
            "outcome": np.where(ill == 1, "ill", "well"),
        }
    )
    people.loc[3, "dose"] = np.nan
    again = people.iloc[20:30].assign(person=[f"p{i}" for i in range(140, 150)])
    twice = pd.concat([people, again])
    twice.to_csv(tmp_path / "people.csv", index=False)
    return plain.write(tmp_path, study=STUDY, real=REAL)


@pytest.mark.usefixtures("blank_figures")
def test_a_study_tells_its_owner_what_it_counted(project: Project) -> None:
    """Repeats and gaps stand in data/clients; the report holds neither, nor a card."""
    page = draw_report(project, plain.run(project, "study")).read_text()
    (manifest,) = project.clients.glob("ingest/*/manifest.json")
    for told in ("10 of 150 rows repeat an earlier one", "dose 1"):
        assert told in manifest.read_text()
        assert told not in page
    assert digest(project.root / "people.csv") not in page
    assert "HMAC-SHA-256" in page
    assert "The data set</h2>" not in page


@pytest.mark.usefixtures("blank_figures")
def test_a_release_says_nothing_of_the_clients_file(project: Project) -> None:
    """Exact counts and digests of private records are no part of it."""
    page = draw_report(project, plain.run(project, "real")).read_text()
    assert "This is a real release." in page
    assert "10 of 150" not in page
    assert digest(project.root / "people.csv") not in page
    assert "is not published" in page
    assert "beyond their bounds" not in page


def test_a_release_needs_ids_that_stay_with_their_clients(project: Project) -> None:
    """A row number is nobody's name."""
    plain.write(project.root, real=REAL | {"source": TABLE})
    with pytest.raises(UserError, match="column of ids that people keep"):
        plain.plan(project, "real")


def test_a_changed_file_is_another_study_but_no_other_cohort(project: Project) -> None:
    """A study computes anew; what was released stays released."""
    plain.run(project, "study")
    plain.run(project, "real")
    path = project.root / "people.csv"
    header, first, *rest = path.read_text().splitlines(keepends=True)
    person, age, *others = first.split(",")
    path.write_text("".join([header, ",".join([person, f"{age}1", *others]), *rest]))
    assert "ingest" in plain.to_run(plain.plan(project, "study"))
    assert plain.to_run(plain.plan(project, "real")) == set()


def test_a_file_that_is_not_there_is_named_with_its_line(project: Project) -> None:
    """The path is the project's own."""
    (project.root / "people.csv").unlink()
    with pytest.raises(UserError, match=r"no file .*people\.csv"):
        plain.plan(project, "study")
