"""The command `curvote client verify`: a receipt held against the tree of its round."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curvote.base.errors import UserError
from curvote.chain import lookup
from curvote.cli.client.answer import errors_in_file, read_bytes
from curvote.client import receipts, sending
from curvote.wire import signing
from curvote.wire.receipt import LARGEST, Receipt, read_receipt
from curvote.wire.task import AnyTask


@dataclass(frozen=True)
class Evidence:
    """What a person holds of a counted envelope: files, an address, a root.

    The proof is in the file ``leaves`` or comes from the service ``ask``.
    """

    receipt: Path
    leaves: Path | None
    ask: str | None
    root: str | None
    certificate: Path | None
    envelope: Path | None
    task: Path | None

    def summary(self) -> dict[str, Any]:
        """Return what is proved; UserError: it is not, with the reason."""
        if (self.leaves is None) == (self.ask is None):
            raise UserError("give --leaves FILE or --ask URL: where the proof is.")
        with errors_in_file(self.receipt):
            receipt = read_receipt(read_bytes(self.receipt, LARGEST))
        beside = self.envelope or self.receipt.with_suffix(".json")
        is_seen = self.envelope is not None or beside.exists()
        if is_seen:
            receipts.check_envelope(receipt, beside)
        proved = receipts.verify_receipt(
            receipt,
            self._proof(receipt),
            root=self.root,
            certificate=read_bytes(self.certificate, receipts.MAX_PROOF)
            if self.certificate
            else None,
            task=_task_of(self.task, receipt) if self.task else None,
        )
        return {
            "task": receipt.task,
            "epsilon": receipt.epsilon,
            "leaf": receipt.leaf,
            "envelope": receipt.envelope,
            "envelope_seen": is_seen,
            "signer": receipt.signer,
            "root": proved.root,
            "root_known": proved.root_known,
            "count": proved.count,
            "once": proved.once,
        }

    def _proof(self, receipt: Receipt) -> bytes:
        if self.ask is None:
            return read_bytes(Path(str(self.leaves)), receipts.MAX_PROOF)
        path = f"/v1/receipts/{receipt.leaf}"
        return sending.get_document(self.ask, path, receipts.MAX_PROOF)


def _task_of(path: Path, receipt: Receipt) -> AnyTask:
    """Return the signed task in a file, or its part that a receipt names."""
    with errors_in_file(path):
        signed = signing.open_signed(read_bytes(path, signing.LARGEST))
        task: Any = lookup.read_task(signed.document["task"])
    parts = [task.for_server(name) for name in getattr(task, "servers", ())]
    right: AnyTask = next((t for t in parts if t.digest() == receipt.task), task)
    return right


def describe_summary(summary: dict[str, Any]) -> list[str]:
    """Return what is proved in words, a line each."""
    once = "once" if summary["once"] else "(that it is once, only all leaves show)"
    source = "as you got it" if summary["root_known"] else "the server's own word"
    unseen = "" if summary["envelope_seen"] else " (not looked at here)"
    signer = summary["signer"]
    return [
        f"counted   {once}, among {summary['count']:,}",
        f"epsilon   {summary['epsilon']:g}, of task {summary['task'][:12]}",
        f"envelope  {summary['envelope'][:12]}{unseen}",
        f"receipt   {f'signed for server {signer}' if signer else 'not signed'}",
        f"root      {summary['root']} ({source})",
    ]
