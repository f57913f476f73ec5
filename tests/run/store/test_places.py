"""The server's side on an object store: same bytes, whole or not there, never lost."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from curvote.base.errors import UserError
from curvote.base.object_store import ObjectStoreError, store_error
from curvote.flows.environment import workers_ended
from curvote.flows.serving.retention import collect_garbage
from curvote.ledger.book import Ledger
from curvote.pipeline.config.project import Project
from curvote.pipeline.release import evidence
from curvote.pipeline.release.evidence import ledger_problems
from curvote.pipeline.run.engines import Engine
from curvote.pipeline.run.history import project_status
from curvote.pipeline.store import garbage, locations
from curvote.pipeline.store.artifacts import Artifact, artifact
from curvote.pipeline.store.garbage import RetentionLimits
from tests import object_store, plain, production, town

Store = fs.S3FileSystem
# Two blocks of replicates.
STUDY = plain.FEW | {"replicates": 3}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the SHA-256 of every table of the study, in a folder."""
    project = plain.write(tmp_path_factory.mktemp("here"), tiny=STUDY)
    return plain.hashes(project, plain.run(project))


@pytest.fixture
def remote(store: Store, tmp_path: Path) -> Project:
    """Return the study's project, its server's side on the object store."""
    return object_store.project(tmp_path, tiny=STUDY)


@pytest.mark.parametrize(
    "engine", ["local", pytest.param("threads", marks=pytest.mark.faults)]
)
def test_bytes_are_those_of_a_folder(
    store: Store, here: dict[str, str], tmp_path: Path, engine: str
) -> None:
    """Raw tables stay here, of the rest nothing does; a second run reuses all."""
    with workers_ended():  # those of another test know another store, or none
        project = object_store.project(tmp_path, tiny=STUDY)
    made = plain.run(project, engine=Engine(engine, 2))
    assert plain.hashes(project, made) == here
    stages = {name.split("/")[0] for name in object_store.files(store)}
    assert stages == {"privatize", "train", "evaluate", "aggregate"}
    assert not [path for path in project.artifacts.rglob("*") if path.is_file()]
    assert not plain.to_run(plain.plan(project))


def test_a_study_there_grows(remote: Project, here: dict[str, str]) -> None:
    """The first replicates are read from the object store: the same bytes again."""
    plain.run(remote, "tiny", "replicates=1")
    made = plain.plan(remote).steps_to_run()
    assert {s.reason for s in made} == {"2 of 3 replicates: 1 is there"}
    assert plain.hashes(remote, plain.run(remote)) == here


def test_what_lacks_its_manifest_is_not_there(
    remote: Project, store: Store, here: dict[str, str]
) -> None:
    """A killed upload counts for nothing, and is done again under the same key."""
    plain.run(remote)
    folder = manifest_of(store, "privatize")
    store.delete_file(f"{object_store.ROOT[5:]}/{folder}/manifest.json")
    step = next(s for s in plain.plan(remote).steps if s.key in folder)
    assert (step.action, step.reason) == ("run", "did not finish, or was deleted")
    assert not locations.artifact_exists(
        locations.as_path(f"{object_store.ROOT}/{folder}")
    )
    assert plain.hashes(remote, plain.run(remote)) == here


def manifest_of(store: Store, stage: str) -> str:
    """Return the folder of an artifact of a stage, below the root."""
    names = (n for n in object_store.files(store) if n.endswith("manifest.json"))
    return next(n for n in names if n.startswith(stage)).rpartition("/")[0]


def test_an_altered_table_is_seen_and_set_aside(remote: Project, store: Store) -> None:
    """By content when asked, and never deleted by a run."""
    before = plain.hashes(remote, plain.run(remote))
    folder = manifest_of(store, "train")
    path = f"{object_store.ROOT[5:]}/{folder}/weak.parquet"
    content = store.open_input_file(path).read()
    with store.open_output_stream(path) as stream:
        stream.write(content[:-1] + b"?")
    assert not project_status(remote, content=False)[0]["altered"]
    (said,) = project_status(remote, content=True)[0]["altered"]
    assert said == f"{folder}: altered (weak.parquet)"
    with store.open_output_stream(path) as stream:
        stream.write(content[:-1])
    assert plain.hashes(remote, plain.run(remote)) == before
    assert any("/.altered-" in name for name in object_store.files(store))


