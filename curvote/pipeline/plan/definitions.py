"""Definitions of curvote's code: which of them a function reaches, and their digests.

A definition is what a module binds at its top level: a function, a class, a value. What
else runs at the module's import is one definition more, which has no name and counts
wherever the module is imported. Names are followed to where they are bound: through
imports (those inside of functions, too), modules as values, lazy exports, and texts
that name a module. A class counts whole, with its bases: which of its methods an object
is asked for cannot be seen. What a setting names is for the caller to name
(`curvote.pipeline.plan.expand`).

Comments, docstrings, layout and annotations that nothing reads do not count, nor do
``__init__`` files, which hold names only, as a test says, nor the tables of a registry.
"""

import ast
import contextlib
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from symtable import SymbolTable, symtable
from typing import Any, Final, NamedTuple

PACKAGE = Path(__file__).resolve().parents[2]
# So much of a SHA-256 tells two versions of a definition apart.
DIGITS: Final = 12
# Decorators that read a function's annotations.
_READERS: Final = {"register", "computed_field", "validate_call"}
_PATH: Final = re.compile(rf"{PACKAGE.name}(\.\w+)+(:\w+)?")
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


class Module(NamedTuple):
    """The definitions of a module by name, and what its imports bind.

    A definition is its digests by part, and the paths of what it refers to. The part ""
    is all but the methods of a class, each of which is a part; the definition "" is
    what else runs at import. ``imports`` maps a name to the path of what it means,
    ``passed`` are those of them that only other modules use, ``exports`` the paths of
    what a package exports lazily.
    """

    definitions: Mapping[str, tuple[Mapping[str, str], Sequence[str]]] = {}
    imports: Mapping[str, str] = {}
    passed: Sequence[str] = ()
    exports: Mapping[str, str] = {}
    package: bool = False


Code = dict[str, dict[str, str]]


def of_code(roots: Iterable[str]) -> Code:
    """Return ``{module: {definition: digest}}`` for all of curvote that roots reach.

    A root is "module:name", or a module with all that it defines. A method is called
    Class.name; what else runs at a module's import has no name.
    """
    paths = tuple(sorted({root.replace(":", ".") for root in roots}))
    closure = _CLOSURES.get((PACKAGE, paths))
    if closure is None or not closure.is_fresh():
        closure = _CLOSURES[PACKAGE, paths] = _Closure()
        closure.follow(paths)
        NOTES.keep()
    return closure.digests


def of_plugin(place: str) -> Code:
    """Return ``{module: {"": digest}}`` for all of the package of a plug-in's place.

    Nothing for a place in curvote. Which of its functions a plug-in calls is not
    followed: any change in its package counts.
    """
    top = place.partition(":")[0].partition(".")[0]
    spec = None if top == PACKAGE.name else find_spec(top)
    digests: Code = {}
    for folder in map(Path, (spec and spec.submodule_search_locations) or ()):
        for path in sorted(folder.rglob("*.py")):
            module = ".".join((top, *path.relative_to(folder).with_suffix("").parts))
            digests[module] = {"": _file_digest(path)}
    if spec and spec.origin and not digests:  # a single module
        digests[top] = {"": _file_digest(Path(spec.origin))}
    return digests


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]


