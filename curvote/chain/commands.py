"""Command-line verbs of systems, collected without importing the systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from curvote.chain.forms import merge_forms
from curvote.chain.registry import SYSTEMS


def system_commands() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield (verb, Typer function) of every system that has some.

    They stand in a module ``commands`` of the system's package, names only:
    ``COMMANDS = {verb: "module:function"}``. The help of the command line asks for all
    of them, so these modules import what is heavy inside functions. A verb of two
    systems has two forms.
    """
    forms: dict[str, list[Callable[..., Any]]] = {}
    for package in SYSTEMS.values():
        if find_spec(f"{package}.commands"):
            declared = import_module(f"{package}.commands").COMMANDS
            for verb, place in declared.items():
                module, _, name = place.partition(":")
                function = getattr(import_module(module), name)
                forms.setdefault(verb, []).append(function)
    for verb, functions in forms.items():
        yield verb, merge_forms(verb, functions)
