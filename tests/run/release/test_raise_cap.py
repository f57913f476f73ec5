"""`curvote ledger raise-cap`: the only way to a higher cap, said aloud and kept."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.cli.commands import ledger as cli_ledger
from curvote.ledger.book import Ledger

TWO = Budget(2, 1e-6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a ledger with a cap of 2 for population p, and two clients."""
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.set_cap("p", TWO)
        ledger.reserve("r", ["a", "b"], Budget(1), population="p", facts={})
    return tmp_path / "ledger.sqlite"


def raising(path: Path, *words: str) -> Result:
    """Run the command on a ledger of its own."""
    given = ["raise-cap", *words, "--ledger", str(path)]
    return CliRunner().invoke(cli_ledger.app, given)


def test_raising_a_cap_says_what_it_does_and_is_kept(path: Path) -> None:
    """Without --yes or a terminal nothing happens; a lower cap is refused."""
    words = ["p", "--cap", "3"]
    error = raising(path, *words).exception
    assert isinstance(error, UserError)
    assert "nobody is here to be asked" in str(error)
    with Ledger(path) as ledger:
        assert ledger.cap("p") == TWO
        before = ledger.head()
    done = raising(path, *words, "--yes")
    assert done.exit_code == 0
    assert "from epsilon 2, delta 1e-06 to epsilon 3, delta 1e-06" in done.stdout
    assert "each of its 2 clients" in done.stdout
    with Ledger(path) as ledger:
        assert ledger.cap("p") == Budget(3, 1e-6)
        assert ledger.head() != before
        assert ledger.problems() == []
    for more, said in (
        (["--cap", "1"], "does not raise it"),
        (["--cap", "4", "--cap-delta", "1e-9"], "does not raise it"),
        (["--cap", "4", "--cap-delta", "0.9"], "at most 0.0001"),
        (["--cap", "nan"], "epsilon"),
    ):
        error = raising(path, "p", *more, "--yes").exception
        assert isinstance(error, UserError)
        assert said in str(error)


def test_raising_a_cap_asks_on_a_terminal(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A no leaves everything as it is, a yes raises it."""
    answers = iter([False, True])

    def confirm(question: str, *, abort: bool) -> None:
        assert question == "Raise it?"
        if not next(answers):
            raise typer.Abort

    monkeypatch.setattr(cli_ledger, "_is_on_terminal", lambda: True)
    monkeypatch.setattr(typer, "confirm", confirm)
    words = ["p", "--cap", "3"]
    assert raising(path, *words).exit_code == 1
    with Ledger(path) as ledger:
        assert ledger.cap("p") == TWO
    assert raising(path, *words).exit_code == 0
    with Ledger(path) as ledger:
        assert ledger.cap("p") == Budget(3, 1e-6)


def test_what_has_no_cap_is_not_raised(path: Path) -> None:
    """A population without releases gets the cap of pipelines.yaml with its first."""
    for name, said in (("q", "has no cap yet"), ("pp", "Did you mean 'p'")):
        words = [name, "--cap", "3", "--yes"]
        error = raising(path, *words).exception
        assert isinstance(error, UserError)
        assert said in str(error)
