"""`curvote client page` writes the page, and nothing over what is there."""

import hashlib
import json
from pathlib import Path

from typer.testing import CliRunner

from curvote.base.errors import UserError
from curvote.cli.commands.client import app
from tests.browser.script import PAGE


def test_the_page_comes_with_its_digest(tmp_path: Path) -> None:
    """Byte for byte, so that whoever is given a copy can compare."""
    file = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["page", "--out", str(file), "--json"])
    assert file.read_bytes() == PAGE.read_bytes()
    told = json.loads(done.stdout)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert told == {"page": str(file), "sha256": digest}


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    """And so does a folder that is not: both in words."""
    file = tmp_path / "page.html"
    file.write_text("mine", encoding="utf-8")
    for place in (file, tmp_path / "none/page.html"):
        error = CliRunner().invoke(app, ["page", "--out", str(place)]).exception
        assert isinstance(error, UserError)
        assert str(place) in str(error)
        assert "Name another file" in str(error)
    assert file.read_text("utf-8") == "mine"
