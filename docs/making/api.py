"""The reference of the library: a page for each public name, from its docstring."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from tests.public_names import public_names

TITLES = {
    "curvote": "Estimators, values and errors",
    "curvote.labels": "Private labels",
    "curvote.labels.regression": "Private targets",
    "curvote.mechanisms": "Mechanisms",
    "curvote.theory": "Theory and planner",
    "curvote.monitor": "Is a model still right",
    "curvote.transfer": "Transfer between servers",
    "curvote.utility": "Utility before collection",
}
MEMBERS = "   :members:\n   :inherited-members:\n"
INTRODUCTION = """What can be imported by name. All of it is typed, and the tests run
every example on these pages. ``from curvote import DirectClassifier`` imports what that
class needs and no more.
"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield each page's name and text: one for all names, and one for each of them."""
    packages: dict[str, list[str]] = defaultdict(list)
    public = public_names()
    for full, thing in sorted(public.items()):
        package, _, name = full.rpartition(".")
        packages[package].append(name)
        yield f"{_file(full, thing)}.rst", _page(package, name, thing)
    parts = "\n".join(_part(package, names) for package, names in packages.items())
    tree = _directive("toctree::", "hidden:", list(map(_file, public, public.values())))
    yield "api.rst", _title("API reference", "=") + INTRODUCTION + parts + tree


def _file(full: str, thing: Any) -> str:
    """Keep `release` and `Release` apart where files know no capitals."""
    return full if inspect.isclass(thing) else f"{full}-function"


def _part(package: str, names: list[str]) -> str:
    head = _title(f"{TITLES[package]}: ``{package}``", "-")
    said, _, code = (inspect.getdoc(import_module(package)) or "").partition("\n\n")
    if code:
        said += _directive("code-block:: python", "class: short", code.splitlines())
    table = _directive("autosummary::", "nosignatures:", names)
    return f"\n{head}{said}\n\n.. currentmodule:: {package}\n{table}"


def _directive(name: str, option: str, lines: list[str]) -> str:
    inside = "\n".join(f"   {line}" for line in lines)
    return f"\n\n.. {name}\n   :{option}\n\n{inside}\n"


def _page(package: str, name: str, thing: Any) -> str:
    kind = "autoclass" if inspect.isclass(thing) else "autofunction"
    title = f"{package}.{name}".removeprefix("curvote.")
    text = _title(title, "=") + f".. currentmodule:: {package}\n\n.. {kind}:: {name}\n"
    return text + MEMBERS if kind == "autoclass" else text


def _title(text: str, rule: str) -> str:
    return f"{text}\n{rule * len(text)}\n\n"
