"""Validation of settings: pydantic's errors, rules across keys, and all messages."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from curvote.run.config.yaml_lines import as_one_line

_WHOLE_NUMBER: Final = "a whole number"
_NUMBER: Final = "a number"
_SWITCH: Final = "true or false"
_TEXT: Final = "a text"
_LIST: Final = "a list, such as [a, b]"
_MAPPING: Final = "a mapping of settings, such as {{name: value}}"
# By pydantic's names of errors; {…} is what it knows of the limit.
_MUST_BE: Final[Mapping[str, str]] = {
    "int_type": _WHOLE_NUMBER,
    "int_parsing": _WHOLE_NUMBER,
    "int_from_float": _WHOLE_NUMBER,
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
    int: _WHOLE_NUMBER,
    float: _NUMBER,
    bool: _SWITCH,
    str: _TEXT,
    list: _LIST,
    tuple: _LIST,
}
_NUMERIC: Final = {
    name for name, phrase in _MUST_BE.items() if phrase in (_WHOLE_NUMBER, _NUMBER)
}
_CHOICE: Final = ("literal_error", "enum")


def kind_in_words(kind: Any) -> str:
    """Return the phrase for a Python type's values, "" for other types."""
    return _KINDS.get(kind, "")


def describe_errors(details: Sequence[Any]) -> str:
    """Return one message for one value: its requirement and the value given.

    ``details`` are pydantic's errors at one place, such as one for each of the kinds
    that a value may have.
    """
    requirements = list(dict.fromkeys(filter(None, map(_requirement, details))))
    custom_messages = [
        _custom_message(detail) for detail in details if not _requirement(detail)
    ]
    if custom_messages:
        return f"{custom_messages[0]} {_describe_input(details[0])}."
    return (
        f"must be {' or '.join(requirements)}"
        f" {_describe_input(details[0])}.{_correction_hint(details)}"
    )


def _requirement(detail: Any) -> str:
    if detail["type"] in _CHOICE:
        return str(detail["ctx"]["expected"])
    limits = detail.get("ctx", {}).items()
    limit_texts = {name: f"{v:g}" if isinstance(v, float) else v for name, v in limits}
    return _MUST_BE.get(detail["type"], "").format(**limit_texts)


def _custom_message(detail: Any) -> str:
    """Return the message of a validator of this project."""
    if detail["type"] == "invalid_key":
        return "no name of a setting; in a number write a point, no comma"
    return str(detail["msg"]).removeprefix("Value error, ").rstrip(".")


def quote_value(value: Any) -> str:
    """Return a value as messages show it: quoted text or short YAML."""
    plain = isinstance(value, bool | dict | list)
    text = "nothing" if value is None else as_one_line(value) if plain else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _describe_input(detail: Any) -> str:
    return f"(given: {quote_value(detail['input'])})"


def _correction_hint(details: Sequence[Any]) -> str:
    """Return a suggested correction, if the value gives a clue."""
    value, kinds = details[0]["input"], {detail["type"] for detail in details}
    if isinstance(value, str) and kinds & _NUMERIC:
        return _number_hint(value)
    if kinds == {"list_type"} and isinstance(value, str | int | float):
        return f" Write [{value}]."
    if isinstance(value, bool | int | float) and kinds == {"string_type"}:
        return f' Put it in quotes: "{str(value).lower()}".'
    words = [word for entry in details for word in _allowed_words(entry)]
    close = difflib.get_close_matches(str(value), words, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _allowed_words(detail: Any) -> list[str]:
    if detail["type"] not in _CHOICE:
        return []
    return re.findall(r"'([^']*)'", str(detail["ctx"]["expected"]))


def _number_hint(text: str) -> str:
    """Return a hint with the number that a text stands for, such as 1_000."""
    cleaned = text.replace("_", "").replace(" ", "").replace(",", ".")
    if not re.fullmatch(r"[-+]?[0-9]+(\.[0-9]*)?", cleaned):
        return ""
    return f" Write {cleaned}, without quotes."
