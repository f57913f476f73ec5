"""Which folder is the project: one with a pipelines.yaml, or one that needs none."""

from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.data import raw_files
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import PIPELINES, find_project
from tests.house import ROOT


def test_the_nearest_file_makes_the_project(tmp_path: Path) -> None:
    """Also where what curvote brings would do: a project is never passed over."""
    (tmp_path / PIPELINES).write_text("pipelines: {}\n")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    for starter in (False, True):
        found = find_project(below, starter=starter)
        assert (found.root, found.starter) == (tmp_path, False)


def test_an_empty_folder_has_the_pipelines_that_curvote_brings(tmp_path: Path) -> None:
    """Those of the repository, for a command that can begin with them."""
    found = find_project(tmp_path, starter=True)
    assert found.root == tmp_path
    own = (ROOT / PIPELINES).read_text()
    assert found.pipelines_file.read_text() == own
    assert "demo" in PipelinesFile(found).names()
    assert raw_files.catalogue(found.root) == raw_files.catalogue(ROOT)


def test_a_ledger_is_not_looked_for_in_just_any_folder(tmp_path: Path) -> None:
    """Other commands want a project: an empty answer would be a wrong one."""
    with pytest.raises(UserError, match=r"no pipelines\.yaml in"):
        find_project(tmp_path)


def test_where_they_have_run_their_results_are_found(tmp_path: Path) -> None:
    """`curvote demo` in an empty folder, then `curvote scores demo`."""
    (tmp_path / "data" / "state").mkdir(parents=True)
    assert find_project(tmp_path).starter


def test_a_file_of_ones_own_takes_over(tmp_path: Path) -> None:
    """What somebody writes beside the results is what counts from then on."""
    begun = find_project(tmp_path, starter=True)
    (tmp_path / PIPELINES).write_text("pipelines: {}\n")
    assert begun.pipelines_file == tmp_path / PIPELINES
    assert not find_project(tmp_path).starter
