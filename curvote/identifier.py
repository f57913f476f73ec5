"""Identifiers and other text in canonical and in printable form."""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

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
