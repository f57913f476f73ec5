"""The functions of curvote that run meanwhile, and which definitions they stand in.

It imports nothing of curvote: it is asked in processes that know none.
"""

import ast
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

PACKAGE = Path(__file__).resolve().parents[1] / "curvote"
# The file, its first line, and its name there.
Function = tuple[str, int, str]
_IMPORT = "<frozen importlib._bootstrap>"


def functions(call: Callable[[], object]) -> list[Function]:
    """Return the functions of curvote that run in a call, in order of file and line.

    What an import runs is left out: it counts where its value does.
    """
    seen: set[CodeType] = set()

    def enter(frame: FrameType) -> None:
        code = frame.f_code
        own = code.co_filename.startswith(f"{PACKAGE}/")
        if own and code not in seen and not _is_import(frame):
            seen.add(code)

    monitoring = getattr(sys, "monitoring", None)
    (_with_monitoring if monitoring else _with_profile)(call, enter)
    return sorted((c.co_filename, c.co_firstlineno, c.co_qualname) for c in seen)


def _is_import(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT:
            return True
        frame = frame.f_back
    return False


def _with_profile(
    call: Callable[[], object], enter: Callable[[FrameType], None]
) -> None:
    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            enter(frame)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _with_monitoring(
    call: Callable[[], object], enter: Callable[[FrameType], None]
) -> None:
    tool = sys.monitoring  # type: ignore[attr-defined]
    starts = tool.events.PY_START
    tool.use_tool_id(tool.PROFILER_ID, "tests.traced")
    tool.register_callback(
        tool.PROFILER_ID, starts, lambda code, offset: enter(sys._getframe(1))
    )
    tool.set_events(tool.PROFILER_ID, starts)
    try:
        call()
    finally:
        tool.set_events(tool.PROFILER_ID, 0)
        tool.free_tool_id(tool.PROFILER_ID)


def missing_functions(
    run: list[Function], code: Mapping[str, object], but: Mapping[str, str]
) -> list[str]:
    """Return the functions that ran and whose definition is not in a key's code.

    ``but`` are modules, and functions as module.name, that need not be there.
    """
    missing = []
    for file, line, name in run:
        path = Path(file).relative_to(PACKAGE.parent).with_suffix("")
        module = ".".join(path.parts)
        own = code.get(module)
        counted = set(own) if isinstance(own, Mapping) else set()
        excused = module in but or f"{module}.{name}" in but
        if not excused and not counted & set(definition_names(file, line)):
            missing.append(f"{module}.{name}")
    return missing


@cache
def definition_names(file: str, line: int) -> tuple[str, ...]:
    """Return what the definition may be called in which a line of a file stands."""
    found: list[str] = []
    for node in _enclosing(_tree(file).body, line):
        if isinstance(node, ast.ClassDef):
            inside = _enclosing(node.body, line)
            methods = [
                each.name for each in inside if isinstance(each, ast.FunctionDef)
            ]
            found.append(".".join((node.name, *methods)))
        elif isinstance(node, ast.FunctionDef):
            found.append(node.name)
        else:
            bound = (each for each in ast.walk(node) if isinstance(each, ast.Name))
            found += ["", *(name.id for name in bound)]
    return tuple(found)


def _enclosing(body: list[ast.stmt], line: int) -> Iterator[ast.stmt]:
    for node in body:
        first = [each.lineno for each in getattr(node, "decorator_list", [])]
        if min([node.lineno, *first]) <= line <= (node.end_lineno or 0):
            yield node


@cache
def _tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text(encoding="utf-8"))
