"""Merkle trees over sorted hashes (RFC 6962, 2.1): they tell neither order nor content.

A leaf's node is H(0x00, leaf), an inner one H(0x01, left, right), with SHA-256. An odd
last node is carried up as it is; the root of no leaves is H().
"""

import hashlib
from collections.abc import Iterable


class MerkleTree:
    """The tree over ``leaves`` of 32 bytes, in whatever order they are given."""

    def __init__(self, leaves: Iterable[bytes]) -> None:
        self.leaves = sorted(leaves)

    @property
    def root(self) -> bytes:
        """The root, 32 bytes."""
        level = [_hash(b"\0" + leaf) for leaf in self.leaves]
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=False)
            carried = level[-1:] if len(level) % 2 else []
            level = [_hash(b"\1" + a + b) for a, b in pairs] + carried
        return level[0] if level else _hash(b"")


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
