"""Invitations: the right to send one message, given to one sender over a private way.

Of format 1 are those issued before, with shorter keys; of format 3 those for a sender
with a name: a server that holds the records of many people.
"""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass, field
from secrets import SystemRandom
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from curvote import validate
from curvote.errors import UserError
from curvote.strict_json import said
from curvote.task import Asked
from curvote.task_form import Word

FORMAT: Final = 2
NAMED: Final = 3
KEY_DIGITS: Final = {1: 32, 2: 64}

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Bits128 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


@dataclass(frozen=True)
class Invitation:
    """The right to send one message for one task.

    ``id`` is 128 random bits, ``key`` 256 (of format 1: 128), as hex digits; the key is
    a secret between the server and the client. ``task`` is the task's digest, ``asks``
    the message it asks for, ``about`` the candidate to judge (None where none is).
    ``signer`` is the fingerprint of the key that signs the task, ``seal_to`` the key
    to seal the envelope to; None: the task alone says (a carrier could exchange it).
    ``server`` names the sender, where a task names those that it asks; ``task`` is then
    the digest of what this one is asked.
    """

    id: str
    key: str = field(repr=False)
    task: str
    asks: str
    about: int | None = None
    signer: str | None = None
    seal_to: str | None = None
    server: str | None = None

    @property
    def format(self) -> int:
        """1 where the key has 128 bits, 3 where the sender has a name, else 2.

        Its envelope is of format 1, or else of 2.
        """
        if len(self.key) == KEY_DIGITS[1]:
            return 1
        return FORMAT if self.server is None else NAMED

    @property
    def file_name(self) -> str:
        """A name for the envelope's file that tells nobody the invitation."""
        code = hmac.digest(bytes.fromhex(self.key), b"curvote file name", "sha256")
        return f"{code.hex()[:32]}.json"

    def refuse_other_key(self, seal_to: str | None) -> None:
        """Refuse a task whose ``seal_to`` is not the one that the invitation names."""
        if self.seal_to not in (None, seal_to):
            raise UserError(
                "the invitation asks for an envelope sealed to another key than the"
                " task: somebody exchanged the task; get it from its server again."
            )

    def to_json(self) -> dict[str, Any]:
        """Return the invitation as plain JSON values, its key included."""
        values = {
            "format": self.format,
            "id": self.id,
            "key": self.key,
            "task": self.task,
            "asks": self.asks,
            "about": self.about,
        }
        if self.format == 1:
            return values
        signed = {"server": self.signer}
        if self.format == NAMED:
            signed = {"server": self.server, "signer": self.signer}
        return values | signed | {"seal_to": self.seal_to}

    @classmethod
    def from_json(cls, text: Any) -> Invitation:
        """Build the invitation that `to_json` wrote; anything else is a UserError."""
        given = text.get("format") if isinstance(text, dict) else None
        form = _FORMS.get(given, _Written2) if type(given) is int else _Written2
        try:
            written = form.model_validate(text)
        except ValidationError as error:
            raise UserError(f"not an invitation: {said(error)}.") from None
        told = written.model_dump(exclude={"format"})
        if given == FORMAT:
            told["signer"] = told.pop("server")
        return cls(**told)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Written1(_Strict):
    format: Annotated[int, Field(ge=1, le=1)]
    id: Bits128
    key: Bits128
    task: Digest
    asks: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    about: Annotated[int, Field(ge=0, lt=2**31)] | None


class _Written2(_Written1):
    format: Annotated[int, Field(ge=2, le=2)]
    key: Digest  # as many bits
    server: Digest | None
    seal_to: Digest | None = None


class _Written3(_Written1):
    format: Annotated[int, Field(ge=3, le=3)]
    key: Digest
    about: None
    server: Word
    signer: Digest
    seal_to: Digest | None = None


_FORMS: Final[dict[int, type[_Written1]]] = {
    1: _Written1,
    FORMAT: _Written2,
    NAMED: _Written3,
}


def issue(
    task: Asked,
    count: int,
    signer: str | None = None,
    seal_to: str | None = None,
    server: str | None = None,
) -> list[Invitation]:
    """Return ``count`` new invitations to one task, with the other values.

    If candidates are up for a vote, each is judged by equally many, or by one more than
    others; the operating system's randomness decides which, and in what order.
    """
    validate.at_least(1, count=count)
    known = task.digest(), task.asks
    rest = signer, seal_to, server
    return [
        Invitation(os.urandom(16).hex(), os.urandom(32).hex(), *known, about, *rest)
        for about in _subjects(task, count)
    ]


def _subjects(task: Asked, count: int) -> list[int | None]:
    if task.candidates is None:
        return [None] * count
    up = list(range(len(task.candidates.coef)))
    SystemRandom().shuffle(up)
    subjects: list[int | None] = [up[i % len(up)] for i in range(count)]
    SystemRandom().shuffle(subjects)
    return subjects
