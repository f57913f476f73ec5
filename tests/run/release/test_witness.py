"""A witness outside the project recognises a folder that was put back whole."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from curvote.cli import doctor
from curvote.ledger.book import Ledger
from curvote.ledger.journal import Journal
from curvote.pipeline.config.project import Project
from curvote.pipeline.release import evidence
from tests import plain
from tests.production import REAL
from tests.witnessed import TWO, WIDE, back, refused, run, witnessed


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project beside which a witness may stand."""
    return plain.write(tmp_path / "house", **witnessed(tmp_path / "witness.jsonl"))


def test_an_older_ledger_stops_every_pipeline_of_the_population(tmp_path: Path) -> None:
    """What one released, the others must know: no witness is needed for that."""
    project = plain.write(tmp_path, **TWO)
    run(project, "one")
    older = project.ledger.read_bytes()
    run(project, "two")
    project.ledger.write_bytes(older)
    said = refused(project, "one", "two", "three")
    assert all("`curvote ledger restore FILE`" in words for words in said)
    assert all(len(words.splitlines()) == 1 for words in said)


@pytest.mark.parametrize("since", ["one", "nothing"])
def test_a_whole_folder_put_back_is_recognised(
    project: Project, tmp_path: Path, since: str
) -> None:
    """Ledger, store, copy and records agree with each other; the witness knows more.

    Also where the folder that is put back has no ledger yet: its population is known.
    """
    snapshot = tmp_path / "snapshot"
    if since == "one":
        run(project, "one")
        shutil.copytree(project.root / "data", snapshot)
    run(project, "two")
    back(project, snapshot)
    said = refused(project, "one", "two", "three")
    assert all("witness.jsonl: release" in words for words in said)
    assert all("`curvote ledger restore FILE`" in words for words in said)
    assert any("witness" in line for line in evidence.ledger_problems(project))
    project.state.mkdir(parents=True, exist_ok=True)
    if since == "nothing":
        with Ledger(project.ledger):
            pass
        refused(project, "one", "two", "three")  # a fresh one is no better than none


def test_each_release_leaves_its_place_in_the_chain(
    project: Project, tmp_path: Path
) -> None:
    """In the manifest and in each witness: sequence number and head, no client."""
    run(project, "one")
    with Ledger(project.ledger) as ledger:
        known = {m.head: m.sequence for m in ledger.movements()}
        origin = ledger.origin()
    lines = Journal(tmp_path / "witness.jsonl").lines()
    assert {line["head"]: line["sequence"] for line in lines} == known
    assert {line["ledger"] for line in lines} == {origin}
    assert {line["population"] for line in lines} == {"simulated"}
    assert {line["format"] for line in lines} == {2}
    for manifest in project.artifacts.glob("*/*/manifest.json"):
        if release := json.loads(manifest.read_text()).get("release"):
            assert known[release["head"]] == release["sequence"]
    assert (tmp_path / "witness.jsonl").stat().st_mode & 0o777 == 0o600


def test_no_release_without_its_witness(project: Project, tmp_path: Path) -> None:
    """It cannot be written, it is gone, or its folder is: nothing is reserved."""
    path = tmp_path / "witness.jsonl"
    path.mkdir()
    assert all("witness.jsonl, the witness" in said for said in refused(project, "two"))
    path.rmdir()
    run(project, "one")
    path.rename(tmp_path / "away")
    (said,) = refused(project, "two")
    assert "is gone" in said
    assert "is its disk mounted?" in said
    (tmp_path / "away").rename(path)
    run(project, "two")
    lost = {"one": REAL | {"ledger": {**WIDE, "witness": f"{tmp_path}/no/disk"}}}
    plain.write(project.root, **(TWO | lost))
    (said,) = refused(project, "three")
    assert "No such file or directory. Nothing is released without it" in said


@pytest.mark.parametrize("path", ["/dev/null", "~nobody-here/w", "../x\0y"])
def test_a_witness_is_a_plain_file(tmp_path: Path, path: str) -> None:
    """What keeps nothing, or cannot be a file, is refused in words."""
    project = plain.write(tmp_path / "house", **witnessed(path))
    (said,) = refused(project, "one")
    assert "is no plain file" in said or "is no path of a file" in said


@pytest.mark.parametrize("path", ["witness.jsonl", "data/state/w", "{root}/w", "link"])
def test_a_witness_inside_the_project_is_none(tmp_path: Path, path: str) -> None:
    """However its path is spelt: what is put back would take it back."""
    root = tmp_path / "house"
    project = plain.write(root, **witnessed(path.format(root=root)))
    (root / "link").symlink_to(root / "data" / "w")
    (said,) = refused(project, "one")
    assert "lies inside the project" in said


def test_a_witness_may_be_named_later_or_anew(project: Project, tmp_path: Path) -> None:
    """It takes in all that the ledger knows, each line once; a torn one is no harm."""
    plain.write(project.root, **TWO)
    run(project, "one")
    plain.write(project.root, **witnessed("../late.jsonl"))
    run(project, "two")
    path = tmp_path / "late.jsonl"
    assert len(path.read_text().splitlines()) == 8
    path.write_text(path.read_text()[:-30])
    run(project, "three")
    assert len(Journal(path).lines()) == 12
    with Ledger(project.ledger) as ledger:
        heads = {m.head for m in ledger.movements()}
    assert {line["head"] for line in Journal(path).lines()} == heads
    assert Journal(path).count_unreadable() == 1
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0].replace('"head"', '"haed"') + "".join(lines[1:]))
    assert Journal(path).count_unreadable() == 2
    (_, found) = doctor.check_witnesses(project)
    assert (found.status, found.found[-23:]) == ("warning", "lines cannot be read: 2")


def town(**changes: Any) -> Mapping[str, Any]:
    """Return one pipeline under another name of its population."""
    return {"one": REAL | {"ledger": {**WIDE, **changes}}}


def test_projects_share_a_witness_but_no_population(tmp_path: Path) -> None:
    """Two machines with a ledger each would give the same people two budgets."""
    path = str(tmp_path / "witness.jsonl")
    first = plain.write(tmp_path / "a", **town(population="a", witness=path))
    other = plain.write(tmp_path / "b", **town(population="b", witness=path))
    same = plain.write(tmp_path / "c", **town(population="a", witness=path))
    run(first, "one")
    run(other, "one")
    run(first, "one")
    (said,) = refused(same, "one")
    assert "population 'a' is in another ledger" in said
    assert "give this project another witness" in said
    shutil.copytree(first.root, tmp_path / "d")
    twin = plain.write(tmp_path / "d", **town(population="a", witness=path))
    changed = town(population="a", witness=path)
    plain.write(tmp_path / "d", one=changed["one"] | {"epsilon": 3})
    run(twin, "one")  # the copy goes on, so the first one is older now
    (said,) = refused(first, "one")
    assert "witness.jsonl" in said


def test_a_newer_format_of_a_witness_is_refused(
    project: Project, tmp_path: Path
) -> None:
    """Its lines might say what this curvote does not understand."""
    path = tmp_path / "witness.jsonl"
    path.write_text(json.dumps({"format": 3, "release": "r", "head": "h"}) + "\n")
    (said,) = refused(project, "one")
    assert "a newer curvote wrote it (format 3, this one reads 2)" in said
