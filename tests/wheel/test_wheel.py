"""What a wheel of curvote holds and says of itself, and that it works by itself."""

import ast
import json
import re
import sys
import tomllib
import zipfile
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.house import ROOT, House, driven
from tests.wheel.building import wheel

BASE = {"cryptography", "numpy", "platformdirs", "pydantic", "ruamel.yaml", "typer"}
EXTRAS = {"client", "laws", "method", "pipeline", "tracking", "all"}
# Where the name that is imported is not that of the distribution.
NAMES = {"sklearn": "scikit-learn", "skfda": "scikit-fda", "ruamel": "ruamel-yaml"}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with nothing but what the wheel installs."""
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(wheel(folder)) as built:
        built.extractall(folder / "site")
    return folder / "site"


def _metadata(unpacked: Path) -> Message:
    (path,) = unpacked.glob("*.dist-info/METADATA")
    return HeaderParser().parsestr(path.read_text(encoding="utf-8"))


def _required(unpacked: Path, extra: str) -> set[str]:
    """Return the names that an extra adds to the base; "": those of the base."""
    lines = map(Requirement, _metadata(unpacked).get_all("Requires-Dist", []))
    base = {line.name for line in lines if line.marker is None}
    if not extra:
        return base
    lines = map(Requirement, _metadata(unpacked).get_all("Requires-Dist", []))
    asked = {"extra": extra}
    return {line.name for line in lines if line.marker and line.marker.evaluate(asked)}


def test_the_wheel_brings_one_top_level_name(unpacked: Path) -> None:
    """No package called flows, tasks or data lands beside those of others."""
    named = {path.name for path in unpacked.iterdir() if path.suffix != ".dist-info"}
    assert named == {"curvote"}


def test_the_wheel_holds_every_file_of_the_packages(unpacked: Path) -> None:
    """Modules, templates, published tables: what the checkout reads, the wheel has."""
    folders = {"curvote": ROOT / "curvote", "curvote/flows": ROOT / "flows"}
    folders |= {"curvote/tasks": ROOT / "tasks"}
    wanted = {
        f"{name}/{path.relative_to(folder)}"
        for name, folder in folders.items()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    missing = {name for name in wanted if not (unpacked / name).is_file()}
    assert missing == set()


@pytest.mark.parametrize(
    ("inside", "source"),
    [
        ("curvote/data/sources.toml", "data/sources.toml"),
        ("curvote/pipeline/pipelines.yaml", "pipelines.yaml"),
    ],
)
def test_what_it_brings_along_is_the_repositorys(
    unpacked: Path, inside: str, source: str
) -> None:
    """One source of truth: in the checkout a link, in the wheel its bytes."""
    assert (ROOT / inside).resolve() == ROOT / source
    assert (unpacked / inside).read_bytes() == (ROOT / source).read_bytes()


def test_the_base_is_the_client(unpacked: Path) -> None:
    """Six small packages; the extras are named as the README names them."""
    assert _required(unpacked, "") == BASE
    assert set(_metadata(unpacked).get_all("Provides-Extra", [])) >= EXTRAS
    assert _required(unpacked, "client") == set()
    assert "scipy" in _required(unpacked, "method")
    assert "prefect" in _required(unpacked, "pipeline")
    assert "mlflow" in _required(unpacked, "tracking")


def test_its_page_leads_nowhere_that_is_not_there(unpacked: Path) -> None:
    """What an index shows holds no picture and no link into the repository."""
    said = _metadata(unpacked)
    assert said["Description-Content-Type"] == "text/markdown"
    page = said.get_payload()
    assert page == (ROOT / "PACKAGE.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((?!https://)[^)]*\)|<img|\]\[", page) == []
    assert {*re.findall(r"`curvote\[(\w+)\]`", page)} >= EXTRAS
    assert [*unpacked.glob("*.dist-info/licenses/LICENSE")]


def test_it_says_where_it_runs(unpacked: Path) -> None:
    """Python 3.11 to 3.13, each with a classifier."""
    said = _metadata(unpacked)
    allowed = SpecifierSet(said["Requires-Python"])
    versions = ("3.11", "3.12", "3.13")
    assert [v for v in ("3.10", *versions) if f"{v}.0" in allowed] == [*versions]
    known = set(said.get_all("Classifier", []))
    assert {f"Programming Language :: Python :: {v}" for v in versions} <= known


def test_the_wheel_works_by_itself_in_an_empty_folder(
    unpacked: Path, tmp_path: Path
) -> None:
    """Its own pipelines and data sources are found where no project is."""
    commands = {"list --json": "phonemes", "plan demo --json": "ingest"}
    shown = driven(House(unpacked, tmp_path), *map(str.split, commands))
    for done, known in zip(shown, commands.values(), strict=True):
        assert done["code"] == 0, done["err"]
        assert known in str(json.loads(done["out"]))
    assert [*tmp_path.iterdir()] == []


def test_every_import_is_declared() -> None:
    """What curvote imports stands in pyproject.toml: nothing comes by accident."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    declared = {
        canonicalize_name(Requirement(line).name) for group in groups for line in group
    }
    imported = {
        canonicalize_name(NAMES.get(name, name))
        for folder in ("curvote", "flows", "tasks")
        for path in (ROOT / folder).rglob("*.py")
        for name in _imported(path)
    }
    parts = {"pydantic-core", "h11"}  # of pydantic and of uvicorn
    assert imported - declared <= {"curvote", *parts}


def _imported(path: Path) -> set[str]:
    """Return the names of the packages of others that a module imports."""
    tops = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            tops |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            tops.add(node.module.partition(".")[0])
    return tops - set(sys.stdlib_module_names)
