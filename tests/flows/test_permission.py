"""Which Prefect server may order a release about people, and who cannot change that."""

import json
import re
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.flows import chain
from curvote.flows.environment import SERVED_VARIABLE, process_tag
from curvote.flows.server import permission, private
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml
from tests import plain, production

THEIRS = "https://prefect.example/api"
PLANNED = "this run would be planned"
STRANGE = "not curvote's own Prefect server: nothing was drawn"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project whose runs another server orders; none is planned."""

    def refuse_plan(*_: object, **__: object) -> None:
        raise UserError(PLANNED)

    monkeypatch.setattr(chain, "make_plan", refuse_plan)
    monkeypatch.setattr(permission, "ordering_server", lambda: f"{THEIRS}/")
    return plain.write(tmp_path, tiny=plain.FEW, real=production.REAL)


def answer(project: Project, name: str = "real") -> str:
    """Return what a run is told before it is planned."""
    with pytest.raises(UserError) as told:
        chain.perform_run(name, str(project.root), chain.RunRequest())
    return str(told.value)


@pytest.mark.parametrize(
    "override",
    [
        "source.path=/records/ward.csv",
        "source={name: table, path: ward.csv}",
        "public.features=embedding:ward.npy",
        "public={features: 'embedding:ward.npy'}",
        "learners=[{name: 'os.path:join'}]",
        "learners=[centroid, 'os.path:join']",
        "protocols=[{name: mrma, source.size: 3}]",
    ],
)
def test_a_study_takes_neither_data_nor_code_from_a_strange_server(
    project: Project, override: str
) -> None:
    """Other settings it may change; the project's own servers may name both."""
    request = chain.RunRequest(overrides=("train.size=2", override))
    with pytest.raises(UserError, match="nothing was read.*" + re.escape(THEIRS)):
        chain.perform_run("tiny", str(project.root), request)
    request = chain.RunRequest(overrides=("train.size=2",))
    with pytest.raises(UserError, match=PLANNED):
        chain.perform_run("tiny", str(project.root), request)
    named = as_yaml({"runtime": {"prefect": {"api": THEIRS}}})
    project.pipelines_file.write_text(named + project.pipelines_file.read_text())
    permission.refuse_foreign_overrides(project, (override,))


@pytest.mark.parametrize(
    ("api", "said"),
    [
        (THEIRS, PLANNED),
        ("HTTPS://Prefect.Example:443/api/", PLANNED),
        ("https://prefect.example:4200/api", STRANGE),
        ("http://prefect.example/api", STRANGE),
        ("https://prefect.example/API", STRANGE),
        ("https://prefect.example.evil/api", STRANGE),
        ("https://prefect.example/api/../api", STRANGE),
        ("prefect.example", "write an address"),
        ("https://me:word@prefect.example/api", "no password"),
    ],
)
def test_the_file_names_a_server_letter_by_letter(
    project: Project, api: str, said: str
) -> None:
    """But for case of scheme and host, a usual port, the last slash; with no secret."""
    assert answer(project, "tiny") == PLANNED
    assert re.search(f'{STRANGE}.*api: "{THEIRS}"', answer(project))
    text = project.pipelines_file.read_text()
    named = as_yaml({"runtime": {"prefect": {"api": api}}})
    project.pipelines_file.write_text(named + text)
    assert said in answer(project)


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
    assert STRANGE in answer(project)
    monkeypatch.setitem(private._started, THEIRS, home.resolve())
    assert answer(project) == PLANNED
