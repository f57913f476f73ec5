"""The house rules of CONTRIBUTING.md hold: imports, sizes, docstrings, names."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("curvote", "tasks", "flows")
SOURCES = [path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]
PAGES = """README.md PACKAGE.md CHANGELOG.md CONTRIBUTING.md LICENSE pyproject.toml
constraints.txt Makefile pipelines.yaml curvote/py.typed
data/sources.toml data/README.md"""
# In pieces, or this file would break its own rule.
REGISTRIES = ("py" + "pi", "python" + "hosted", "npm" + "js", "ana" + "conda.org")
MACHINE_PATHS = ("/ro" + "ot", "/wo" + "rk", "/tm" + "p/w")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _run(*command: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def _lint_imports(folder: Path) -> str:
    """Return what the import linter says of the project in ``folder``."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = _run(str(linter), "--no-cache", "--no-logo", folder=folder)
    return f"exit {done.returncode}\n{done.stdout}{done.stderr}"


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _nodes(path: Path) -> Iterator[ast.AST]:
    yield from ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def _tracked() -> list[Path]:
    """Return the files of the checkout that git tracks or would track."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("not a git checkout")
    listed = ("--cached", "--others", "--exclude-standard")
    done = _run("git", "ls-files", "-z", *listed)
    assert not done.returncode, done.stderr
    paths = [ROOT / name for name in done.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def _text(path: Path) -> str:
    """Return the file's text; a binary file holds none."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def test_imports_point_one_way() -> None:
    """Every contract of pyproject.toml is kept."""
    said = _lint_imports(ROOT)
    assert said.startswith("exit 0"), said
    assert "0 broken" in said


# A file, what it must not import, and the contract that says so.
FORBIDDEN = [
    ("curvote/base/errors.py", "curvote.mechanisms", "Imports point one way"),
    ("curvote/client/__init__.py", "curvote.data", "Imports point one way"),
    ("curvote/report/page.py", "curvote.papers", "Imports point one way"),
    ("curvote/pipeline/__init__.py", "curvote.papers", "Imports point one way"),
    ("curvote/tasks/__init__.py", "curvote.flows", "Imports point one way"),
    (
        "curvote/pipeline/plan/__init__.py",
        "curvote.pipeline.store",
        "The rooms of",
    ),
    (
        "curvote/systems/labels/system.py",
        "curvote.systems.transfer.system",
        "Systems take from each other",
    ),
    ("curvote/pipeline/__init__.py", "prefect", "no orchestrator"),
    ("curvote/estimators/direct.py", "mlflow", "no orchestrator"),
    ("curvote/learning/__init__.py", "curvote.client", "The server knows neither"),
    ("curvote/data/tables/cells.py", "curvote.data.tables.table", "form no cycle"),
]


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what is said of each contract once all those imports are made."""
    root = tmp_path_factory.mktemp("house")
    shutil.copy(ROOT / "pyproject.toml", root)
    shutil.copytree(ROOT / "curvote", root / "curvote")
    for number, (importer, imported, _) in enumerate(FORBIDDEN):
        with (root / importer).open("a") as culprit:
            culprit.write(f"\n\ndef culprit_{number}():\n    import {imported}\n")
    _, _, said = _lint_imports(root).partition("Broken contracts")
    parts = re.split(r"\n(.+)\n-+\n", said)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize(("importer", "imported", "contract"), FORBIDDEN)
def test_import_across_the_line_is_caught(
    importer: str, imported: str, contract: str, broken: dict[str, str]
) -> None:
    """A forbidden import, even inside a function, is named under its contract."""
    (said,) = (said for name, said in broken.items() if contract in name)
    file = importer.removesuffix(".py").removesuffix("/__init__")
    if contract == "form no cycle":
        assert re.search(r"cycles are allowed in curvote\.data\.tables\b", said), said
    else:
        assert re.search(rf"{file.replace('/', '.')} -> {imported}\b", said), said


def test_every_part_stands_in_a_layer() -> None:
    """A new module of curvote that no layer names would escape the contract."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    contracts = {one["id"]: one for one in settings["importlinter"]["contracts"]}
    named = set(re.findall(r"[\w.]+", " ".join(contracts["layers"]["layers"])))
    parts = {f"curvote.{path.stem}" for path in (ROOT / "curvote").glob("[!_.]*")}
    assert parts - {"curvote.py"} <= named


@pytest.mark.parametrize("name", PAGES.split())
def test_file_of_the_house_exists(name: str) -> None:
    """The files that the design and the packaging name are there."""
    assert (ROOT / name).is_file()


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        (
            "curvote.mechanisms.laplace",
            {"pandas", "sklearn", "skfda", "matplotlib", "prefect", "mlflow"},
        ),
        ("curvote.cli.app", {"numpy", "pandas", "prefect", "mlflow"}),
    ],
)
def test_import_stays_cheap(module: str, heavy: set[str]) -> None:
    """Importing a leaf, or the command line, loads none of the heavy libraries."""
    done = _run(sys.executable, "-c", f"import sys, {module}; print(*sys.modules)")
    assert module in done.stdout.split(), done.stderr
    assert not heavy & set(done.stdout.split())


def test_a_file_is_one_concept() -> None:
    """No file has over 650 lines; one of tasks, orchestration facts only, over 100."""
    limits = {path: 100 if path.parent.name == "tasks" else 650 for path in SOURCES}
    sizes = {path: _lines(path) for path in SOURCES}
    assert {str(p): size for p, size in sizes.items() if size > limits[p]} == {}


def test_public_names_have_docstrings() -> None:
    """Every module of curvote, and its public functions and classes, are explained."""
    missing = [
        f"{path.relative_to(ROOT)}: {getattr(node, 'name', 'module')}"
        for path in sorted((ROOT / "curvote").rglob("*.py"))
        for module in [ast.parse(path.read_text(encoding="utf-8"))]
        for node in [module, *module.body]
        if isinstance(node, ast.Module | ast.ClassDef | Function)
        if not getattr(node, "name", "module").startswith("_")
        if not ast.get_docstring(node)
    ]
    assert missing == []


def test_no_file_names_a_registry_or_a_machine() -> None:
    """A checkout works anywhere: no package host and no path of one computer."""
    registry = "|".join(map(re.escape, REGISTRIES))
    path = "|".join(map(re.escape, MACHINE_PATHS))
    pattern = re.compile(rf"{registry}|(?<![\w./~-])(?:{path})(?![\w-])", re.IGNORECASE)
    found = {
        str(each.relative_to(ROOT)): match.group()
        for each in _tracked()
        for match in pattern.finditer(_text(each))
    }
    assert found == {}


def test_the_privacy_page_names_tests_that_exist() -> None:
    """An attack that a page calls covered is covered by a test of that name."""
    text = (ROOT / "docs" / "privacy.md").read_text()
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", text)
    assert len(named) > 10
    for file, name in named:
        assert f"def {name}(" in (ROOT / file).read_text(), f"{file}::{name}"
