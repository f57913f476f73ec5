"""The rule of names that `make lint` runs is kept, and sees what breaks it."""

from pathlib import Path

import pytest

from tests import names


def test_the_product_keeps_the_rule() -> None:
    """No file of the product has a bare word for a name, or a riddle as first line."""
    assert [line for file in names.sources() for line in names.problems(file)] == []


@pytest.mark.parametrize(
    "text",
    [
        '"""What a part says."""\n',
        "def told() -> None: ...\n",
        "def read(given: int) -> None: ...\n",
        "class Known: ...\n",
        "class Part:\n    said: str\n",
        "for each in (): ...\n",
        "import json as other, sys as one\n",
    ],
)
def test_what_breaks_the_rule_is_named(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module docstring, a function, a parameter, a class, a field, a local."""
    monkeypatch.setattr(names, "ROOT", tmp_path)
    file = tmp_path / "part.py"
    file.write_text(text)
    (problem,) = names.problems(file)
    assert problem.startswith("part.py:")