class _Closure:
    """All that some paths reach, and the files in which that stands."""

    def __init__(self) -> None:
        self.digests: Code = {}
        self._stamps: dict[Path, tuple[int, ...]] = {}
        self._modules: dict[str, Module | None] = {}
        self._paths: set[str] = set()
        self._imports: set[str] = set()

    def is_fresh(self) -> bool:
        """Say whether every file is as it was read."""
        with contextlib.suppress(FileNotFoundError):
            return all(_stamp(path) == stamp for path, stamp in self._stamps.items())
        return False

    def follow(self, paths: Iterable[str]) -> None:
        """Add what paths reach, transitively."""
        waiting = list(paths)
        while waiting:
            path = waiting.pop()
            if path not in self._paths:
                self._paths.add(path)
                waiting += self._targets(path)
        self.digests = {
            place: dict(sorted(digests.items()))
            for place, digests in sorted(self.digests.items())
        }

    def _targets(self, path: str) -> Iterator[str]:
        """Add what a path means; yield the paths that this names."""
        module, place, names = self._locate(path)
        name, *attributes = names or [""]
        for bindings in (module.exports, module.imports):
            if name in bindings:
                yield ".".join((bindings[name], *attributes))
        if not names:
            yield from (f"{place}.{name}" for name in module.definitions if name)
            yield from (module.imports[name] for name in module.passed)
        elif name in module.definitions:
            parts, paths = module.definitions[name]
            self.digests.setdefault(place, {}).update(
                {f"{name}.{part}".strip("."): digest for part, digest in parts.items()}
            )
            yield from paths
        yield from self._run_import(module, place)

    def _run_import(self, module: Module, place: str) -> Iterator[str]:
        """Add what the import of a module runs; yield the paths that this names."""
        waiting = [(module, place)]
        while waiting:
            module, place = waiting.pop()
            if place in self._imports:
                continue
            self._imports.add(place)
            if "" in module.definitions:
                parts, paths = module.definitions[""]
                self.digests.setdefault(place, {}).update(parts)
                yield from paths
            for path in module.imports.values():
                source, source_place, names = self._locate(path)
                if names and names[0] in source.exports:
                    export = source.exports[names[0]]
                    source, source_place, _ = self._locate(export)
                waiting.append((source, source_place))

    def _locate(self, path: str) -> tuple[Module, str, list[str]]:
        """Return the module in which a path stands, and the names that are left."""
        place, *names = path.split(".")
        module = self._module(place) or Module()
        while module.package and names:
            member = self._module(f"{place}.{names[0]}")
            if member is None:
                break
            module, place = member, f"{place}.{names.pop(0)}"
        return module, place, names

    def _module(self, name: str) -> Module | None:
        """Return a module of curvote; None where none has the name."""
        if name not in self._modules:
            self._modules[name], path = None, _file(name)
            if path is not None:
                self._stamps[path] = stamp = _stamp(path)
                self._modules[name] = _module_in(path, name, stamp)
        return self._modules[name]


_CLOSURES: Final[dict[tuple[Path, tuple[str, ...]], _Closure]] = {}


def _file(module: str) -> Path | None:
    """Return the file of a curvote module, or None when ``module`` is a name in one."""
    top, *parts = module.split(".")
    stem = PACKAGE.joinpath(*parts)
    if top == PACKAGE.name:
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                return path
    return None


def _stamp(path: Path) -> tuple[int, ...]:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


@cache
def _module_in(path: Path, name: str, _stamp: tuple[int, ...]) -> Module:
    module = NOTES.find(path)
    if module is None:
        text = path.read_text(encoding="utf-8")
        module = parse(name, text, package=path.stem == "__init__")
        NOTES.add(path, module)
    return module


def parse(name: str, text: str, *, package: bool = False) -> Module:
    """Return the definitions of a module from its text.

    Of a package there are but its lazy exports. The tables of a registry only name what
    a setting chooses, and the chosen one counts for itself.
    """
    if not package:
        return _Parser(name, text).module()
    for node in ast.walk(ast.parse(text)):  # the names given to `base.lazy.exports`
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "exports":
            places: dict[str, str] = ast.literal_eval(node.args[1])
            exports = {
                n: f"{place if _is_own(place) else f'{name}.{place}'}.{n}"
                for n, place in places.items()
            }
            return Module(exports=exports, package=True)
    return Module(package=True)


