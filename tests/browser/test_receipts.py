"""The page's check of receipts: what the Python client believes, and nothing else."""

import copy
import json
from pathlib import Path
from typing import Any, Final

import pytest

from curvote.base.errors import UserError
from curvote.client.receipts import verify_receipt
from curvote.wire.merkle import MerkleTree, leaves_document
from curvote.wire.receipt import read_receipt
from curvote.wire.strict_json import canonical_json
from tests.browser.script import needs_node, run
from tests.vectors.envelope import FILE, KEY, receipts_vector

VECTORS: Final = json.loads(FILE.read_text("utf-8"))
GIVEN: Final = VECTORS["receipts"]
CODE: Final = """
const told = [];
for (const [line, proof] of given) {
  try {
    const receipt = await receiptOf(line);
    told.push([receipt.fingerprint, await rootOf(receipt, proof)]);
  } catch (error) { told.push(error instanceof Refusal ? null : String(error)); }
}
return told;
"""


def line(receipt: Any) -> str:
    """Return a receipt as a client keeps it."""
    return canonical_json(receipt).decode() + "\n"


def altered() -> list[tuple[str, Any]]:
    """Return receipts and proofs that are none, each from a true pair."""
    signed, plain = GIVEN["signed"], GIVEN["receipts"][0]
    whole, path = GIVEN["leaves"], GIVEN["path"]
    names = ("envelope", "leaf", "salt", "task")
    cases: list[Any] = [(plain | {name: "0" * 64}, whole) for name in names]
    cases += [(plain | {"epsilon": -1.0}, whole), (plain | {"more": 1}, whole)]
    for part in ("payload", "protected", "signature"):
        text = signed[part]
        at = len(text) // 2
        other = "A" if text[at] != "A" else "B"
        cases.append((signed | {part: text[:at] + other + text[at + 1 :]}, whole))
    without = [leaf for leaf in whole["leaves"] if leaf != plain["leaf"]]
    for leaves in (without, [*whole["leaves"], whole["leaves"][-1]]):
        tree = MerkleTree(map(bytes.fromhex, leaves))
        cases.append((signed, leaves_document(tree, plain["task"])))
    for change in (
        {"count": 2},
        {"root": "0" * 64},
        {"task": "0" * 64},
        {"leaves": whole["leaves"][::-1]},
    ):
        cases.append((signed, whole | change))
    turned = copy.deepcopy(path)
    ((side, beside),) = turned["path"][0].items()
    turned["path"][0] = {"left" if side == "right" else "right": beside}
    cases += [(signed, turned), (signed, path | {"path": path["path"][1:]})]
    cases += [(GIVEN["receipts"][1], path), (signed, path | {"leaf": "0" * 64})]
    return [(line(receipt), proof) for receipt, proof in cases]


def test_the_published_receipts_are_those_of_the_intake() -> None:
    """Salts, leaves, both signatures, root and path, to the last byte."""
    envelopes = [text.encode() for text in GIVEN["envelopes"]]
    assert receipts_vector(VECTORS["report"]["digest"], 10.0, envelopes) == GIVEN


@needs_node
def test_the_page_and_the_command_agree_on_every_receipt(tmp_path: Path) -> None:
    """True ones, by all leaves and by a path; none of those that were altered."""
    good = [
        (line(receipt), proof)
        for receipt in (GIVEN["signed"], GIVEN["receipts"][0])
        for proof in (GIVEN["leaves"], GIVEN["path"])
    ]
    wrong = altered()
    told = run(tmp_path, CODE, [list(pair) for pair in good + wrong])
    root = GIVEN["leaves"]["root"]
    for (_, proof), (signer, proved) in zip(good, told, strict=False):
        assert proved == {"root": root, "count": 3, "once": "leaves" in proof}
        assert signer in {KEY.fingerprint, None}
    assert [signer for signer, _ in told[:4]] == [KEY.fingerprint] * 2 + [None] * 2
    assert told[len(good) :] == [None] * len(wrong)
    for text, proof in wrong:
        with pytest.raises(UserError):
            verify_receipt(read_receipt(text.encode()), canonical_json(proof))
    for text, proof in good:
        verify_receipt(
            read_receipt(text.encode()), canonical_json(proof), [(root, None)]
        )
