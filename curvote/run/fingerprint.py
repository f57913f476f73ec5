"""Digests that name a result: of values, of files, and of the code that made them."""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
# Names only: they choose a module, and the chosen module counts for itself.
NEVER_COUNTED = ("__init__", "registry")
LIBRARIES = ("numpy", "scipy", "scikit-learn")
MORE_LIBRARIES = {"ingest": ("pandas", "pyarrow"), "project": ("scikit-fda",)}


def of_json(values: Any) -> str:
    """Return the SHA-256 of plain JSON values, whatever the order of their keys."""
    text = json.dumps(values, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def of_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def versions(stage: str) -> dict[str, str]:
    """Return the versions that a stage's numbers may depend on."""
    names = (*LIBRARIES, *MORE_LIBRARIES.get(stage, ()))
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"python": python} | {name: _version(name) for name in names}


@cache
def _version(name: str) -> str:
    return version(name)


def of_code(modules: Iterable[str]) -> dict[str, str]:
    """Return ``{module: digest}`` for ``modules`` and all of curvote they import.

    Imports are followed statically and transitively. Comments, docstrings, layout,
    ``__init__`` and registry files do not count.
    """
    waiting = list(modules)
    found: dict[str, str] = {}
    while waiting:
        module = waiting.pop()
        path = _source(module)
        if module in found or path is None or path.stem in NEVER_COUNTED:
            continue
        stamp = path.stat()
        found[module], imports = _parsed(path, stamp.st_mtime_ns, stamp.st_size)
        waiting += imports
    return dict(sorted(found.items()))


def _source(module: str) -> Path | None:
    """Return the file of a curvote module, or None when ``module`` is a name in one."""
    parts = module.split(".")[1:]
    stem = PACKAGE.joinpath(*parts)
    for path in (stem.with_suffix(".py"), stem / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def _parsed(path: Path, _mtime: int, _size: int) -> tuple[str, tuple[str, ...]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports = tuple(_imports(tree))
    for node in ast.walk(tree):
        _drop_docstring(node)
    digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    return digest, imports


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
        yield from (name for name in names if name.split(".")[0] == PACKAGE.name)


def _drop_docstring(node: ast.AST) -> None:
    if isinstance(
        node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    ):
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            node.body = node.body[1:] or [ast.Pass()]
