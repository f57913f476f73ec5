"""Where raw numbers stand, and what somebody else on the machine learns of them.

One attacker is another user: they read what the modes of the files allow. The other
knows every row of a private file but one, reads whatever stands outside data/clients,
the ledger and the key, and tries guesses of the last row.
"""

import os
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest

from curvote.ledger.book import Ledger
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import file_digest, json_digest
from curvote.pipeline.run.planner import make_plan
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import Artifact, all_folders, artifact
from tests import declared, plain, private_table
from tests.private_table import files_elsewhere, open_to_others, says, text_of


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, databases: Path) -> Project:
    """Return a project after a study and a release under Prefect, with no umask."""
    project = private_table.write(tmp_path_factory.mktemp("places"))
    before, mask = dict(os.environ), os.umask(0)
    _run_all(project, databases)
    os.umask(mask)
    os.environ.clear()
    os.environ.update(before)
    return project


def _run_all(project: Project, databases: Path) -> None:
    from curvote.flows.environment import prepare_environment
    from curvote.flows.server.private import PrefectServer

    os.environ.pop("PREFECT_API_URL", None)
    state = prepare_environment(project.root)
    for name in ("prefect/prefect.db", "mlflow.db"):
        (state / name).parent.mkdir(exist_ok=True)
        copyfile(Project(databases).state / name, state / name)  # with no modes
    with PrefectServer(project.root) as server:
        from curvote.flows.chain import chain

        server.wait()
        for name in ("study", "real"):
            chain(pipeline=name, project=str(project.root), workers=1)


def kept(project: Project, pipeline: str, stage: str) -> Artifact:
    """Return an artifact of the latest run of a pipeline."""
    (record,) = records.load_records(project, pipeline)
    assert record.status == "completed"
    ((_, key),) = record.stage_keys(stage)[:1]
    return artifact(project, stage, key)


def test_raw_tables_are_their_owners_alone(ran: Project) -> None:
    """Folders of data/clients are 0700 and files 0600, whatever the umask."""
    paths = [ran.clients, *ran.clients.rglob("*")]
    modes = {(path.is_dir(), path.stat().st_mode & 0o777) for path in paths}
    assert modes == {(True, 0o700), (False, 0o600)}
    shelves = {f.parent.name for f in ran.clients.glob("*/*")}
    assert shelves == {"cohorts", "ingest", "project", "report"}


def test_another_user_reads_real_noise_only(ran: Project) -> None:
    """No raw table, and none of a study whose seed removes the noise; not the state."""
    files = [f for f in (ran.root / "data").rglob("*") if f.is_file()]
    seen = [f for f in files if open_to_others(f, ran.root)]
    tables = [f for f in seen if f.suffix == ".parquet"]
    assert {f.parent.parent.name for f in tables} == {
        "privatize",
        "train",
        "evaluate",
        "aggregate",
    }
    for table in tables:
        manifest = Artifact(table.parent).manifest
        assert (manifest["mark"], manifest["private"]) == ("noised", True)
        assert declared.TABLES[table.stem].side == "server"
    assert not any(f.is_relative_to(ran.state) for f in seen)
    assert not any(f.is_relative_to(ran.reports / "study") for f in seen)
    assert (ran.reports / "real" / "report.html") in seen


def test_marks_say_what_a_table_holds(ran: Project, finished: Project) -> None:
    """Raw or noised where nobody published the records; `private` keeps its meaning."""
    for name, private in (("study", False), ("real", True)):
        for stage, mark in (
            ("ingest", "raw"),
            ("project", "raw"),
            ("privatize", "noised"),
            ("train", "noised"),
            ("evaluate", "noised"),
            ("aggregate", "noised"),
        ):
            manifest = kept(ran, name, stage).manifest
            assert (manifest["mark"], manifest["private"]) == (mark, private)
    assert kept(ran, "study", "report").manifest["mark"] == "raw"
    simulated = {Artifact(f).manifest["mark"] for f in all_folders(finished)}
    assert simulated == {"public"}


