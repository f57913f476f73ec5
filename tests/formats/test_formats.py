"""Every format that ever landed is read, taken over after a backup, or refused."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from curvote.base.durable import DurableFile, format_backup_path
from curvote.base.errors import UserError
from curvote.chain import lookup
from curvote.intake.box import Intake
from curvote.intake.store import INTAKE
from curvote.ledger.book import Ledger
from curvote.ledger.register import REGISTER
from curvote.ledger.schema import LEDGER
from curvote.messages.message import parse_message
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import VERSION
from curvote.pipeline.release import evidence
from curvote.pipeline.run import audit_tasks
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import (
    Artifact,
    all_folders,
    migrate_raw_artifacts,
)
from curvote.pipeline.store.records import FORMAT
from curvote.wire.envelope import Invitation
from curvote.wire.signing import open_signed
from tests import production, rounds
from tests.earlier import unpack
from tests.formats import make

HERE = Path(__file__).parent
ARCHIVES = sorted(HERE.glob("*.tar.xz"))
FILES = {"ledger.sqlite": LEDGER, "intake.sqlite": INTAKE}


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def archive(request: pytest.FixtureRequest) -> Path:
    """Return each archive in turn."""
    path: Path = request.param
    return path


@pytest.fixture
def old(archive: Path, tmp_path: Path) -> Project:
    """Return the project that an archive holds, as every command finds it."""
    unpack(archive, tmp_path)
    for path in (tmp_path / "data").rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    migrate_raw_artifacts(Project(tmp_path))
    return Project(tmp_path)


def version(path: Path) -> int:
    """Return the format that stands in a file's header, without opening it as ours."""
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def test_the_ledger_goes_on_with_what_was_spent(old: Project) -> None:
    """Two releases, all clients at their cap; a copy of an earlier format is kept."""
    before = version(old.ledger)
    with Ledger(old.ledger) as ledger:
        assert [entry.state for entry in ledger.entries()] == ["confirmed"] * 2
        (population,) = {entry.population for entry in ledger.entries()}
        assert set(ledger.spent(population).epsilon) == {4.0}
        assert not ledger.problems()
    assert not evidence.ledger_problems(old)
    kept_before(old.ledger, LEDGER, before)


def kept_before(path: Path, kind: DurableFile, before: int) -> None:
    """Look for the copy of a file that changed, for none of one that did not."""
    backup = format_backup_path(path, before)
    assert backup.exists() == (before < kind.version)
    assert version(path) == kind.version
    if backup.exists():
        assert version(backup) == before
        assert not backup.stat().st_mode & 0o077


def test_the_intake_goes_on_with_its_rounds(old: Project) -> None:
    """A closed round keeps its set; the open one takes what was sealed then, once."""
    before = version(old.intake)
    unsent = (old.root / "wire" / "unsent-vote.json").read_bytes()
    used = (old.root / "wire" / "envelope-vote.json").read_bytes()
    with Intake(old.intake) as intake:
        closed, still_open = intake.rounds("elsewhere")
        assert (closed.accepted, closed.closed) == (4, True)
        assert len(rounds.kept(intake, "report", str(closed.accepted_digest))[0]) == 4
        assert (still_open.accepted, still_open.closed) == (2, False)
        intake.take(unsent, parse_message)
        again = intake.take_batch([used, unsent], parse_message)
        assert intake.round("vote").accepted == 3  # type: ignore[union-attr]
        assert len(again) == 2
    kept_before(old.intake, INTAKE, before)


def test_every_artifact_is_read_and_stays_as_it_is(old: Project) -> None:
    """Each table by its places, as many rows as were counted; no byte has changed."""
    there = {path: path.read_bytes() for f in all_folders(old) for path in f.glob("*")}
    assert len(there) > 20
    for folder in all_folders(old):
        artifact = Artifact(folder)
        assert artifact.problem(content=True) is None
        for name, entry in artifact.manifest["tables"].items():
            parts = [artifact.columns(name, at) for at in artifact.places(name)]
            assert all(len(next(iter(part.values()))) for part in parts)
            assert artifact.table(name).num_rows == entry["rows"]
    assert all(path.read_bytes() == data for path, data in there.items())


