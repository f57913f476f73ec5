"""Verbs of several forms: the options given on a command line choose the form.

Systems declare verbs without knowing each other. Two that declare the same one give it
two forms, each with its options; what both have may stand with either.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from curvote.base.errors import UserError
from curvote.chain.registry import SYSTEMS

Form = Callable[..., Any]
Options = Mapping[str, inspect.Parameter]
_NONE = inspect.Parameter.empty


def merge_forms(verb: str, forms: Sequence[Form]) -> Form:
    """Return a Typer function that calls the form whose options are given.

    Every option of every form is optional in it; what a form lacks is a UserError, as
    are options of two forms together. A single form is returned as it is.
    """
    if len(forms) == 1:
        return forms[0]
    signatures = [inspect.signature(form, eval_str=True).parameters for form in forms]
    merged: dict[str, inspect.Parameter] = {}
    for name in dict.fromkeys(name for options in signatures for name in options):
        same = [options[name] for options in signatures if name in options]
        first = same[0].default
        equal = first is not _NONE and all(p.default == first for p in same)
        # Unequal defaults become None.
        default, kind = first if equal else None, inspect.Parameter.KEYWORD_ONLY
        merged[name] = same[0].replace(default=default, kind=kind)

    def call_form(**values: Any) -> None:
        given_options = {
            name: value
            for name, value in values.items()
            if value not in (merged[name].default, [], None)
        }
        at = _select_form(verb, signatures, given_options)
        missing = [
            option_flag(parameter)
            for name, parameter in signatures[at].items()
            if parameter.default is _NONE and name not in given_options
        ]
        if missing:
            raise UserError(f"{verb} lacks {', '.join(missing)}.")
        forms[at](**given_options)

    call_form.__doc__ = "\n\n".join(inspect.getdoc(form) or "" for form in forms)
    call_form.__annotations__ = {n: p.annotation for n, p in merged.items()}
    call_form.__dict__["__signature__"] = inspect.Signature([*merged.values()])
    return call_form


def _select_form(
    verb: str, signatures: Sequence[Options], given_options: Iterable[str]
) -> int:
    """Return the number of the form whose exclusive options are given."""
    exclusive_options = [
        [
            option_flag(options[name])
            for name in given_options
            if name in options and sum(name in form for form in signatures) == 1
        ]
        for options in signatures
    ]
    matches = [at for at, names in enumerate(exclusive_options) if names]
    if len(matches) > 1:
        first, second = (exclusive_options[at][0] for at in matches[:2])
        raise UserError(f"{verb} takes {first} or {second}, not both.")
    if not matches:
        usages = ", or ".join(
            " ".join(option_flag(p) for p in options.values() if p.default is _NONE)
            for options in signatures
        )
        raise UserError(f"{verb} takes {usages}; see `curvote {verb} --help`.")
    return matches[0]


def option_flag(parameter: inspect.Parameter) -> str:
    """Return the command-line flag of a parameter of a Typer function."""
    for marker in getattr(parameter.annotation, "__metadata__", ()):
        # Typer keeps the first name of `Option("--a", "--b")` as a default.
        names = (
            getattr(marker, "default", None),
            *(getattr(marker, "param_decls", ()) or ()),
        )
        for name in names:
            if str(name).startswith("--"):
                return str(name)
    return f"--{parameter.name.replace('_', '-')}"


def system_commands() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield (verb, Typer function) of every system that has some.

    They stand in a module ``commands`` of the system's package, names only:
    ``COMMANDS = {verb: "module:function"}``. The help of the command line asks for all
    of them, so these modules import what is heavy inside functions. A verb of two
    systems has two forms.
    """
    forms: dict[str, list[Callable[..., Any]]] = {}
    for package in dict.fromkeys(SYSTEMS.values()):
        if find_spec(f"{package}.commands"):
            declared = import_module(f"{package}.commands").COMMANDS
            for verb, place in declared.items():
                module, _, name = place.partition(":")
                function = getattr(import_module(module), name)
                forms.setdefault(verb, []).append(function)
    for verb, functions in forms.items():
        yield verb, merge_forms(verb, functions)


def align_columns(table: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of equally many cells as lines."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
