"""Key tree of invitations: all of a round from one secret, and parts to hand on.

The secret of a node gives those of its 256 children by HMAC (Goldreich, Goldwasser &
Micali 1986), and a leaf gives the id and the key of one invitation. Whoever deals
invitations out is given the nodes above a part of the leaves, and can make no other.
An id is 12 bytes of its leaf's code, and its place, masked by them: a stranger learns
neither the place nor another id.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from secrets import token_bytes
from typing import Annotated, Any, Final

from pydantic import Field

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.wire.envelope import Digest, Invitation
from curvote.wire.signing import hmac_sha256
from curvote.wire.strict_json import StrictForm, read_form
from curvote.wire.task import AnyTask, Word

DEPTH: Final = 4  # bytes of a place
LARGEST: Final = 256**DEPTH
TREE_FORMAT: Final = 5
_TAG_BYTES: Final = 12


class _NodeForm(StrictForm):
    path: Annotated[str, Field(pattern=r"^([0-9a-f]{2}){0,4}$")]
    secret: Digest


class _TreeForm(StrictForm):
    format: Annotated[int, Field(ge=TREE_FORMAT, le=TREE_FORMAT)]
    nodes: Annotated[list[_NodeForm], Field(min_length=1, max_length=256 * 2 * DEPTH)]
    mask: Digest
    start: Annotated[int, Field(ge=0, lt=LARGEST)]
    count: Annotated[int, Field(ge=1, le=LARGEST)]
    subjects: Annotated[int, Field(ge=1, lt=2**31)] | None
    task: Digest
    asks: Word
    signer: Digest | None
    seal_to: Digest | None


@dataclass(frozen=True)
class InvitationTree:
    """The invitations at the places ``start`` to ``start + count`` of a round.

    ``nodes`` are the secrets (64 hex digits) above them, by path. Where the task is
    about ``subjects``, each in turn is what an invitation is about. All else is as in
    an `Invitation`.
    """

    nodes: dict[str, str] = field(repr=False)
    mask: str = field(repr=False)
    start: int
    count: int
    subjects: int | None
    task: str
    asks: str
    signer: str | None = None
    seal_to: str | None = None

    @classmethod
    def grow(
        cls,
        task: AnyTask,
        count: int,
        signer: str | None = None,
        seal_to: str | None = None,
    ) -> InvitationTree:
        """Return a new tree of ``count`` invitations to one task, at most 2^32."""
        if validate.at_least(1, count=count) > LARGEST:
            raise UserError(f"a tree has at most {LARGEST:,} invitations, not {count}.")
        root = token_bytes(32)
        mask, digest = hmac_sha256(root, b"mask").hex(), task.digest()
        terms = 0, count, task.subject_count, digest, task.asks, signer, seal_to
        return cls({"": root.hex()}, mask, *terms)

    def part(self, start: int, count: int) -> InvitationTree:
        """Return the tree of some of the places, which gives no other; else UserError.

        It holds the fewest nodes that cover them.
        """
        end, last = start + validate.at_least(1, count=count), self.start + self.count
        if not self.start <= start < end <= last:
            raise UserError(
                f"places {start} to {end - 1} are not all in this tree, which holds"
                f" {self.start} to {last - 1}."
            )
        nodes, place = {}, start
        while place < end:
            width = 1
            while place % (width * 256) == 0 and place + width * 256 <= end:
                width *= 256
            path = place.to_bytes(DEPTH, "big")[: DEPTH - (width.bit_length() - 1) // 8]
            nodes[path.hex()] = self._secret(path).hex()
            place += width
        terms = start, count, self.subjects, self.task, self.asks
        return InvitationTree(nodes, self.mask, *terms, self.signer, self.seal_to)

    def invitation(self, place: int) -> Invitation:
        """Return the invitation at a place."""
        leaf = self._secret(place.to_bytes(DEPTH, "big"))
        tag = _tag(leaf)
        name = (self._masked(place.to_bytes(DEPTH, "big"), tag) + tag).hex()
        about = None if self.subjects is None else place % self.subjects
        ends = about, self.signer, self.seal_to
        return Invitation(name, _key(leaf), self.task, self.asks, *ends)

    def __iter__(self) -> Iterator[Invitation]:
        """Yield all invitations, in order of place."""
        for place in range(self.start, self.start + self.count):
            yield self.invitation(place)

    def place(self, name: str) -> int | None:
        """Return the place of an invitation's id; None: it is none of this tree's."""
        octets = bytes.fromhex(name)
        tag = octets[DEPTH:]
        path = self._masked(octets[:DEPTH], tag)
        place = int.from_bytes(path, "big")
        if not self.start <= place < self.start + self.count:
            return None
        return place if hmac.compare_digest(_tag(self._secret(path)), tag) else None

    def to_json(self) -> dict[str, Any]:
        """Return the tree as plain JSON values, its secrets included."""
        nodes = [{"path": p, "secret": s} for p, s in sorted(self.nodes.items())]
        return {"format": TREE_FORMAT} | vars(self) | {"nodes": nodes}

    @classmethod
    def from_json(cls, text: Any) -> InvitationTree:
        """Build the tree that `to_json` wrote; anything else is a UserError."""
        fields = dict(read_form(_TreeForm, text, "not a tree of invitations: "))
        del fields["format"]
        nodes = {node.path: node.secret for node in fields.pop("nodes")}
        return cls(nodes, **fields)

    def _secret(self, path: bytes) -> bytes:
        """Return the secret of the node at a path below one of the nodes."""
        for end in range(len(path) + 1):
            if secret := self.nodes.get(path[:end].hex()):
                return _descend(bytes.fromhex(secret), path[end:])
        raise UserError("the tree lacks the secret of one of its places.")

    def _masked(self, path: bytes, tag: bytes) -> bytes:
        mask = hmac_sha256(bytes.fromhex(self.mask), tag)
        return bytes(a ^ b for a, b in zip(path, mask, strict=False))


def _descend(secret: bytes, path: bytes) -> bytes:
    """Return the secret at a path below a node; all but the last step are cached."""
    if not path:
        return secret
    above = _descend_cached(secret, path[:-1]) if len(path) > 1 else secret
    return hmac_sha256(above, b"node" + path[-1:])


_descend_cached = lru_cache(maxsize=1 << 12)(_descend)


def _tag(leaf: bytes) -> bytes:
    return hmac_sha256(leaf, b"id")[:_TAG_BYTES]


def _key(leaf: bytes) -> str:
    return hmac_sha256(leaf, b"key").hex()
