"""A verb that two systems declare: its own options say which form is meant."""

from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from curvote.base.errors import UserError
from curvote.chain.commands import merge_forms

CALLED: list[tuple[str, dict[str, Any]]] = []

Sizes = Annotated[list[int], typer.Option("--size", "--s", help="Sizes.")]
Depth = Annotated[float, typer.Option("--depth", help="How deep.")]


def crowd(people: int, depth: Depth, sizes: Sizes = [], quick: bool = False) -> None:  # noqa: B006
    """Ask a crowd."""
    CALLED.append(("crowd", dict(locals())))


def houses(house: list[str], depth: Depth = 7.0, quick: bool = False) -> None:
    """Ask houses."""
    CALLED.append(("houses", dict(locals())))


@pytest.fixture
def ask() -> Any:
    """Run the verb of both forms; what was called is forgotten before."""
    CALLED.clear()
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command("ask")(merge_forms("ask", [crowd, houses]))
    return lambda *words: CliRunner().invoke(app, list(words))


def test_own_options_say_which_form_is_meant(ask: Any) -> None:
    """Each form gets what was given, and its own defaults."""
    assert ask("--people", "3", "--depth", "2", "--s", "1", "--s", "2").exit_code == 0
    assert ask("--house", "a", "--quick").exit_code == 0
    assert CALLED == [
        ("crowd", {"people": 3, "depth": 2.0, "sizes": [1, 2], "quick": False}),
        ("houses", {"house": ["a"], "depth": 7.0, "quick": True}),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "ask takes --people --depth, or --house"),
        (("--quick", "--depth", "2"), "ask takes --people --depth, or --house"),
        (("--people", "3"), "ask lacks --depth"),
        (("--size", "3"), "ask lacks --people, --depth"),
        (("--people", "3", "--house", "a"), "ask takes --people or --house, not both"),
    ],
)
def test_what_fits_no_form_is_refused(
    ask: Any, words: tuple[str, ...], said: str
) -> None:
    """With the options as they stand on the command line; nothing is called."""
    refused = ask(*words).exception
    assert isinstance(refused, UserError)
    assert said in str(refused)
    assert CALLED == []


def test_help_shows_both_forms(ask: Any) -> None:
    """What each is for, and every option."""
    shown = ask("--help").stdout
    for text in ("Ask a crowd.", "Ask houses.", "--people", "--house", "--size"):
        assert text in shown


def test_a_single_form_stays_as_it_is() -> None:
    """Nothing is wrapped where nothing is to be chosen."""
    assert merge_forms("ask", [crowd]) is crowd
