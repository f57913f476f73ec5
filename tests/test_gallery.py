"""The notebooks of docs/gallery, as text; `make docs` runs them."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.house import ROOT
from tests.public_names import PACKAGES

GALLERY = ROOT / "docs" / "gallery"
INDEX = GALLERY / "index.md"
PAGES = sorted(path for path in GALLERY.iterdir() if path != INDEX)
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# What only a notebook understands: tags, magics, and commands of the shell.
MAGIC = re.compile(r"^(?::tags:|%).*|!.*")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def test_the_gallery_is_text() -> None:
    """Five notebooks in Markdown, which stores no output."""
    assert len(PAGES) == 5
    assert {page.suffix for page in PAGES} == {".md"}


@each_page
def test_a_notebook_is_in_the_index(page: Path) -> None:
    """In its tree, and on a card with a figure that the notebook draws."""
    index = INDEX.read_text(encoding="utf-8")
    figure = f"{page.stem}-figure"
    assert f"\n{page.stem}\n" in index
    assert f":link: {page.stem}\n" in index
    assert f"{{glue}} {figure}\n:doc: {page.name}\n" in index
    assert figure in page.read_text(encoding="utf-8")


@each_page
def test_a_notebook_is_honest(page: Path) -> None:
    """It says its epsilon, what a seed means and where it fails, and checks its words.

    The checks stand in cells that the page does not show.
    """
    text = page.read_text(encoding="utf-8")
    prose = CELL.sub("", text)
    assert re.search(r"epsilon=|\"epsilon\": ", text)
    assert re.search(r"\bepsilon (of )?\d", prose, re.IGNORECASE)
    assert re.search(r"seed|random_state", prose)
    assert re.search(r"\*\*Where it (does not work|works, and where not)\.\*\*", prose)
    hidden = [cell for cell in CELL.findall(text) if "[remove-cell]" in cell]
    assert any("\nassert " in cell for cell in hidden)


@each_page
def test_a_notebook_takes_public_names_only(page: Path) -> None:
    """What it imports of curvote is what curvote documents."""
    taken = imported(page.read_text(encoding="utf-8"))
    packages = {".".join(filter(None, ("curvote", inside))) for inside in PACKAGES}
    assert taken
    for package, name in taken:
        assert package in packages
        assert name in import_module(package).__all__


def imported(text: str) -> set[tuple[str, str]]:
    """Return (package, name) of all that the cells import from curvote."""
    lines = "".join(CELL.findall(text)).splitlines()
    code = ast.parse("\n".join(MAGIC.sub("None", line) for line in lines))
    nodes = [node for node in ast.walk(code) if isinstance(node, ast.ImportFrom)]
    assert not re.search(r"^import curvote", "\n".join(lines), re.MULTILINE)
    return {
        (str(node.module), each.name)
        for node in nodes
        for each in node.names
        if str(node.module).partition(".")[0] == "curvote"
    }
