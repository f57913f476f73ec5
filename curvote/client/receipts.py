"""Receipts on a client's side: kept beside envelopes, and held against the tree.

A receipt shows what its envelope's owner sent: it is as secret as the envelope.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from curvote.base.durable import sync_folder
from curvote.base.errors import UserError
from curvote.wire import receipt as wire
from curvote.wire.merkle import check_proof
from curvote.wire.receipt import Receipt, read_receipt
from curvote.wire.strict_json import canonical_json, parse_json
from curvote.wire.task import AnyTask

# Neither ends as what an inbox takes for an envelope.
RECEIPT_SUFFIX: Final = ".receipt"
SALT_SUFFIX: Final = ".salt"
MAX_PROOF: Final = 2**30  # bytes: ten million leaves and more


def salt_beside(envelope: Path) -> bytes:
    """Return the salt under which an envelope is sent, drawn at the first call.

    It is on the disk before it leaves: who lost the answer sends the same again.
    """
    path = envelope.with_suffix(SALT_SUFFIX)
    try:
        if not path.exists():
            temporary = path.with_name(f".{path.name}.{os.getpid()}")
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            handle = os.open(temporary, flags, 0o600)
            with open(handle, "wb") as stream:  # noqa: PTH123 - a handle has no path
                stream.write(secrets.token_bytes(32))
                stream.flush()
                os.fsync(stream.fileno())
            with suppress(FileExistsError):  # another process was first
                os.link(temporary, path)
            temporary.unlink()
            sync_folder(path.parent)
        salt = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror or error}. Nothing was sent."
        ) from None
    if len(salt) != 32:
        raise UserError(f"{path} is no salt of 32 bytes. Delete it: nothing was sent.")
    return salt


def keep_receipt(
    envelope: Path, written: Any, task: str, epsilon: float, server: str
) -> Path:
    """Write the receipt that a server gave for an envelope beside it; return its path.

    UserError: it is for another envelope or task, for more epsilon than was agreed to,
    signed by another server, or no receipt.
    """
    data = canonical_json(written) + b"\n"
    receipt = read_receipt(data)
    expected = wire.envelope_salt(salt_beside(envelope), envelope.read_bytes()).hex()
    check_envelope(receipt, envelope)
    if (receipt.salt, receipt.task) != (expected, task):
        raise UserError("the receipt is for another task, or made with another salt.")
    if receipt.epsilon > epsilon or receipt.signer not in {None, server}:
        raise UserError(
            f"it says epsilon {receipt.epsilon:g}, signer {receipt.signer}."
        )
    path = envelope.with_suffix(RECEIPT_SUFFIX)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(handle, "wb") as stream:  # noqa: PTH123 - a handle has no path
        stream.write(data)
    return path


def check_envelope(receipt: Receipt, envelope: Path) -> None:
    """Refuse an envelope that is not the receipt's (UserError)."""
    if hashlib.sha256(envelope.read_bytes()).hexdigest() != receipt.envelope:
        raise UserError(f"{envelope} is not the envelope of the receipt.")


@dataclass(frozen=True)
class Verification:
    """What a receipt and a proof prove: the envelope is one of ``count`` under a root.

    ``once``: all leaves were seen, so it is there once. ``root_known``: the root came
    another way than the proof did.
    """

    receipt: Receipt
    root: str
    count: int
    once: bool
    root_known: bool


def verify_receipt(
    receipt: Receipt,
    proof: bytes,
    *,
    root: str | None = None,
    certificate: bytes | None = None,
    task: AnyTask | None = None,
) -> Verification:
    """Hold a receipt against a proof, a path or all leaves; return what it proves.

    ``root`` or ``certificate`` say which root is the right one, ``task`` what was
    agreed to. UserError: it proves nothing, with the reason.
    """
    if task is not None:
        if task.digest() != receipt.task:
            raise UserError(f"the receipt is for another task, {receipt.task[:12]}.")
        if receipt.epsilon > (agreed := float(task.epsilon)):
            words = f"it says epsilon {receipt.epsilon:g}, the task {agreed:g}."
            raise UserError(f"more than was agreed was counted: {words}")
    document = parse_json(proof, MAX_PROOF)
    reached, count, once = check_proof(document, receipt.task, receipt.leaf)
    named = [(root, count)] if root else []
    if certificate is not None:
        rounds = _rounds_in(_parse_certificate(certificate))
        named += [(r["root"], r["count"]) for r in rounds if r["task"] == receipt.task]
        if not named:
            raise UserError("the certificate names no round of the receipt's task.")
    if named and (reached, count) not in named:
        raise UserError(
            f"the proof leads to root {reached} of {count}, but the right one is"
            f" {named[0][0]} of {named[0][1]}: the server showed another tree."
        )
    return Verification(receipt, reached, count, once, bool(named))


def _parse_certificate(data: bytes) -> Any:
    """Return the JSON value in a certificate, whose own form others check."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise UserError("the certificate is no JSON text.") from None


def _rounds_in(value: Any) -> list[dict[str, Any]]:
    """Return the rounds that a certificate names, wherever they stand in it."""
    if isinstance(value, list):
        return [item for part in value for item in _rounds_in(part)]
    if not isinstance(value, dict):
        return []
    if {"task", "root", "count"} <= {*value}:
        return [value]
    return _rounds_in([*value.values()])