def test_records_are_read_in_their_order(old: Project) -> None:
    """The study, then the release, in a file of today's format; theirs stay."""
    study, release = records.load_records(old)
    assert (study.pipeline, release.pipeline) == ("tiny", "real")
    assert records.completed_run(old, "tiny") == study
    records.save_record(old, study)
    assert [r.id for r in records.load_records(old)] == [study.id, release.id]
    assert version(records.records_path(old)) == FORMAT


def test_nothing_is_released_again(old: Project) -> None:
    """The next run of a release that is there spends nothing and writes nothing."""
    made = production.plan(old)
    assert not [s for s in made.steps_to_run() if s.release]
    production.run(old)
    assert len(production.ledger_entries(old)) == 2
    assert not list(old.artifacts.glob("*/.altered-*"))


def test_verdicts_of_an_earlier_form_are_read_or_passed_over(old: Project) -> None:
    """Never an error: an audit is repeated easily."""
    (record,) = records.load_records(old, "tiny")
    found = audit_tasks.stored_verdicts(old, record)
    assert found is None or [row["verdict"] for row in found["rows"]]


def test_what_travelled_is_read(old: Project) -> None:
    """Tasks, invitations; envelopes are taken in above."""
    for asks in ("report", "vote"):
        wire = old.root / "wire"
        text = (wire / f"task-{asks}.json").read_bytes()
        signed = b'"protected"' in text
        task = lookup.read_task(
            open_signed(text).document["task"] if signed else json.loads(text)
        )
        lines = (wire / f"invitations-{asks}.jsonl").read_text().splitlines()
        invited = [Invitation.from_json(json.loads(line)) for line in lines]
        assert {each.task for each in invited} == {task.digest()}


def test_a_clients_own_files_go_on(old: Project) -> None:
    """Its ledger knows the release, the outbox holds it, the register is read."""
    home = old.root / "client"
    with Ledger(home / "ledger.sqlite") as ledger:
        assert [entry.state for entry in ledger.entries()] == ["confirmed"]
    assert [p for p in (home / "outbox").iterdir() if p.suffix == ".json"]
    if (home / "register.sqlite").exists():
        REGISTER.connect(home / "register.sqlite").close()


def test_the_copy_of_releases_and_the_digest_key_are_read(old: Project) -> None:
    """Where there were any yet."""
    copy = old.state / "releases.jsonl"
    assert len(evidence.copies(old).second.lines()) == (4 if copy.exists() else 0)
    if old.digest_key.exists():
        from curvote.pipeline.config.source import keyed_digest

        before = old.digest_key.read_bytes()
        assert re.fullmatch("[0-9a-f]{64}", keyed_digest(old, "0" * 64))
        assert old.digest_key.read_bytes() == before


@pytest.mark.parametrize("name", FILES)
def test_a_newer_format_is_refused_and_left_alone(name: str, tmp_path: Path) -> None:
    """Nobody but a newer curvote knows what it says."""
    path = tmp_path / name
    FILES[name].connect(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(UserError, match=r"format 99.*update curvote"):
        FILES[name].connect(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir() if "format" in p.name] == []


def test_every_format_has_its_archive(tmp_path: Path) -> None:
    """Of today's, what this code writes stands for it."""
    today = {"ledger": LEDGER.version, "intake": INTAKE.version}
    today |= {"artifacts": VERSION, "records": FORMAT}
    found = {kind: {number} for kind, number in today.items()}
    for archive in ARCHIVES:
        root = tmp_path / archive.name
        unpack(archive, root)
        project = Project(root)
        found["ledger"].add(version(project.ledger))
        found["intake"].add(version(project.intake))
        for folder in all_folders(project):
            found["artifacts"].add(Artifact(folder).manifest["components"]["contract"])
        for path in records.earlier_files(project):
            found["records"].add(json.loads(path.read_text()).get("format", 1))
    assert found == {kind: {*range(1, last + 1)} for kind, last in today.items()}


def test_the_next_archive_can_be_made(tmp_path: Path) -> None:
    """By the code as it is now, so that it is there before a format changes."""
    make.make(tmp_path)
    assert version(tmp_path / "data" / "state" / "ledger.sqlite") == LEDGER.version
    assert (tmp_path / "wire" / "unsent-vote.json").is_file()
