"""Receipts on a client's side: kept beside envelopes, and held against the tree.

A receipt shows what its envelope's owner sent: it is as secret as the envelope.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from curvote.base.durable import sync_folder
from curvote.base.errors import UserError
from curvote.chain import lookup
from curvote.wire import receipt as wire
from curvote.wire import signing
from curvote.wire.merkle import check_proof
from curvote.wire.receipt import Receipt, read_receipt
from curvote.wire.strict_json import canonical_json, parse_json

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
    digest = hashlib.sha256(envelope.read_bytes()).hexdigest()
    if (receipt.envelope, receipt.salt, receipt.task) != (digest, expected, task):
        raise UserError("the receipt is for another envelope, task or salt.")
    if receipt.epsilon > epsilon or receipt.signer not in {None, server}:
        raise UserError(
            f"it says epsilon {receipt.epsilon:g}, signer {receipt.signer}."
        )
    path = envelope.with_suffix(RECEIPT_SUFFIX)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(handle, "wb") as stream:  # noqa: PTH123 - a handle has no path
        stream.write(data)
    return path


def verify_receipt(
    receipt: Receipt,
    proof: bytes,
    roots: Sequence[tuple[str, int | None]] = (),
    *,
    task: bytes | None = None,
) -> dict[str, Any]:
    """Hold a receipt against a proof, a path or all leaves; return what it proves.

    ``roots`` are the right ones, if they are known, each with its count of leaves or
    None; ``task``, signed, says what was agreed to. UserError: it proves nothing, with
    the reason.
    """
    if task is not None:
        _refuse_other_task(receipt, task)
    document = parse_json(proof, MAX_PROOF)
    reached, count, once = check_proof(document, receipt.task, receipt.leaf)
    if roots and not {(reached, count), (reached, None)} & {*roots}:
        right, size = roots[0]
        words = right if size is None else f"{right} of {size:,}"
        raise UserError(
            f"the proof leads to root {reached} of {count:,}, but the right one is"
            f" {words}: the server showed another tree."
        )
    facts = {"root": reached, "root_known": bool(roots), "count": count, "once": once}
    return {**receipt.to_json(), "signer": receipt.signer, **facts}


def _refuse_other_task(receipt: Receipt, signed: bytes) -> None:
    """Refuse a receipt for another task, or for more epsilon than the task asks."""
    task: Any = lookup.read_task(signing.open_signed(signed).document["task"])
    parts = [task.for_server(name) for name in getattr(task, "servers", ())]
    right = [part for part in (task, *parts) if part.digest() == receipt.task]
    if not right or receipt.epsilon > float(right[0].epsilon):
        words = f"task {receipt.task[:12]}, epsilon {receipt.epsilon:g}"
        raise UserError(f"the receipt is for {words}, which is not what was asked.")


def describe_verification(proved: dict[str, Any]) -> list[str]:
    """Return what is proved in words, a line each."""
    once = "once" if proved["once"] else "(that it is once, only all leaves show)"
    source = "as you got it" if proved["root_known"] else "the server's own word"
    signer = proved["signer"]
    return [
        f"counted   {once}, among {proved['count']:,}",
        f"epsilon   {proved['epsilon']:g}, of task {proved['task'][:12]}",
        f"envelope  {proved['envelope']}",
        f"receipt   {f'signed for server {signer}' if signer else 'not signed'}",
        f"root      {proved['root']} ({source})",
    ]
