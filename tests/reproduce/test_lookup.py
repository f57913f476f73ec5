"""The wings' files of pipelines: sound, found by name, and after the project's own."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from curvote.base.errors import UserError
from curvote.papers import registry
from curvote.papers.registry import file_of, find_entry, reproductions
from curvote.papers.reproduction import QUANTITIES
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import parse_value
from tests import plain
from tests.reproduce_rows import entries_of

ROOT = Path(__file__).resolve().parents[2]
WINGS = [ROOT / wing.replace(".", "/") for wing in registry.PAPERS]
FILES = [wing for wing in WINGS if (wing / "pipelines.yaml").is_file()]
each_file = pytest.mark.parametrize("folder", FILES, ids=lambda folder: folder.name)
each_wing = pytest.mark.parametrize("folder", WINGS, ids=lambda folder: folder.name)


@each_file
def test_the_file_of_a_wing_is_right(folder: Path) -> None:
    """It passes its own check and that of editors, and shares no name with ours."""
    file = PipelinesFile(Project(folder))
    file.check_all()
    schema = json.loads((ROOT / "docs" / "pipelines.schema.json").read_text())
    jsonschema.validate(parse_value((folder / "pipelines.yaml").read_text()), schema)
    assert not set(file.names()) & set(PipelinesFile(Project(ROOT)).names())


@each_wing
def test_a_wing_holds_what_its_tables_take_and_nothing_else(folder: Path) -> None:
    """Every pipeline belongs to a table, a figure or a contest."""
    taken = [p for one in entries_of(folder.name).values() for p in one.pipelines]
    held = PipelinesFile(Project(folder)).names() if folder in FILES else []
    assert sorted(taken) == sorted(held)


def test_every_reproduction_names_its_paper_and_a_known_quantity() -> None:
    """They stand in the heading of the command; rows may hold another quantity."""
    for entry in reproductions().values():
        assert entry.quantity in QUANTITIES
        paper = entry.package.split(".")[-1].upper()
        assert entry.heading.startswith(f"{paper}, {entry.title}: ")
        assert ("standard error" in entry.heading) == bool(entry.pipelines)


def test_the_projects_own_pipeline_comes_first(tmp_path: Path) -> None:
    """A name that stands in both files is the project's."""
    project = plain.write(tmp_path, **{"figure-2": plain.TINY})
    own = file_of(project, "figure-2").configure_pipeline("figure-2").pipeline
    assert own.replicates == plain.TINY["replicates"]
    assert (
        file_of(project, "figure-5").configure_pipeline("figure-5").pipeline.source
        != {}
    )


def test_an_unknown_pipeline_gets_the_closest_name_of_all_files(project):
    """Whichever file it stands in; without a close name the project's own are told.

    Not forty that the user never wrote; one of curvote's says where it is.
    """
    for name, said in (
        ("tinny", "Did you mean 'tiny'"),
        ("figure2", "Did you mean 'figure-2'"),
        ("zz", r"^no pipeline 'zz'\. Here: tiny\.$"),
        ("demo", r"Here: tiny\. curvote brings one of"),
    ):
        with pytest.raises(UserError, match=said):
            file_of(project, name)


def test_errors_name_the_file_and_line_of_the_wing(project: Project) -> None:
    """Not those of the project's file, where the pipeline does not stand."""
    file = file_of(project, "figure-5")
    with pytest.raises(UserError) as error, file.errors_located("figure-5"):
        raise UserError("no such phoneme.", where=("source", "positive"))
    said = re.fullmatch(
        r"(curvote/papers/mrma/pipelines\.yaml):(\d+): source.positive: no such.*",
        str(error.value),
    )
    assert said
    line = (ROOT / said[1]).read_text().splitlines()[int(said[2]) - 1]
    assert line.startswith("    source: {name: phonemes, positive: sh")


def test_unknown_name_gets_help() -> None:
    """A misspelt name gets the nearest one and the whole list."""
    with pytest.raises(UserError, match=r"'table-1'\?.*figure-a6.*cases-a3"):
        find_entry("tabel-1")