def test_guesses_of_the_last_row_cannot_be_tested(ran: Project) -> None:
    """The file's plain digest, and every key made of it, stand nowhere else."""
    haystack = {path: text_of(path) for path in files_elsewhere(ran)}
    names = {path.name for path in haystack}
    assert {"mlflow.db", "prefect.db", "report.html", "manifest.json"} <= names
    guesses = private_table.digests_of_guesses(ran)
    assert guesses["right"] == file_digest(ran.root / "people.csv")
    for digest in guesses.values():
        wanted = [digest, digest[:16], *_keys(ran, digest)]
        assert not [p for p, text in haystack.items() if any(w in text for w in wanted)]
    # The search finds what is there: the key that the study really has.
    (step, *_) = _steps(ran)
    assert any(step.key in text for text in haystack.values())


def _steps(project: Project) -> tuple[Any, ...]:
    configured = PipelinesFile(project).configure_pipeline("study")
    return make_plan(project, configured).steps


def _keys(project: Project, digest: str) -> list[str]:
    """Return the keys that the study's first step could have by a plain digest."""
    (step, *_) = _steps(project)
    raws = ({"path": digest}, {"path": {"sha256": digest}})
    parts = [step.components | {"raw": raw} for raw in raws]
    return [json_digest(components)[:32] for components in parts]


def test_the_cohort_is_known_to_the_ledger_only(ran: Project) -> None:
    """Its plain digest stands in no file that others read; keys made of it do."""
    with Ledger(ran.ledger) as ledger:
        (cohort,) = {str(entry.facts["cohort"]) for entry in ledger.entries()}
    assert len(cohort) == 64
    assert not [p for p in files_elsewhere(ran) if cohort in text_of(p)]


def test_exact_counts_of_a_private_file_stay_with_its_owner(ran: Project) -> None:
    """Rows, classes, repeats and gaps: in data/clients, and in no other file."""
    counted = {private_table.AGAIN}
    for name in ("study", "real"):
        facts = kept(ran, name, "project").metadata
        counted |= {facts["rows"], *facts["counts"].values()}
        counted |= {facts["duplicates"]["rows"], facts["duplicates"]["distinct"]}
        counted |= {n for n in facts["missing"]["counts"].values() if n}
    assert len(counted) >= 4
    assert min(counted) > 5000
    for path in files_elsewhere(ran):
        text = text_of(path)
        assert not [count for count in counted if says(text, count)], path
    text = text_of(kept(ran, "study", "ingest").path / "manifest.json")
    assert all(says(text, count) for count in counted)


def test_the_report_tells_a_digest_under_the_key(ran: Project) -> None:
    """It changes with the file; what was counted is told to the owner only."""
    page = (ran.reports / "study" / "report.html").read_text()
    told = kept(ran, "study", "ingest").metadata["raw"][0]["hmac_sha256"]
    assert f"HMAC-SHA-256 {told}" in page
    assert "data/clients/ingest" in page
    assert "beyond their bounds" not in page


def test_simulated_people_stand_on_both_sides_too(finished: Project) -> None:
    """The side of its stage alone decides where a table stands, whoever it is about."""
    raw = {folder.name for folder in finished.clients.iterdir()}
    assert raw == {"ingest", "project", "report"}


def test_a_comparison_without_privacy_stands_with_the_clients(tmp_path: Path) -> None:
    """Protocol clean trains on records as they are: nothing of it is a server's."""
    few = {"replicates": 1, "learners": ["centroid"]}
    project = plain.write(tmp_path, tiny=plain.of("clean") | few)
    plain.run(project)
    assert {f.parent.name for f in all_folders(project)} == {
        "ingest",
        "project",
        "fit",
        "report",
    }
    assert not list(project.artifacts.glob("*"))
