"""What names a client: the text of an id, in the one spelling that is compared."""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

# Eighteen digits fit int64; a leading zero or a plus makes it another text.
WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
_INTEGRAL = re.compile(r"([+-]?[0-9]+)\.0+")


def normal(text: str) -> str:
    """Return an id as it is compared: NFC, trimmed, an integral number without ``.0``.

    A spreadsheet that exports 1000 as ``1000.0``, or another system that writes an
    accent as a sign of its own, makes no new client. Leading zeros stay: ``01000`` may
    well be somebody else than ``1000``. What stays is unchanged by a second call.
    """
    if text.isascii() and text.isalnum():  # nearly all ids
        return text
    trimmed = unicodedata.normalize("NFC", text).strip()
    whole = _INTEGRAL.fullmatch(trimmed)
    return whole.group(1) if whole else trimmed


def number(text: str) -> int:
    """Return the client_id of an id in a file of one's own, which the ledger holds.

    A whole number is its own; of another text it is 63 bits of its digest.
    """
    spelt = normal(text)
    if re.match(WHOLE, spelt):
        return int(spelt)
    return int.from_bytes(digest(spelt)[:8], "little") >> 1


def digest(text: str) -> bytes:
    """Return the 16 bytes that stand for a text."""
    return blake2b(text.encode(), digest_size=16).digest()
