"""JSON read strictly and written in one way: what two readers could not take apart."""

from __future__ import annotations

import json
import math
from typing import Any, Final

from pydantic import ValidationError

from curvote.errors import UserError

DEEPEST: Final = 8
# Beyond it readers that know floating-point numbers only disagree (RFC 7493, 2.2).
LARGEST_WHOLE: Final = 2**53


def canonical(value: Any) -> bytes:
    """Return the one way to write a JSON value: sorted keys, no spaces, ASCII."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def parse(data: bytes, most: int) -> Any:
    """Return the JSON value in ``data``, read strictly.

    Refused, each with its own reason (UserError): over ``most`` bytes, no UTF-8, no
    JSON, cut off, followed by something, a key given twice, a number that is not finite
    or a whole one beyond 2^53, half a surrogate pair, values nested over 8 deep.
    """
    if len(data) > most:
        raise UserError(f"over {most} bytes; at most that many are read.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"not UTF-8 text: byte {error.start} is wrong.") from None
    try:
        value = _STRICT.decode(text)
        deep = _deeper(value, DEEPEST)
    except json.JSONDecodeError as error:
        raise UserError(_not_json(text, error)) from None
    except RecursionError:
        deep = True
    if deep:
        raise UserError(f"its values are nested over {DEEPEST} deep.")
    _refuse_surrogates(text, value)
    return value


def said(error: ValidationError) -> str:
    """Return pydantic's first complaint and its place, never the value given.

    A place may be a key that somebody sent: only plain characters of it are shown.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(_plain(str(part)[:40]) for part in first["loc"]) or "the value"
    return f"{place}: {first['msg'].removeprefix('Value error, ')}"


def _plain(text: str) -> str:
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text)


def _not_json(text: str, error: json.JSONDecodeError) -> str:
    stripped = text.strip()
    if error.msg == "Extra data":
        return f"something follows the JSON value, from character {error.pos} on."
    if stripped.startswith("{") and not stripped.endswith("}"):
        return "cut off: the closing brace is missing."
    return f"not JSON: {error.msg} at character {error.pos}."


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UserError("a key is given twice; readers would disagree on its value.")
    return found


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise UserError(f"{text[:20]} is not a finite number.")
    return value


def _whole(text: str) -> int:
    # Longer ones are not even converted: that takes time.
    if len(text) > 20 or abs(int(text)) > LARGEST_WHOLE:
        raise UserError(f"{text[:20]} is a whole number beyond 2^53.")
    return int(text)


_STRICT = json.JSONDecoder(
    object_pairs_hook=_once,
    parse_float=_number,
    parse_int=_whole,
    parse_constant=_number,
)


def _deeper(value: Any, room: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return not room or any(_deeper(each, room - 1) for each in inner)


def _refuse_surrogates(text: str, value: Any) -> None:
    """Refuse what no UTF-8 file, no terminal and no other reader can hold."""
    if "\\u" not in text:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise UserError("its text holds half a surrogate pair.") from None