class _Parser:
    """A module on the way to its definitions."""

    def __init__(self, name: str, text: str) -> None:
        self._name, self._lines = name, text.split("\n")
        self._is_registry = name.rpartition(".")[2] == "registry"
        self._imports: dict[str, str] = {}
        self._statements: dict[str, list[ast.stmt]] = {}
        tree = ast.parse(text)
        nodes = [*ast.walk(tree)]
        self._uses = {node.id for node in nodes if isinstance(node, ast.Name)}
        for node in nodes:
            _strip(node)
        self._read(tree.body)

    def module(self) -> Module:
        """Return what the module defines, and what of curvote it imports."""
        imports = {n: path for n, path in self._imports.items() if _is_own(path)}
        definitions = {n: self._definition(s) for n, s in self._statements.items()}
        return Module(definitions, imports, sorted(imports.keys() - self._uses))

    def _read(self, body: Iterable[ast.stmt]) -> None:
        """Enter each statement under the names that it binds, or under none."""
        for node in body:
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                self._read(node.orelse)
                continue
            if self._is_registry and _is_name_table(node):
                continue
            symbols = self._table(node).get_symbols()
            names = {symbol.get_name() for symbol in symbols if symbol.is_assigned()}
            for name in sorted(names | ({""} if _acts(node) else set())):
                self._statements.setdefault(name, []).append(node)
            names = {symbol.get_name() for symbol in symbols if symbol.is_imported()}
            paths = _import_paths(ast.walk(node)).items() if names else ()
            self._imports |= {name: path for name, path in paths if name in names}

    def _table(self, node: ast.stmt) -> SymbolTable:
        """Return which names are whose in a statement."""
        decorators = [part.lineno for part in getattr(node, "decorator_list", [])]
        lines = self._lines[min([node.lineno, *decorators]) - 1 : node.end_lineno]
        indent = ["if 1:"] if lines[0].startswith(" ") else []
        return symtable("\n".join(indent + lines), "", "exec")

    def _definition(self, nodes: list[ast.stmt]) -> tuple[dict[str, str], list[str]]:
        """Return what stands in some statements, a class with a part a method."""
        parts: dict[str, list[tuple[ast.stmt, set[str]]]] = {"": []}
        for node in nodes:
            names = _local_names(self._table(node))
            if isinstance(node, ast.ClassDef):
                for method in [n for n in node.body if isinstance(n, FUNCTIONS)]:
                    code = method, _local_names(self._table(method))
                    parts.setdefault(method.name, []).append(code)
                node.body = [n for n in node.body if not isinstance(n, FUNCTIONS)]
            parts[""].append((node, names))
        digests, paths = {}, set[str]()
        for part, statements in parts.items():
            text, references = "", set[tuple[str, str]]()
            for node, names in statements:
                text += ast.dump(node)
                references |= set(self._references(node, names))
            text += str(sorted(references))
            paths |= {path for _, path in references}
            digests[part] = hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
        return digests, sorted(filter(_is_own, paths))

    def _references(self, node: ast.stmt, local: set[str]) -> Iterator[tuple[str, str]]:
        """Yield each name to which a statement refers, and the path of what it means.

        Names that are ``local`` mean nothing but what an import beside them binds.
        """
        nodes = _running_nodes(node)
        paths = _import_paths(nodes)
        inner = {part.value for part in nodes if isinstance(part, ast.Attribute)}
        for part in nodes:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                if _PATH.fullmatch(part.value):
                    yield part.value, part.value.replace(":", ".")
            elif isinstance(part, ast.Name | ast.Attribute) and part not in inner:
                text = part.id if isinstance(part, ast.Name) else ast.unparse(part)
                name, dot, attributes = text.partition(".")
                if name in paths:
                    yield text, f"{paths[name]}{dot}{attributes}"
                if name not in local and name in self._imports:
                    yield text, f"{self._imports[name]}{dot}{attributes}"
                if name not in local and name in self._statements:
                    yield name, f"{self._name}.{name}"


def _is_name_table(node: ast.stmt) -> bool:
    """Return whether a statement binds a name to a mapping that is written out."""
    value = isinstance(node, ast.Assign | ast.AnnAssign) and node.value
    if not isinstance(value, ast.Dict):
        return False
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True


def _is_own(path: str) -> bool:
    return path.partition(".")[0] == PACKAGE.name


def _local_names(table: SymbolTable) -> set[str]:
    """Return the names in a statement that are nowhere in it the module's."""
    tables = [table]
    for outer in tables:
        tables += outer.get_children()
    symbols = [(scope, symbol) for scope in tables for symbol in scope.get_symbols()]
    wide = {
        symbol.get_name()
        for scope, symbol in symbols
        if symbol.is_referenced()
        and (symbol.is_global() or scope.get_type() != "function")
    }
    return {symbol.get_name() for _, symbol in symbols} - wide


