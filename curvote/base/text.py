"""Identifiers and other text in canonical and in printable form."""

import math
import re
import unicodedata
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

# Eighteen digits fit int64; a leading zero or a plus makes it another text.
WHOLE_NUMBER = r"^(0|-?[1-9][0-9]{0,17})$"
_INTEGRAL = re.compile(r"([+-]?[0-9]+)\.0+")


def normalise_id(text: str) -> str:
    """Return an id in canonical form: NFC, trimmed, without a ``.0``.

    A spreadsheet that exports 1000 as ``1000.0``, or another system that writes an
    accent as a sign of its own, makes no new client. Leading zeros stay: ``01000`` may
    well be somebody else than ``1000``. What stays is unchanged by a second call.
    """
    if text.isascii() and text.isalnum():  # nearly all ids
        return text
    trimmed = unicodedata.normalize("NFC", text).strip()
    integral = _INTEGRAL.fullmatch(trimmed)
    return integral.group(1) if integral else trimmed


def id_number(text: str) -> int:
    """Return the whole number that stands for an id in the ledger.

    A whole number is its own; of another text it is 63 bits of its digest.
    """
    normalised = normalise_id(text)
    if re.match(WHOLE_NUMBER, normalised):
        return int(normalised)
    return int.from_bytes(text_digest(normalised)[:8], "little") >> 1


def text_digest(text: str) -> bytes:
    """Return a digest of a text, 16 bytes."""
    return blake2b(text.encode(), digest_size=16).digest()


# Above it e^epsilon is said as a power of ten: nobody can imagine it, and from 710 on
# no double holds it.
_LARGEST_FACTOR: Final = 20.0
_LONGEST_NAME: Final = 40  # characters of a name that is shown
_MAX_NAMES: Final = 20  # names that are listed


def format_budget(epsilon: float, delta: float) -> str:
    """Return a budget as text, its delta always."""
    return f"epsilon {epsilon:g}, delta {delta:g}"


def format_factor(epsilon: float) -> str:
    """Return e^epsilon, the largest factor on odds, as text."""
    if epsilon > _LARGEST_FACTOR:
        return f"10^{math.ceil(epsilon / math.log(10))}"
    times = math.exp(epsilon)
    return f"{times:.3g}" if times < 1000 else f"{math.ceil(times):,}"


def printable_name(name: str) -> str:
    """Return a foreign ``name`` that fits one line of a terminal.

    Line breaks, control sequences and invisible characters (which could rewrite the
    line around them) become question marks; what is too long is cut.
    """
    harmless = "".join(letter if letter.isprintable() else "?" for letter in name)
    cut = f"{harmless[:_LONGEST_NAME]}.."
    return harmless if len(harmless) <= _LONGEST_NAME else cut


def format_names(names: Sequence[str], between: str = "/") -> str:
    """Return foreign names with ``between`` them, the first of many."""
    cut = [f".. ({len(names)} in all)"] if len(names) > _MAX_NAMES else []
    return between.join([*map(printable_name, names[:_MAX_NAMES]), *cut])
