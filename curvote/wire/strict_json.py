"""Strict JSON: parsing without ambiguity, declared forms, canonical serialisation."""

import json
import math
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from curvote.base.errors import UserError

MAX_DEPTH: Final = 8
# Beyond it readers that know floating-point numbers only disagree (RFC 7493, 2.2).
LARGEST_INTEGER: Final = 2**53


def canonical_json(value: Any) -> bytes:
    """Return the canonical JSON of a value: sorted keys, no spaces, ASCII."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def parse_json(data: bytes, max_bytes: int) -> Any:
    """Return the JSON value in ``data``, read strictly.

    Refused, each with its own reason (UserError): over ``max_bytes`` bytes, no UTF-8,
    no JSON, cut off, followed by something, a key given twice, a number that is not
    finite or a whole one beyond 2^53, half a surrogate pair, values nested over 8 deep.
    """
    if len(data) > max_bytes:
        raise UserError(f"over {max_bytes} bytes; at most that many are read.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"not UTF-8 text: byte {error.start} is wrong.") from None
    try:
        value = _STRICT.decode(text)
        too_deep = _is_deeper(value, MAX_DEPTH)
    except json.JSONDecodeError as error:
        stripped = text.strip()
        words = f"not JSON: {error.msg} at character {error.pos}."
        if error.msg == "Extra data":
            words = f"something follows the JSON value, from character {error.pos} on."
        elif stripped.startswith("{") and not stripped.endswith("}"):
            words = "cut off: the closing brace is missing."
        raise UserError(words) from None
    except RecursionError:
        too_deep = True
    if too_deep:
        raise UserError(f"its values are nested over {MAX_DEPTH} deep.")
    if "\\u" in text:  # half a surrogate pair: UTF-8 cannot hold it
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise UserError("its text holds half a surrogate pair.") from None
    return value


class StrictForm(BaseModel):
    """A JSON object with these keys and no other, and no value of another kind."""

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)


AnyForm = TypeVar("AnyForm", bound=BaseModel)


def read_form(form: type[AnyForm], value: Any, words: str = "") -> AnyForm:
    """Return a value in its form; else raise a UserError that begins with ``words``."""
    try:
        return form.model_validate(value)
    except ValidationError as error:
        raise UserError(f"{words}{describe_errors(error)}.") from None


def describe_errors(error: ValidationError) -> str:
    """Return pydantic's first complaint and its place, never the value given.

    A place may be a key that somebody sent: only plain characters of it are shown.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part)[:40] for part in first["loc"]) or "the value"
    place_shown = "".join(c if c.isascii() and c.isprintable() else "?" for c in place)
    return f"{place_shown}: {first['msg'].removeprefix('Value error, ')}"


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise UserError("a key is given twice; readers would disagree on its value.")
    return value


def _parse_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise UserError(f"{text[:20]} is not a finite number.")
    return value


def _parse_integer(text: str) -> int:
    # Longer ones are not even converted: that takes time.
    if len(text) > 20 or abs(int(text)) > LARGEST_INTEGER:
        raise UserError(f"{text[:20]} is a whole number beyond 2^53.")
    return int(text)


_STRICT = json.JSONDecoder(
    object_pairs_hook=_refuse_repeated_keys,
    parse_float=_parse_float,
    parse_int=_parse_integer,
    parse_constant=_parse_float,
)


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    nested = [item for item in inner if isinstance(item, dict | list)]
    return not levels or any(_is_deeper(item, levels - 1) for item in nested)
