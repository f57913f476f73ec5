"""Invitations: the right to send one message, given to one sender over a private way.

Of format 1 are those issued before, with shorter keys; of format 3 those for a sender
with a name: a server that holds the records of many people. Of format 4 are those about
one public record, of which whoever keeps its secret part is asked.
"""

from __future__ import annotations

import hmac
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from secrets import SystemRandom
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from curvote import validate
from curvote.errors import UserError
from curvote.strict_json import said
from curvote.task import Asked
from curvote.task_form import Word

FORMAT: Final = 2
NAMED: Final = 3
RECORDED: Final = 4
KEY_DIGITS: Final = {1: 32, 2: 64}

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Bits128 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
_NAMES: Final = TypeAdapter(list[Word])


@dataclass(frozen=True)
class Invitation:
    """The right to send one message for one task.

    ``id`` is 128 random bits, ``key`` 256 (of format 1: 128), as hex digits; the key is
    a secret between the server and the client. ``task`` is the task's digest, ``asks``
    the message it asks for, ``about`` the candidate to judge (None where none is).
    ``signer`` is the fingerprint of the key that signs the task, ``seal_to`` the key
    to seal the envelope to; None: the task alone says (a carrier could exchange it).
    ``server`` names the sender, where a task names those that it asks; ``task`` is then
    the digest of what this one is asked. ``record`` is the public name of the record
    that the message belongs to, where it belongs to one.
    """

    id: str
    key: str = field(repr=False)
    task: str
    asks: str
    about: int | None = None
    signer: str | None = None
    seal_to: str | None = None
    server: str | None = None
    record: str | None = None

    @property
    def format(self) -> int:
        """1: the key has 128 bits; 3: the sender has a name, 4: the record; else 2.

        Its envelope is of format 1, or else of 2.
        """
        if len(self.key) == KEY_DIGITS[1]:
            return 1
        if self.record is not None:
            return RECORDED
        return FORMAT if self.server is None else NAMED

    @property
    def subject(self) -> int | str | None:
        """What the message must be about: a candidate, a record, nothing (None)."""
        return self.about if self.record is None else self.record

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
        }
        ends = {"signer": self.signer, "seal_to": self.seal_to}
        if self.format == RECORDED:
            return values | {"record": self.record} | ends
        values["about"] = self.about
        if self.format == 1:
            return values
        if self.format == NAMED:
            return values | {"server": self.server} | ends
        return values | {"server": self.signer, "seal_to": self.seal_to}

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


class _Written(_Strict):
    format: int
    id: Bits128
    key: Digest  # as many bits
    task: Digest
    asks: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class _Written1(_Written):
    format: Annotated[int, Field(ge=1, le=1)]
    key: Bits128
    about: Annotated[int, Field(ge=0, lt=2**31)] | None


class _Written2(_Written1):
    format: Annotated[int, Field(ge=2, le=2)]
    key: Digest
    server: Digest | None
    seal_to: Digest | None = None


class _Written3(_Written1):
    format: Annotated[int, Field(ge=3, le=3)]
    key: Digest
    about: None
    server: Word
    signer: Digest
    seal_to: Digest | None = None


class _Written4(_Written):
    format: Annotated[int, Field(ge=4, le=4)]
    record: Word
    signer: Digest
    seal_to: Digest | None = None


_FORMS: Final[dict[int, type[_Written]]] = {
    1: _Written1,
    FORMAT: _Written2,
    NAMED: _Written3,
    RECORDED: _Written4,
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


def issue_each(
    task: Asked, records: Sequence[str], signer: str, seal_to: str | None = None
) -> list[Invitation]:
    """Return a new invitation for each of the public ``records``, in their order.

    UserError: none, a name that stands twice, or one that is no plain text of 1 to 60
    characters.
    """
    validate.at_least(1, records=len(records))
    _check_names(records)
    known = task.digest(), task.asks, None, signer, seal_to
    return [
        Invitation(os.urandom(16).hex(), os.urandom(32).hex(), *known, record=record)
        for record in records
    ]


def _check_names(records: Sequence[str]) -> None:
    if len(set(records)) < len(records):
        twice = next(name for name, n in Counter(records).items() if n > 1)
        raise UserError(f"record {validate.shown(twice)} stands twice.")
    try:
        _NAMES.validate_python(list(records))
    except ValidationError as error:
        raise UserError(f"records is no list of names: {said(error)}.") from None


def _subjects(task: Asked, count: int) -> list[int | None]:
    if task.candidates is None:
        return [None] * count
    up = list(range(len(task.candidates.coef)))
    SystemRandom().shuffle(up)
    subjects: list[int | None] = [up[i % len(up)] for i in range(count)]
    SystemRandom().shuffle(subjects)
    return subjects
