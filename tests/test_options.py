"""One table of all options; former names are read, with a line on standard error."""

import json
from pathlib import Path
from types import ModuleType

import pytest
import typer
from typer.testing import CliRunner

from curvote.base.privacy import Budget
from curvote.cli.app import app
from curvote.ledger.book import Ledger
from docs.making import glossary, options, pipelines
from docs.making.commands import leaves
from tests.invited import run


@pytest.mark.parametrize("page", [options, glossary, pipelines])
def test_a_page_is_made_from_the_program(page: ModuleType) -> None:
    """`python -m docs.making.NAME` writes it anew; every command stands in its own."""
    text = page.PAGE.read_text(encoding="utf-8")
    assert text == page.text(*[text] * (page is glossary)), f"run -m {page.__name__}"
    named = leaves(typer.main.get_command(app), "") if page is options else ()
    assert all(f"`{name.strip()}`" in text for name, *_ in named)


def test_a_former_name_of_a_cap_is_read_with_a_notice(tmp_path: Path) -> None:
    """On standard error, a line for each; what is done is the same."""
    ledger = tmp_path / "ledger.sqlite"
    for epsilon, names in (
        (3, ("--epsilon", "--delta")),
        (4, ("--cap", "--cap-delta")),
    ):
        with Ledger(ledger) as book:
            if book.cap("p") is None:
                book.set_cap("p", Budget(2, 1e-6))
        typed = ["ledger", "raise-cap", "p", f"{names[0]}={epsilon}", names[1], "1e-5"]
        done = CliRunner().invoke(app, [*typed, "--yes", "--ledger", str(ledger)])
        assert done.exit_code == 0, done.exception
        assert "called" not in done.stdout
        assert done.stderr.count(" from now on.") == 2 * (epsilon == 3)
        with Ledger(ledger) as book:
            assert book.cap("p") == Budget(epsilon, 1e-5)


@pytest.mark.parametrize("words", [["page.html"], ["--out", "page.html"]])
def test_a_page_goes_to_a_file_by_either_spelling(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON on standard output is JSON alone."""
    monkeypatch.chdir(tmp_path)
    done = run("page", *words, "--json")
    assert json.loads(done.stdout)["page"] == "page.html"
    former = "curvote: TO is an old name; write --out from now on.\n"
    assert done.stderr == (former if len(words) == 1 else "")
