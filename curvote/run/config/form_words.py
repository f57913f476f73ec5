"""What pydantic finds wrong with a value, as what it must be."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from curvote.run.config.yaml_lines import in_line

_WHOLE: Final = "a whole number"
_NUMBER: Final = "a number"
_SWITCH: Final = "true or false"
_TEXT: Final = "a text"
_LIST: Final = "a list, such as [a, b]"
_MAPPING: Final = "a mapping of settings, such as {{name: value}}"
# By pydantic's names of errors; {…} is what it knows of the limit.
_MUST_BE: Final[Mapping[str, str]] = {
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": "a smaller whole number",
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "a finite number",
    "bool_type": _SWITCH,
    "bool_parsing": _SWITCH,
    "string_type": _TEXT,
    "string_too_short": "a text that is not empty",
    "string_too_long": "a text of at most {max_length} characters",
    "string_pattern_mismatch": "a text of the form {pattern}",
    "list_type": _LIST,
    "tuple_type": _LIST,
    "dict_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "greater_than": "above {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "below {lt}",
    "less_than_equal": "{le} or less",
    "too_short": "a list of {min_length} or more",
    "too_long": "a list of {max_length} or fewer",
}
_KINDS: Final[Mapping[Any, str]] = {
    int: _WHOLE,
    float: _NUMBER,
    bool: _SWITCH,
    str: _TEXT,
    list: _LIST,
    tuple: _LIST,
}
_NUMERIC: Final = {name for name, said in _MUST_BE.items() if said in (_WHOLE, _NUMBER)}
_CHOICE: Final = ("literal_error", "enum")


def kind_in_words(kind: Any) -> str:
    """Return what a value of a Python type is called, nothing for another one."""
    return _KINDS.get(kind, "")


def said_of(details: Sequence[Any]) -> str:
    """Return what is wrong with one value: what it must be, and what was given.

    ``details`` are pydantic's errors at one place, such as one for each of the kinds
    that a value may have.
    """
    wanted = list(dict.fromkeys(filter(None, map(_wanted, details))))
    own = [_own(detail) for detail in details if not _wanted(detail)]
    if own:
        return f"{own[0]} {_given(details[0])}."
    return f"must be {' or '.join(wanted)} {_given(details[0])}.{_hint(details)}"


def _wanted(detail: Any) -> str:
    if detail["type"] in _CHOICE:
        return str(detail["ctx"]["expected"])
    limits = detail.get("ctx", {}).items()
    known = {name: f"{v:g}" if isinstance(v, float) else v for name, v in limits}
    return _MUST_BE.get(detail["type"], "").format(**known)


def _own(detail: Any) -> str:
    """Return what a check of ours says, which needs no other words."""
    if detail["type"] == "invalid_key":
        return "no name of a setting; in a number write a point, no comma"
    return str(detail["msg"]).removeprefix("Value error, ").rstrip(".")


def shown(value: Any) -> str:
    """Return a value as messages show it: a text in quotes, others as YAML, short."""
    plain = isinstance(value, bool | dict | list)
    said = "nothing" if value is None else in_line(value) if plain else repr(value)
    return said if len(said) <= 60 else said[:57] + "..."


def _given(detail: Any) -> str:
    return f"(given: {shown(detail['input'])})"


def _hint(details: Sequence[Any]) -> str:
    """Return what to write, where that can be told from what was given."""
    given, kinds = details[0]["input"], {detail["type"] for detail in details}
    if isinstance(given, str) and kinds & _NUMERIC:
        return _as_number(given)
    if kinds == {"list_type"} and isinstance(given, str | int | float):
        return f" Write [{given}]."
    if isinstance(given, bool | int | float) and kinds == {"string_type"}:
        return f' Put it in quotes: "{str(given).lower()}".'
    words = [word for one in details for word in _words(one)]
    close = difflib.get_close_matches(str(given), words, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _words(detail: Any) -> list[str]:
    if detail["type"] not in _CHOICE:
        return []
    return re.findall(r"'([^']*)'", str(detail["ctx"]["expected"]))


def _as_number(given: str) -> str:
    """Return the number that a text was meant to be: 1_000, 0,5 or one in quotes."""
    bare = given.replace("_", "").replace(" ", "").replace(",", ".")
    if not re.fullmatch(r"[-+]?[0-9]+(\.[0-9]*)?", bare):
        return ""
    return f" Write {bare}, without quotes."