def test_gc_takes_what_no_run_needs(remote: Project, store: Store) -> None:
    """The latest run keeps its artifacts, a half upload goes."""
    plain.run(remote)
    with store.open_output_stream(f"{object_store.ROOT[5:]}/train/half/weak.parquet"):
        pass
    record = plain.run(remote, "tiny", "aggregate.cutoff=0.6")
    collect_garbage(remote, limits=RetentionLimits())
    keys = {name.split("/")[1] for name in object_store.files(store)}
    assert keys < {step["key"] for step in record.steps}
    assert not plain.to_run(plain.plan(remote, "tiny", "aggregate.cutoff=0.6"))


@contextmanager
def failing_store(status: int | None) -> Iterator[tuple[str, str]]:
    """Yield addresses to write to and to read from: that of a status, or no answer.

    Arrow writes to a silent store for 8 seconds, so nobody listens where it writes.
    """
    server = object_store.answering(status) if status else object_store.silent()
    with server as address:
        yield address if status else "http://127.0.0.1:9", address


def test_a_store_that_fails_is_told_and_nothing_is_lost(
    remote: Project, store: Store, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message with the next step; when it answers again the same run goes on."""
    steps = plain.plan(remote).steps
    readers = (plain.plan, evidence.artifact_manifests, ledger_problems)
    for status, said in (
        (500, "answers 500. Wait"),
        (503, "answers 503. Wait"),
        (403, "no right to write it. Check AWS_ACCESS_KEY_ID"),
        (None, "does not answer. Check the network and AWS_ENDPOINT_URL"),
    ):
        with failing_store(status) as (written, read):
            object_store.point_at(monkeypatch, written, seconds=1)
            with pytest.raises(UserError, match=said) as told:
                locations.check_writable(locations.server_store(remote) / str(status))
            assert len(str(told.value)) < 5 * 80
            object_store.point_at(monkeypatch, read, seconds=1)
            with ThreadPoolExecutor() as pool:  # at once: each waits for a silent one
                reading = [pool.submit(reader, remote) for reader in readers]
            assert {type(each.exception()) for each in reading} == {ObjectStoreError}
    object_store.point_at(monkeypatch, address)
    assert plain.run(remote).status == "completed"
    assert len(plain.plan(remote).steps) == len(steps)


def test_a_bucket_that_is_not_there(remote: Project, store: Store) -> None:
    """It is no empty one: before anything is computed the name is told."""
    text = remote.pipelines_file.read_text().replace("//ours", "//nobodys")
    remote.pipelines_file.write_text(text)
    with pytest.raises(UserError, match=r"there is no bucket nobodys\. Create it"):
        plain.run(remote)
    with pytest.raises(UserError, match="there is no bucket nobodys"):
        evidence.artifact_manifests(remote)


def test_what_only_its_owner_may_read_is_never_uploaded(
    store: Store, tmp_path: Path
) -> None:
    """A bucket has no modes, and a seed takes the noise off unpublished records."""
    town.export(tmp_path, str)
    study = plain.TINY | {"source": town.TABLE, "project": town.TOWN["project"]}
    study["clients"] = {"train": 60, "vote": 60, "test": 20}
    project = object_store.project(tmp_path, tiny=study)
    with pytest.raises(UserError, match=r"privatize.*without runtime\.artifacts"):
        plain.run(project)
    assert not object_store.files(store)
    assert not [path for path in project.artifacts.rglob("*") if path.is_file()]


def test_digits_of_a_name_are_no_status() -> None:
    """Keys are hexadecimal: some hold 403, and the right to read is not what lacks."""
    said = "When reading key 'train/9403ab': AWS Error UNKNOWN (HTTP status 503)"
    told = store_error(OSError(said), Path("s3://ours/train/9403ab"))
    assert "the object store answers 503" in str(told)
    denied = store_error(OSError(said.replace("503", "401")), Path("s3://ours"))
    assert "there is no right to read it" in str(denied)


def failing(monkeypatch: pytest.MonkeyPatch, last: str) -> Any:
    """Let the store answer 503 when a file of this name is uploaded."""
    real = locations.upload_file

    def upload(file: Path, target: Path) -> None:
        if file.name == last:
            raise OSError("AWS Error UNKNOWN (HTTP status 503) during PutObject")
        real(file, target)

    return monkeypatch.setattr(locations, "upload_file", upload)


def test_a_release_that_was_half_uploaded_is_not_drawn_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages may have been seen: the very same follow, and count once."""
    project = object_store.project(tmp_path, real=production.REAL)
    with monkeypatch.context() as patch:
        failing(patch, "manifest.json")
        with pytest.raises(UserError, match="answers 503"):
            production.run(project)
    (half,) = object_store.files(store)
    seen = store.open_input_file(f"{object_store.ROOT[5:]}/{half}").read()
    with Ledger(project.ledger) as ledger:
        assert [entry.state for entry in ledger.entries()] == ["reserved"]
    production.run(project)
    assert store.open_input_file(f"{object_store.ROOT[5:]}/{half}").read() == seen
    with Ledger(project.ledger) as ledger:
        assert {entry.state for entry in ledger.entries()} == {"confirmed"}
    assert not ledger_problems(project)


def test_the_ledger_is_held_against_what_is_there(store: Store, tmp_path: Path) -> None:
    """A release that it confirmed and the store lost, or has otherwise, is told."""
    project = object_store.project(tmp_path, real=production.REAL)
    production.run(project)
    assert not ledger_problems(project)
    folder = manifest_of(store, "privatize")
    path = f"{object_store.ROOT[5:]}/{folder}/manifest.json"
    manifest = json.loads(store.open_input_file(path).read())
    with store.open_output_stream(path) as stream:
        stream.write(json.dumps(manifest).encode())
    assert any("not what was confirmed" in line for line in ledger_problems(project))
    store.delete_file(path)
    assert any("is missing" in line for line in ledger_problems(project))


def test_paths_there_are_like_paths_here(store: Store) -> None:
    """Whoever walks the store needs no second way."""
    root = locations.as_path(object_store.ROOT)
    with store.open_output_stream(f"{root.bucket_key}/a/k/x.parquet"):
        pass
    found = list(root.glob("*/*"))
    assert [str(path) for path in found] == [f"{object_store.ROOT}/a/k"]
    assert found[0].is_dir()
    assert found[0].stat().st_mtime > 1e9
    assert [file.stem for file in found[0].iterdir()] == ["x"]
    assert not (root / "a" / "k" / "none").exists()
    with pytest.raises(FileNotFoundError):
        (root / "none").stat()
    assert Artifact(found[0]).problem(content=False) == "missing"
    assert locations.as_path(str(found[0])) == found[0]


def test_without_an_object_store_nothing_changes(project: Project) -> None:
    """The file is read for it; what names none is a folder."""
    assert locations.server_store(project) == project.artifacts
    place = artifact(project, "train", "k").path
    assert place == project.artifacts / "train" / "k"
    assert locations.temporary_folder(project, place).parent == place.parent


def test_old_artifacts_go_and_released_ones_stay(
    store: fs.S3FileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all that is kept for ever; a dry run says how much, and takes nothing.

    Minutes later: records hold whole seconds, and so do object stores, so that what
    began in this one is as young as the limit.
    """
    later = datetime.now(UTC) + timedelta(minutes=5)
    monkeypatch.setattr(garbage, "_time_before", lambda seconds: later)
    made = {"tiny": plain.FEW, "real": production.REAL}
    project = object_store.project(tmp_path, **made)
    production.run(project)
    made_of_it = set(object_store.files(store))
    released = {n for n in made_of_it if not n.startswith("aggregate")}
    plain.run(project)
    early = set(object_store.files(store)) - made_of_it
    last = plain.run(project, "tiny", "aggregate.cutoff=0.6")
    before = set(object_store.files(store))
    (pile,) = collect_garbage(
        project, dry_run=True, limits=RetentionLimits(artifacts=0)
    )
    assert pile.bytes > 0
    assert set(object_store.files(store)) == before
    collect_garbage(project, limits=RetentionLimits(artifacts=0))
    after = set(object_store.files(store))
    assert released <= after
    assert not early <= after
    keys = {name.split("/")[1] for name in after - released}
    assert keys < {step["key"] for step in last.steps}
