"""`ledger backup` and `restore`: a backup never counts less than what left."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from curvote.base import durable
from curvote.base.errors import UserError
from curvote.cli.commands.ledger import app
from curvote.ledger import book
from curvote.ledger.book import Ledger, back_up_ledger
from curvote.pipeline.config.project import Project
from curvote.pipeline.release import evidence, restore
from curvote.pipeline.release import production as session
from tests import plain, production
from tests.ledgers import filled, says
from tests.production import REAL
from tests.witnessed import TWO, WIDE, back, refused, run, witnessed


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project whose first pipeline has released and was backed up."""
    made = plain.write(tmp_path / "house", **witnessed(tmp_path / "witness.jsonl"))
    run(made, "one")
    back_up_ledger(made.ledger, tmp_path / "backup.sqlite")
    shutil.copytree(made.root / "data", tmp_path / "snapshot")
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where the backup is."""
    return tmp_path / "backup.sqlite"


def spent(project: Project) -> dict[str, float]:
    """Return what each client has spent."""
    with Ledger(project.ledger) as ledger:
        found = ledger.spent("simulated")
        assert ledger.problems() == []
    return dict(zip(found.clients.tolist(), found.epsilon.tolist(), strict=True))


def command(project: Project, *words: str) -> Result:
    """Run `curvote ledger` on the project."""
    return CliRunner().invoke(app, [*words, "--project", str(project.root)])


def lose_ledger(project: Project, _: Path) -> None:
    """Delete it."""
    for file in project.state.glob("ledger.sqlite*"):
        file.unlink()


def lose_sight(project: Project, file: Path) -> None:
    """Put the older one in place by hand."""
    lose_ledger(project, file)
    shutil.copy(file, project.ledger)


def lose_all(project: Project, file: Path) -> None:
    """Put the whole folder back."""
    back(project, file.with_name("snapshot"))


def damage(project: Project, _: Path) -> None:
    """Cut it off."""
    project.ledger.write_bytes(project.ledger.read_bytes()[:5000])


@pytest.mark.parametrize("lose", [lose_ledger, lose_sight, lose_all, damage])
def test_what_a_backup_lacks_is_spent_by_exactly_its_clients(
    project: Project, file: Path, lose: Callable[[Project, Path], None]
) -> None:
    """As the pipeline names them: sums are what they were, and pipelines run again."""
    run(project, "two")
    before = spent(project)
    lose(project, file)
    assert refused(project, "one", "two", "three")
    result = command(project, "restore", str(file))
    assert result.exit_code == 0, result.output
    assert result.stdout.count("spent by ") == 2
    assert "60 clients of population simulated" in result.stdout
    assert spent(project) == before
    assert evidence.ledger_problems(project) == []
    run(project, "one")
    made = run(project, "three")
    assert not made.blocked_steps()
    assert max(spent(project).values()) == pytest.approx(4 + 3 + 2)
    states = [e.state for e in production.ledger_entries(project)]
    assert states == ["confirmed"] * 2 + ["spent"] * 2 + ["confirmed"] * 2
    again = run(project, "two")  # what was released is used, or said to be lost
    assert not again.steps_to_run()
    assert bool(again.blocked_steps()) == (lose is lose_all)


def test_the_ledger_in_place_is_set_aside_and_not_forgotten(
    project: Project, file: Path
) -> None:
    """A backup over a good ledger: what only that one knows is entered, too."""
    run(project, "two")
    before, now = spent(project), says(project.ledger)
    lose_traces = (project.state / "runs", project.artifacts, project.clients)
    for folder in lose_traces:
        shutil.rmtree(folder, ignore_errors=True)
    evidence.copies(project).path.unlink()
    file.with_name("witness.jsonl").unlink()
    with pytest.raises(UserError, match="is gone"):
        restore.restore_ledger(project, file)
    plain.write(project.root, **TWO)
    done = restore.restore_ledger(project, file)
    assert done.aside is not None
    assert says(done.aside) == now
    assert spent(project) == before


def without_pipeline(project: Project) -> Project:
    """Take the second pipeline out of the file."""
    kept = {name: own for name, own in TWO.items() if name != "two"}
    return plain.write(project.root, **kept)


def test_a_deleted_pipeline_costs_everybody_and_who_comes_later(
    project: Project, file: Path
) -> None:
    """Nobody can say who was in its releases, so all are charged for each of them."""
    run(project, "two")
    before = spent(project)
    without_pipeline(project)
    shutil.rmtree(project.clients)
    lose_sight(project, file)
    project.ledger.unlink()
    result = command(project, "restore", str(file))
    assert result.exit_code == 0, result.output
    assert "spent by everybody of population simulated" in result.stdout
    after = spent(project)
    assert after == dict.fromkeys(before, 4 + 3 + 3)
    more = REAL | {"seed": 8, "epsilon": 1, "ledger": WIDE}
    more |= {"clients": {"train": 60, "vote": 100}}
    plain.write(project.root, **TWO, more=more)
    run(project, "more")
    later = set(spent(project)) - set(before)
    assert len(later) == 20
    assert {spent(project)[client] for client in later} == {3 + 3 + 1}
    assert evidence.ledger_problems(project) == []
    before = spent(project)
    for forget in (lambda *_: None, lose_ledger):  # the same backup once more
        forget(project, file)
        restore.restore_ledger(project, file)
        assert spent(project) == before
    most = more | {"epsilon": 2, "clients": {"train": 60, "vote": 120}}
    plain.write(project.root, **TWO, more=more, most=most)
    run(project, "most")
    latest = set(spent(project)) - set(before)
    assert {spent(project)[client] for client in latest} == {3 + 3 + 2}


def test_with_manifests_alone_everybody_has_spent_all(
    project: Project, file: Path
) -> None:
    """Population and cost are lost with the lines: nobody has room any more."""
    run(project, "two")
    without_pipeline(project)
    lose_sight(project, file)
    shutil.rmtree(project.clients)
    evidence.copies(project).path.unlink()
    done = restore.restore_ledger(project, file)
    assert [one.population for one in done.entered] == [None, None]
    assert min(spent(project).values()) == 4 + 40 + 40
    (said,) = refused(project, "three")
    assert "no room" in said


def test_a_restored_ledger_is_restored_again(project: Project, file: Path) -> None:
    """From the same backup, and from one made after: nothing is counted less."""
    run(project, "two")
    restore.restore_ledger(project, file)
    before = spent(project)
    restore.restore_ledger(project, file)
    assert spent(project) == before
    later = file.with_name("later.sqlite")
    back_up_ledger(project.ledger, later)
    run(project, "three")
    before = spent(project)
    lose_all(project, file)
    restore.restore_ledger(project, later)
    assert spent(project) == before
    run(project, "one")


def test_a_release_that_was_taken_back_is_not_charged(
    project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its noise never left: the copy says so."""

    def fails(*_: object) -> None:
        raise OSError

    before = spent(project)
    with monkeypatch.context() as patch:
        patch.setattr(session, "commit", fails)
        with pytest.raises(UserError):
            run(project, "two")
    assert [e.state for e in production.ledger_entries(project)][2:] == ["cancelled"]
    done = restore.restore_ledger(project, file)
    assert done.entered == ()
    assert spent(project) == before
    run(project, "two")


