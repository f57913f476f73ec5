"""What `ledger restore` refuses, and leaves everything as it is."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.ledger.book import Ledger, back_up_ledger
from curvote.pipeline.config.project import Project
from curvote.pipeline.release import restore
from tests import plain
from tests.ledgers import filled
from tests.witnessed import TWO, run


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project whose first pipeline has released."""
    made = plain.write(tmp_path / "house", **TWO)
    run(made, "one")
    return made


def text(path: Path) -> None:
    """Write something else."""
    path.write_text("no ledger")


def cut(path: Path) -> None:
    """Write a ledger that lacks its end."""
    path.write_bytes(filled(path).read_bytes()[:-100])


def altered(path: Path) -> None:
    """Write a ledger of which an entry was changed."""
    with sqlite3.connect(filled(path)) as db:
        db.execute("UPDATE chain SET event = event || ' ' WHERE number = 3")
    db.close()


def foreign(path: Path) -> None:
    """Write another ledger."""
    filled(path)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (text, "damaged"),
        (cut, "damaged"),
        (altered, "is not sound: the chain of entries is broken"),
        (foreign, "another ledger of population p"),
        (Path.mkdir, "no such file"),
        (lambda path: None, "no such file"),
    ],
)
def test_what_is_no_backup_of_this_ledger_is_refused(
    project: Project, tmp_path: Path, made: Callable[[Path], None], said: str
) -> None:
    """One line that names the file; the ledger in place is as before."""
    made(other := tmp_path / "other.sqlite")
    before = project.ledger.read_bytes(), sorted(project.state.iterdir())
    with pytest.raises(UserError, match=said) as raised:
        restore.restore_ledger(project, other)
    assert str(other) in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1
    assert (project.ledger.read_bytes(), sorted(project.state.iterdir())) == before
    run(project, "two")


def test_another_population_is_refused_where_nothing_was_released(
    tmp_path: Path,
) -> None:
    """Nothing tells of it, but it is about others."""
    project = plain.write(tmp_path / "new", **TWO)
    with pytest.raises(UserError, match="another ledger of population p"):
        restore.restore_ledger(project, filled(tmp_path / "other.sqlite"))


def test_a_foreign_ledger_in_place_charges_nobody(
    project: Project, tmp_path: Path
) -> None:
    """It was put there by mistake: its people are none of ours."""
    back_up_ledger(project.ledger, tmp_path / "backup.sqlite")
    project.ledger.unlink()
    filled(project.ledger)
    done = restore.restore_ledger(project, tmp_path / "backup.sqlite")
    assert done.entered == ()
    with Ledger(project.ledger) as ledger:
        assert {entry.population for entry in ledger.entries()} == {"simulated"}
    run(project, "two")


def test_a_cap_stays_what_it_was_once_set_to(project: Project, tmp_path: Path) -> None:
    """A backup from before it was set lets nobody set a higher one."""
    with Ledger(file := tmp_path / "first.sqlite"):
        pass
    for old in project.state.glob("*"):
        old.unlink() if old.is_file() else shutil.rmtree(old)
    shutil.rmtree(project.artifacts)
    back_up_ledger(file, project.ledger)
    run(project, "one")
    restore.restore_ledger(project, file)
    wide = TWO["two"] | {"ledger": {"per_client": {"epsilon": 50}}}
    plain.write(project.root, **(TWO | {"two": wide}))
    with pytest.raises(UserError, match="the ledger's cap is epsilon 40"):
        run(project, "two")
