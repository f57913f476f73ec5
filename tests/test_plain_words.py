"""Lines that people read hold no word of the house's own that the glossary lacks."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from curvote.cli.app import app

ROOT = Path(__file__).parents[1]
HOUSE_WORDS = r"\b(arm|twin|wing|fold|outside)(?:s|ed)?\b|\bpass(?:ed|es) (over)\b"
# Code spans, keys such as direct.arm, and places of a legend are no words.
CODE = r"`[^`]*`|\w+(?:\.\w+)+|\boutside (?:upper|lower) \w+|\{[{%].*?[%}]\}"
TERMS = re.findall(r"\*\*(\w+)\*\*", (ROOT / "docs/glossary.md").read_text("utf-8"))


def house_words(text: str) -> list[str]:
    """Return the words of a text that a stranger could not look up."""
    found = re.findall(HOUSE_WORDS, re.sub(CODE, "", text), re.IGNORECASE)
    return [word for pair in found for word in pair if word and word not in TERMS]


def sentences(code: str) -> Iterator[tuple[int, str]]:
    """Yield the texts of some code that are more than a name, docstrings left out."""
    silent = set[int]()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Expr):
            silent.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            texts = [part for part in node.values if isinstance(part, ast.Constant)]
            silent |= set(map(id, texts))
            yield node.lineno, " {} ".join(str(part.value) for part in texts)
        elif isinstance(node, ast.Constant) and id(node) not in silent:
            yield node.lineno, text_of(node.value)


def text_of(value: Any) -> str:
    """Return what in a value is more than a name; keys are a program's."""
    if isinstance(value, dict | list):
        return "; ".join(map(text_of, [*getattr(value, "values", lambda: value)()]))
    return value if isinstance(value, str) and " " in value else ""


def helps(command: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield the help of a command, of its parameters and of its parts."""
    words = (getattr(parameter, "help", "") or "" for parameter in command.params)
    yield name, "; ".join([command.help or "", *words])
    for part, own in getattr(command, "commands", {}).items():
        yield from helps(own, f"{name} {part}")


def test_no_line_holds_a_word_that_the_glossary_lacks() -> None:
    """Refusals, templates, helps and recorded lines; a word with an entry is a term."""
    printed = [*helps(typer.main.get_command(app), "curvote")]
    for file in ("tests/pins/recorded/commands.json", "docs/pipelines.schema.json"):
        document = json.loads((ROOT / file).read_text("utf-8"))
        printed += [(f"{file} {key}", text_of(own)) for key, own in document.items()]
    for path in (
        p for part in ("curvote", "flows") for p in (ROOT / part).rglob("*.*")
    ):
        if path.suffix in {".j2", ".html"}:
            printed.append((str(path), path.read_text("utf-8")))
        elif path.suffix == ".toml":
            printed.append((str(path), text_of(tomllib.loads(path.read_text("utf-8")))))
        elif path.suffix == ".py":
            code = path.read_text("utf-8")
            if re.search(r"\b(arm|twin|wing|fold|outside|pass(ed|es))", code):
                printed += [(f"{path}:{line}", text) for line, text in sentences(code)]
    assert not [f"{place}: {text}" for place, text in printed if house_words(text)]


def test_such_a_line_would_be_found() -> None:
    """In a sentence, in one with numbers, in a heading; not in keys and names."""
    code = (
        'say(f"{n} lie outside", 2)\nx = f"take arm {m}"\n"twins"\ny = "a twin falls"'
    )
    lines = [line for line, text in sentences(code) if house_words(text)]
    assert sorted(lines) == [1, 2, 4]
    text = "<h2>Wings</h2> {{ data.outside }} `arm`: passed over a firing, folded in"
    assert house_words(text) == ["Wing", "over", "fold"]
    assert not house_words("write direct.arm; shoulders, an outsider, twofold")