def test_what_waits_in_a_journal_is_never_left_behind(
    project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was entered must be in the file that takes the ledger's place, or none."""
    run(project, "two")
    before, enter, held = spent(project), restore._enter_evidence, ExitStack()

    def kept(made: Path, *given: Any) -> None:
        reader = held.enter_context(closing(sqlite3.connect(made)))
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM chain").fetchone()
        enter(made, *given)

    with monkeypatch.context() as patch, held:
        patch.setattr(restore, "_enter_evidence", kept)
        with pytest.raises(UserError, match="Nothing was changed"):
            restore.restore_ledger(project, file)
    assert spent(project) == before
    restore.restore_ledger(project, file)
    assert spent(project) == before


def test_no_ledger_changes_place_under_a_release(project: Project, file: Path) -> None:
    """A release holds it where it is."""
    with (
        session.hold_ledger(project),
        pytest.raises(UserError, match="a release is going on"),
    ):
        restore.restore_ledger(project, file)


def test_a_backup_is_whole_alone_and_replaces_only_its_like(
    project: Project, file: Path
) -> None:
    """Mode 0600, one file; of another ledger's file it says that it stays."""
    assert file.stat().st_mode & 0o777 == 0o600
    assert not list(file.parent.glob("backup.sqlite-*"))
    run(project, "two")
    result = command(project, "backup", str(file))
    assert result.exit_code == 0, result.output
    assert "sound" in result.stdout
    with Ledger(file) as copy, Ledger(project.ledger) as ledger:
        assert copy.head() == ledger.head()
    other = filled(file.with_name("other.sqlite"))
    for taken in (other, Path(__file__)):
        was = taken.read_bytes()
        with pytest.raises(UserError, match="stays as it is"):
            back_up_ledger(project.ledger, taken)
        assert taken.read_bytes() == was
    with pytest.raises(UserError, match="is the ledger itself"):
        back_up_ledger(project.ledger, project.ledger)


def test_a_backup_while_others_write_is_of_one_moment(
    project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another's open transaction is not in it, and goes on; one may begin meanwhile."""
    copy_of = book._copy_pages

    def meanwhile(taken: Path, made: Path) -> None:
        assert (taken == file) or durable.journal_paths(taken)  # else none could begin
        copy_of(taken, made)

    monkeypatch.setattr(book, "_copy_pages", meanwhile)
    back_up_ledger(project.ledger, file)
    with Ledger(project.ledger) as busy:
        busy._db.execute("BEGIN IMMEDIATE")
        busy._db.execute("DELETE FROM chain WHERE number = 3")
        back_up_ledger(project.ledger, file.with_name("now.sqlite"))
        busy._db.execute("ROLLBACK")
    with Ledger(file.with_name("now.sqlite")) as copy:
        assert copy.problems() == []
