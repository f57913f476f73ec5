"""The pages on structure are true: named files exist, examples run as they stand."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.house import ROOT, House, copied, driven, run_of

PICTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
EXAMPLES = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def _blocks(first: str) -> Iterator[tuple[str, str]]:
    """Yield (what follows the mark, text) of the Python blocks of one kind."""
    for language, text in BLOCK.findall(EXAMPLES):
        mark, _, rest = text.partition("\n")
        if language == "python" and mark.startswith(f"# {first}"):
            yield mark.removeprefix(f"# {first}").strip(), rest


_TRIED = dict(
    zip(
        ("mechanism", "learner", "message"),
        (text for _, text in _blocks("try")),
        strict=True,
    )
)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Return a copy of the product with everything that the page adds."""
    made = copied(tmp_path_factory.mktemp("house"))
    for name, text in _blocks("file:"):
        path = made.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for name, line in _blocks("add to:"):
        path = made.root / name
        before, end, after = path.read_text().partition("\n}\n")
        path.write_text(f"{before}\n{line.rstrip()}{end}{after}")
    (yaml,) = (text for language, text in BLOCK.findall(EXAMPLES) if language == "yaml")
    (made.project / "pipelines.yaml").write_text(yaml)
    return made


def test_every_file_that_the_page_names_is_there() -> None:
    """A path in it is a file of the house, or one that the page itself adds."""
    added = {name for name, _ in _blocks("file:")}
    named = set(re.findall(r"`([\w/]+\.(?:py|toml|md))`", PICTURE + EXAMPLES))
    assert len(named) > 20
    places = (ROOT, ROOT / "curvote")
    absent = {n for n in named if not any((at / n).exists() for at in places)}
    assert absent - added == {"commands.py", "messages.py", "stages.py", "system.py"}


def test_the_picture_names_every_part() -> None:
    """Each package of curvote stands in it, and nothing that there is not."""
    text = PICTURE.partition("```\n")[2].partition("```")[0]
    packages = {path.parent.name for path in (ROOT / "curvote").glob("*/__init__.py")}
    assert packages | {"flows", "tasks"} == set(re.findall(r"(\w+)/", text))


@pytest.fixture(scope="module")
def told(house: House) -> Any:
    """Run all that the page shows in one process of the copy."""
    listed = ["list", "--json"], ["plan", "steps", "--json"]
    *examples, run, known, planned = driven(
        house, *_TRIED.values(), run_of("steps"), *listed
    )
    for one in (run, known, planned):
        assert not one["code"], one["code"]
    parsed = [json.loads(one["out"]) for one in (run, known, planned)]
    return dict(zip(_TRIED, examples, strict=True)), *parsed


@pytest.mark.parametrize("name", _TRIED)
def test_an_example_runs_as_it_stands(told: Any, name: str) -> None:
    """With the names that it imports itself and no others."""
    examples, *_ = told
    assert not examples[name]["code"], examples[name]["code"]


def test_what_was_added_makes_a_pipeline(told: Any) -> None:
    """Data set, learner and system together; the hint learns what there is to learn."""
    _, rows, known, planned = told
    assert {"hint", "mrma"} <= {row["method"] for row in rows}
    assert {row["learner"] for row in rows if row["method"] == "mrma"} == {"two_steps"}
    assert "rounded" in known["mechanisms"]
    assert "two_steps" in known["learners"]
    assert "steps" in known["sources"]
    assert {row["action"] for row in planned} == {"reuse"}
