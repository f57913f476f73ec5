"""Merkle trees over the leaves of accepted envelopes, and what a path proves.

Leaves are 32 bytes and stand in the order of their values, which says nothing of whose
they are or when they came. A leaf's node is SHA-256(0x00, leaf), an inner one
SHA-256(0x01, left, right), so neither passes for the other (RFC 6962, 2.1); the last
node of an odd row is carried up as it is. The tree of no leaf is SHA-256 of nothing.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Any, Final

from pydantic import Field

from curvote.base.errors import UserError
from curvote.wire.strict_json import StrictForm, read_form

LEAF_BYTES: Final = 32
_EMPTY: Final = hashlib.sha256(b"").digest()

# The node beside each on the way up, and the side on which it stands.
Path = Sequence[tuple[str, bytes]]


class MerkleTree:
    """The tree over ``leaves``, of 32 bytes each, in whatever order they are given."""

    def __init__(self, leaves: Iterable[bytes]) -> None:
        self.leaves = sorted(leaves)
        row = [hashlib.sha256(b"\x00" + leaf).digest() for leaf in self.leaves]
        self._rows = [b"".join(row)]
        while len(row) > 1:
            pairs = zip(row[::2], row[1::2], strict=False)
            above = [_inner_node(*pair) for pair in pairs]
            row = above + row[len(row) & ~1 :]
            self._rows.append(b"".join(row))

    @property
    def root(self) -> bytes:
        """The root, 32 bytes."""
        return self._rows[-1] or _EMPTY

    def path(self, leaf: bytes) -> Path:
        """Return the path from a leaf to the root; one that is not there: UserError."""
        place = bisect_left(self.leaves, leaf)
        if self.leaves[place : place + 1] != [leaf]:
            raise UserError(f"no leaf {leaf.hex()[:12]} is in the tree.")
        steps = []
        for row in self._rows[:-1]:
            start = LEAF_BYTES * (place ^ 1)
            if beside := row[start : start + LEAF_BYTES]:
                steps.append(("left" if place % 2 else "right", beside))
            place //= 2
        return steps


def path_root(leaf: bytes, path: Path) -> bytes:
    """Return the root to which a path leads from a leaf."""
    node = hashlib.sha256(b"\x00" + leaf).digest()
    for side, beside in path:
        pair = (beside, node) if side == "left" else (node, beside)
        node = _inner_node(*pair)
    return node


def _inner_node(first: bytes, second: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + first + second).digest()


_Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _CountedForm(StrictForm):
    count: Annotated[int, Field(ge=1)]
    root: _Hex
    task: _Hex


class _LeavesForm(_CountedForm):
    leaves: list[_Hex]


class _ProofForm(_CountedForm):
    leaf: _Hex
    path: list[dict[str, _Hex]]


def leaves_document(tree: MerkleTree, task: str) -> dict[str, Any]:
    """Return all leaves of a task's tree as plain JSON values."""
    return _counted(tree, task) | {"leaves": [leaf.hex() for leaf in tree.leaves]}


def proof_document(tree: MerkleTree, task: str, leaf: bytes) -> dict[str, Any]:
    """Return the path of one leaf of a task's tree as plain JSON values."""
    path = [{side: beside.hex()} for side, beside in tree.path(leaf)]
    return _counted(tree, task) | {"leaf": leaf.hex(), "path": path}


def _counted(tree: MerkleTree, task: str) -> dict[str, Any]:
    return {"count": len(tree.leaves), "root": tree.root.hex(), "task": task}


def check_proof(document: Any, task: str, leaf: str) -> tuple[str, int, bool]:
    """Return root and count of the tree that a document proves a leaf to be in.

    Further whether it proves that the leaf is there once: all leaves do, one path does
    not. UserError: another task's, a leaf that is missing or stands twice, a wrong
    count or order, or a path that does not lead to the root.
    """
    has_all = isinstance(document, dict) and "leaves" in document
    words = "no proof of a receipt: "
    form: _CountedForm
    if has_all:
        all_leaves = read_form(_LeavesForm, document, words)
        form, root = all_leaves, _root_of_all(all_leaves, leaf)
    else:
        proof = read_form(_ProofForm, document, words)
        form, root = proof, _root_of_path(proof, leaf)
    if form.task != task:
        raise UserError(f"it is about task {form.task[:12]}, the receipt {task[:12]}.")
    if root != form.root:
        raise UserError(f"it does not lead to the root that it names, {form.root}.")
    return root, form.count, has_all


def _root_of_all(form: _LeavesForm, leaf: str) -> str:
    leaves = form.leaves
    if leaves != sorted(leaves) or len(leaves) != form.count:
        raise UserError(f"its {len(leaves)} leaves are not {form.count} in order.")
    if twice := next((a for a, b in pairwise(leaves) if a == b), None):
        raise UserError(f"leaf {twice[:12]} stands twice: counted more than once.")
    if leaf not in leaves:
        raise UserError(f"leaf {leaf[:12]} is missing: the envelope was dropped.")
    return MerkleTree(bytes.fromhex(text) for text in leaves).root.hex()


def _root_of_path(form: _ProofForm, leaf: str) -> str:
    steps = [item for step in form.path for item in step.items()]
    sides = {side for side, _ in steps}
    if form.leaf != leaf or len(steps) != len(form.path) or sides - {"left", "right"}:
        raise UserError("its path is none of the receipt's leaf.")
    path = [(side, bytes.fromhex(beside)) for side, beside in steps]
    return path_root(bytes.fromhex(leaf), path).hex()
