"""Which Prefect server may order a release about people, and who cannot change that."""

import json
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.flows.environment import SERVED_VARIABLE, process_tag
from curvote.flows.server import permission, private
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml
from tests import plain, production

THEIRS = "https://prefect.example/api"
STRANGE = "not curvote's own Prefect server: nothing was drawn"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project whose runs another server orders."""
    monkeypatch.setattr(permission, "ordering_server", lambda: f"{THEIRS}/")
    return plain.write(tmp_path, tiny=plain.FEW, real=production.REAL)


def refuse(project: Project, name: str = "real") -> None:
    """Ask as a run does, before it is planned."""
    configured = PipelinesFile(project).configure_pipeline(name)
    permission.refuse_foreign_server(project, configured)


@pytest.mark.parametrize(
    ("api", "said"),
    [
        (THEIRS, None),
        ("HTTPS://Prefect.Example:443/api/", None),
        ("https://prefect.example:4200/api", STRANGE),
        ("http://prefect.example/api", STRANGE),
        ("https://prefect.example/API", STRANGE),
        ("https://prefect.example.evil/api", STRANGE),
        ("https://prefect.example/api/../api", STRANGE),
        ("prefect.example", r"prefect\.api: .*write an address"),
        ("https://me:word@prefect.example/api", r"prefect\.api: .*no password"),
    ],
)
def test_the_file_names_a_server_letter_by_letter(
    project: Project, api: str, said: str | None
) -> None:
    """But for case of scheme and host, a usual port, the last slash; with no secret."""
    refuse(project, "tiny")
    with pytest.raises(UserError, match=f'{STRANGE}.*api: "{THEIRS}"'):
        refuse(project)
    text = project.pipelines_file.read_text()
    named = as_yaml({"runtime": {"prefect": {"api": api}}})
    project.pipelines_file.write_text(named + text)
    if said is None:
        refuse(project)
        return
    with pytest.raises(UserError, match=said):
        refuse(project)


def test_no_variable_makes_a_server_curvotes_own(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor a `curvote serve` that has died, or that of another project.

    A living one does, and a server that this process has started for the project.
    """
    for name in (SERVED_VARIABLE, "PREFECT_API_URL", "CURVOTE_STATE"):
        monkeypatch.setenv(name, str(project.root))
    monkeypatch.setitem(private._started, THEIRS, Path("/elsewhere"))
    home = project.state / "prefect"
    home.mkdir(parents=True)
    for owner, strange in (("pid:1@0", True), (process_tag(), False)):
        entry = {"url": THEIRS, "process": owner}
        (home / "server.json").write_text(json.dumps(entry))
        assert private.is_own_server(project.state, f"{THEIRS}/") is not strange
    (home / "server.json").unlink()
    with pytest.raises(UserError, match=STRANGE):
        refuse(project)
    monkeypatch.setitem(private._started, THEIRS, home.resolve())
    refuse(project)
