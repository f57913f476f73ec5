"""Edits of the code that keys are computed from, as if they stood in its files."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from curvote.pipeline.plan import definitions
from curvote.pipeline.plan.definitions import Module, parse


def edit(
    monkeypatch: pytest.MonkeyPatch, module: str, change: Callable[[str], str]
) -> None:
    """Let keys count a module with another text."""
    real = definitions._module_in

    def module_in(path: Path, name: str, stamp: tuple[int, ...]) -> Module:
        if name != module:
            return real(path, name, stamp)
        text = path.read_text(encoding="utf-8")
        assert change(text) != text
        return parse(name, change(text), package=path.stem == "__init__")

    monkeypatch.setattr(definitions, "_module_in", module_in)
    monkeypatch.setattr(definitions, "_CLOSURES", {})


def edit_function(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Let keys count a function, "module:name" or "module:Class.name", as changed."""
    module, _, names = place.partition(":")

    def change(text: str) -> str:
        tree = ast.parse(text)
        body = tree.body
        for name in names.split("."):
            (found,) = (n for n in body if getattr(n, "name", None) == name)
            assert isinstance(found, ast.FunctionDef | ast.ClassDef)
            body = found.body
        body.append(ast.parse("raise NotImplementedError").body[0])
        return ast.unparse(tree)

    edit(monkeypatch, module, change)