def _import_paths(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Return the names that imports among some nodes bind, and what these mean."""
    paths: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            for name in node.names:
                paths[name.asname or name.name] = f"{node.module}.{name.name}"
        elif isinstance(node, ast.Import):
            for name in node.names:
                top = name.name.partition(".")[0]
                paths[name.asname or top] = name.name if name.asname else top
    return paths


def _acts(node: ast.stmt) -> bool:
    """Say whether a statement does more than to bind names, when it runs."""
    if isinstance(node, FUNCTIONS):
        return any("register" in ast.unparse(part) for part in node.decorator_list)
    if isinstance(node, ast.Assign):
        return not all(isinstance(t, ast.Name | ast.Tuple) for t in node.targets)
    if isinstance(node, ast.AnnAssign | ast.AugAssign):
        return not isinstance(node.target, ast.Name)
    return not isinstance(node, ast.ClassDef | ast.Import | ast.ImportFrom | ast.Pass)


def _running_nodes(node: ast.AST) -> list[ast.AST]:
    """Return the nodes of code that runs: of a field its kind, but in a dataclass."""
    nodes = [node]
    for part in nodes:
        parts = [*ast.iter_child_nodes(part)]
        if isinstance(part, ast.ClassDef) and any(
            "dataclass" in ast.unparse(decorator) for decorator in part.decorator_list
        ):
            fields = [child for child in parts if isinstance(child, ast.AnnAssign)]
            parts = [child for child in parts if child not in fields]
            parts += [child.value for child in fields if child.value]
        elif isinstance(part, ast.AnnAssign):
            for child in ast.walk(part.annotation):
                if isinstance(child, ast.Constant) and isinstance(child.value, str):
                    with contextlib.suppress(SyntaxError):
                        parts.append(ast.parse(child.value, mode="eval"))
        nodes += parts
    return nodes


def _strip(node: ast.AST) -> None:
    """Take texts that are no values out of a node, and annotations nobody reads."""
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list):
            code = [
                statement
                for statement in body
                if not (
                    isinstance(statement, ast.Expr)
                    and isinstance(statement.value, ast.Constant)
                )
            ]
            setattr(node, name, code or [ast.Pass() for _ in body[:1]])
            for statement in code:
                if isinstance(statement, ast.AnnAssign) and not hasattr(node, "bases"):
                    statement.annotation = ast.Constant(...)
    if isinstance(node, FUNCTIONS):
        words = re.findall(r"\w+", " ".join(map(ast.unparse, node.decorator_list)))
        if _READERS.isdisjoint(words):
            node.returns = None
            for part in ast.walk(node.args):
                if isinstance(part, ast.arg):
                    part.annotation = None


@dataclass
class Notes:
    """What parsing gave, kept in a file among a project's state; None: nowhere.

    To parse hundreds of files takes longer than all else that a plan does. A note
    counts only for the very file, by its inode, its size and both of its times, and for
    the same way of parsing under the same Python.
    """

    file: Path | None = None
    modules: dict[str, Any] = field(default_factory=dict)
    new: bool = False

    def open(self, file: Path) -> None:
        """Go on with the notes in a file, if it has any that count."""
        if file == self.file:
            return
        self.file, self.new = file, False
        self.modules = {}
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            text = json.loads(file.read_text(encoding="utf-8"))
            self.modules = dict(text["files"]) if text["by"] == _by() else {}

    def find(self, path: Path) -> Module | None:
        """Return the module in a file as it was noted; None where it was not."""
        note = self.modules.get(str(path))
        if note is None or note[0] != [*_stamp(path)]:
            return None
        return Module(*note[1:])

    def add(self, path: Path, module: Module) -> None:
        """Remember what parsing a file gave, until `keep` writes it down."""
        self.modules[str(path)] = [[*_stamp(path)], *module]
        self.new = True

    def keep(self) -> None:
        """Write the notes down, where there are new ones and a folder to take them."""
        if self.file is None or not self.new:
            return
        self.new = False
        temporary = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            temporary.write_text(json.dumps({"by": _by(), "files": self.modules}))
            temporary.replace(self.file)


NOTES = Notes()


@cache
def _by() -> list[Any]:
    """Return what a note depends on beside the file: Python, and how it is parsed."""
    return [sys.version, *_stamp(Path(__file__))]
