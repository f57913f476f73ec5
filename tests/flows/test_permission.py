"""Which Prefect server may order a release about people, and who cannot change that."""

import json
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.flows.environment import SERVED_VARIABLE, process_tag
from curvote.flows.server import permission, private
from curvote.flows.server.permission import refuse_foreign_server
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml
from tests import plain, production

THEIRS = "https://prefect.example/api"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project whose runs another server orders."""
    monkeypatch.setattr(permission, "ordering_server", lambda: f"{THEIRS}/")
    return write(tmp_path, None)


def write(root: Path, api: str | None) -> Project:
    """Write a study and a production pipeline, and which server may order them."""
    project = plain.write(root, tiny=plain.FEW, real=production.REAL)
    runtime = {"runtime": {"prefect": {"api": api}}} if api else {}
    project.pipelines_file.write_text(as_yaml(runtime) * bool(api) + _text(project))
    return project


def _text(project: Project) -> str:
    return project.pipelines_file.read_text()


def refuse(project: Project, name: str = "real") -> None:
    """Ask as a run does, before it is planned."""
    refuse_foreign_server(project, PipelinesFile(project).configure_pipeline(name))


def announce(project: Project, owner: str) -> None:
    """Write the file in which `curvote serve` names its server and its process."""
    home = project.state / "prefect"
    home.mkdir(parents=True)
    entry = json.dumps({"url": THEIRS, "process": owner})
    (home / "server.json").write_text(entry)


def test_a_study_runs_anywhere_and_a_release_where_the_file_says(
    project: Project,
) -> None:
    """The message names the server, and the line that would allow it."""
    refuse(project, "tiny")
    with pytest.raises(UserError, match=r"nothing was drawn.*api: \"https://prefect"):
        refuse(project)
    refuse(write(project.root, THEIRS))


@pytest.mark.parametrize(
    ("api", "same"),
    [
        ("HTTPS://Prefect.Example:443/api/", True),
        ("https://prefect.example:4200/api", False),
        ("http://prefect.example/api", False),
        ("https://prefect.example/API", False),
        ("https://prefect.example.evil/api", False),
        ("https://prefect.example/api/../api", False),
    ],
)
def test_an_address_is_compared_letter_by_letter(
    project: Project, api: str, same: bool
) -> None:
    """But for the case of scheme and host, a usual port and the last slash."""
    write(project.root, api)
    if same:
        refuse(project)
    else:
        with pytest.raises(UserError, match="it names http"):
            refuse(project)


@pytest.mark.parametrize(
    "api", ["prefect.example", "https://me:word@prefect.example/api", "https://a/#b"]
)
def test_what_is_no_address_is_refused_where_it_stands(
    project: Project, api: str
) -> None:
    """Nor does a password stand in pipelines.yaml."""
    write(project.root, api)
    with pytest.raises(UserError, match=r"runtime\.prefect\.api: .*address"):
        PipelinesFile(project).runtime()


def test_no_variable_makes_a_server_curvotes_own(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does the announcement of a `curvote serve` that has died."""
    for name in (SERVED_VARIABLE, "PREFECT_API_URL", "CURVOTE_STATE"):
        monkeypatch.setenv(name, str(project.root))
    announce(project, "pid:1@0")
    monkeypatch.setitem(private._started, THEIRS, Path("/elsewhere"))
    with pytest.raises(UserError, match="not curvote's own"):
        refuse(project)


def test_the_server_of_a_living_serve_and_ones_own_are_curvotes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this project: that of another one is a stranger's."""
    monkeypatch.setitem(private._started, THEIRS, project.state.resolve() / "prefect")
    refuse(project)
    monkeypatch.undo()
    monkeypatch.setattr(permission, "ordering_server", lambda: THEIRS)
    announce(project, process_tag())
    refuse(project)
    with pytest.raises(UserError, match="not curvote's own"):
        refuse(write(project.root / "other", None))
