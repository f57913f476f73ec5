"""One verb of several forms: the options of a form's own say which one is meant.

Systems declare verbs without knowing each other. Two that declare the same one give it
two forms, each with its options; what both have may stand with either.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from curvote.errors import UserError

Form = Callable[..., Any]
Options = Mapping[str, inspect.Parameter]
_NONE = inspect.Parameter.empty


def either(verb: str, forms: Sequence[Form]) -> Form:
    """Return a Typer function that calls the form whose own options are given.

    Every option of every form is optional in it; what a form lacks is a UserError, as
    are options of two forms together. A single form is returned as it is.
    """
    if len(forms) == 1:
        return forms[0]
    known = [inspect.signature(form, eval_str=True).parameters for form in forms]
    merged = _merged(known)

    def chosen(**values: Any) -> None:
        given = {
            name: value
            for name, value in values.items()
            if value not in (merged[name].default, [], None)
        }
        at = _meant(verb, known, given)
        forms[at](**_complete(verb, known[at], given))

    chosen.__doc__ = "\n\n".join(inspect.getdoc(form) or "" for form in forms)
    chosen.__annotations__ = {n: each.annotation for n, each in merged.items()}
    chosen.__dict__["__signature__"] = inspect.Signature([*merged.values()])
    return chosen


def _merged(known: Sequence[Options]) -> dict[str, inspect.Parameter]:
    """Return the options of all forms; one of two different defaults has none."""
    found: dict[str, inspect.Parameter] = {}
    for name in dict.fromkeys(name for options in known for name in options):
        own = [options[name] for options in known if name in options]
        first = own[0].default
        alike = first is not _NONE and all(each.default == first for each in own)
        found[name] = own[0].replace(
            default=first if alike else None, kind=inspect.Parameter.KEYWORD_ONLY
        )
    return found


def _meant(verb: str, known: Sequence[Options], given: Iterable[str]) -> int:
    """Return which form has what no other has."""
    own = [
        [
            option(options[name])
            for name in given
            if name in options and _alone(name, known)
        ]
        for options in known
    ]
    meant = [at for at, names in enumerate(own) if names]
    if len(meant) > 1:
        first, second = (own[at][0] for at in meant[:2])
        raise UserError(f"{verb} takes {first} or {second}, not both.")
    if not meant:
        ways = ", or ".join(" ".join(_required(options)) for options in known)
        raise UserError(f"{verb} takes {ways}; see `curvote {verb} --help`.")
    return meant[0]


def _alone(name: str, known: Iterable[Options]) -> bool:
    return sum(name in options for options in known) == 1


def _complete(verb: str, options: Options, given: dict[str, Any]) -> dict[str, Any]:
    """Return what was given, if nothing that the form requires is missing."""
    missing = [
        option(each)
        for name, each in options.items()
        if each.default is _NONE and name not in given
    ]
    if missing:
        raise UserError(f"{verb} lacks {', '.join(missing)}.")
    return given


def _required(options: Options) -> list[str]:
    return [option(each) for each in options.values() if each.default is _NONE]


def option(parameter: inspect.Parameter) -> str:
    """Return what stands on the command line for a parameter of a Typer function."""
    for told in getattr(parameter.annotation, "__metadata__", ()):
        # Typer keeps the first name of `Option("--a", "--b")` as a default.
        names = (
            getattr(told, "default", None),
            *(getattr(told, "param_decls", ()) or ()),
        )
        for name in names:
            if str(name).startswith("--"):
                return str(name)
    return f"--{parameter.name.replace('_', '-')}"
