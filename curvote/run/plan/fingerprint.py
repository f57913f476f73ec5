"""Digests that name a result: of values, of files, and of the code that made them."""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.run.plan.code_notes import NOTES

PACKAGE = Path(__file__).resolve().parents[2]
# Names only, as a test holds: they choose a module, and the chosen one counts for
# itself. What a package exports lazily is followed to where it stands.
NEVER_COUNTED = ("__init__", "registry")
Numbers = Callable[[], NDArray[np.int64]]
# Of a long list, as text at once.
_NUMBERS: Final = 1 << 16
LIBRARIES = ("numpy", "scipy", "scikit-learn")


def of_json(values: Any) -> str:
    """Return the SHA-256 of plain JSON values, whatever the order of their keys."""
    text = json.dumps(values, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def key(components: Mapping[str, Any]) -> str:
    """Return the name of a step: the beginning of what its components come to."""
    return of_json(components)[:32]


def of_lists(texts: Mapping[str, str], lists: Mapping[str, Numbers]) -> str:
    """Return `of_json` of texts and long lists of whole numbers, held one by one."""
    total = hashlib.sha256(b"{")
    for place, name in enumerate(sorted([*texts, *lists])):
        total.update(f"{',' * bool(place)}{json.dumps(name)}:".encode())
        parts = _parts(lists[name]()) if name in lists else [json.dumps(texts[name])]
        for part in parts:
            total.update(part.encode())
    total.update(b"}")
    return total.hexdigest()


def _parts(numbers: NDArray[np.int64]) -> Iterator[str]:
    """Yield the JSON text of a list in parts."""
    yield "["
    for start in range(0, len(numbers), _NUMBERS):
        part = numbers[start : start + _NUMBERS].tolist()
        yield "," * bool(start) + json.dumps(part, separators=(",", ":"))[1:-1]
    yield "]"


def of_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def versions(more: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions that numbers may depend on, those of ``more`` too."""
    names = (*LIBRARIES, *more)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"python": python} | {name: _version(name) for name in names}


_version = cache(version)


def of_code(modules: Iterable[str]) -> dict[str, str]:
    """Return ``{module: digest}`` for ``modules`` and all of curvote they import.

    Imports are followed statically and transitively, through lazy exports too.
    Comments, docstrings, layout, ``__init__`` and registry files do not count.
    """
    waiting = list(modules)
    seen: set[str] = set()
    found: dict[str, str] = {}
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        path = _source(module)
        if path is None:
            waiting += _exported(module)
        elif path.stem == "__init__":
            waiting += _exports(path).values()
        elif path.stem not in NEVER_COUNTED:
            stamp = path.stat()
            found[module], imports = _parsed(path, stamp.st_mtime_ns, stamp.st_size)
            waiting += imports
    NOTES.keep()
    return dict(sorted(found.items()))


def _exported(name: str) -> Iterator[str]:
    """Yield where ``package.name`` stands, if the package exports such a name."""
    package, _, last = name.rpartition(".")
    path = _source(package) if package else None
    if path is not None and path.stem == "__init__" and last in _exports(path):
        yield _exports(path)[last]


def _exports(path: Path) -> dict[str, str]:
    """Return ``{name: where it stands}`` for what an ``__init__`` exports lazily.

    That is a module, or again a name that a package exports.
    """
    package = ".".join((PACKAGE.name, *path.parent.relative_to(PACKAGE).parts))
    found = {}
    stamp = path.stat()
    for name, inside in _promised(path, stamp.st_mtime_ns, stamp.st_size).items():
        module = f"{package}.{inside}"
        found[name] = module if _is_file(module) else f"{module}.{name}"
    return found


@cache
def _promised(path: Path, _mtime: int, _size: int) -> dict[str, str]:
    """Return the names given to `curvote.lazy.exports`, as they are written."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "exports":
            promised: dict[str, str] = ast.literal_eval(node.args[1])
            return promised
    return {}


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
    before = NOTES.find(path)
    if before is not None:
        return before
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports = tuple(_imports(tree))
    for node in ast.walk(tree):
        _drop_docstring(node)
    digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    NOTES.add(path, digest, imports)
    return digest, imports


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module] if _is_file(node.module) else []
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name for name in names if name.split(".")[0] == PACKAGE.name)


def _is_file(module: str) -> bool:
    """Say whether it is a module with code of its own, and no package of exports."""
    path = _source(module)
    return path is not None and path.stem != "__init__"


def _drop_docstring(node: ast.AST) -> None:
    if isinstance(
        node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    ):
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            node.body = node.body[1:] or [ast.Pass()]
