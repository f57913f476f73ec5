"""Makes envelope.json: from words of entropy to a noised message and its envelope.

`python -m tests.vectors.envelope` writes the file anew, which is seldom right: whoever
wrote a client has tested it against the one that is there.
"""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from curvote.base.entropy import SeededEntropy, Words
from curvote.client.report import Reporter
from curvote.client.table import OwnerRecord
from curvote.curves.basis import projection
from curvote.curves.encoding import Encoding
from curvote.mechanisms.laplace import Laplace
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages.answer import answer_task, client_inputs
from curvote.wire import signing
from curvote.wire.envelope import Invitation, seal_message
from curvote.wire.merkle import MerkleTree, leaves_document, proof_document
from curvote.wire.receipt import Receipt, ReceiptKey, envelope_salt
from curvote.wire.signing import ServerKey
from curvote.wire.task import Candidates, Task

FILE: Final = Path(__file__).with_suffix(".json")
KEY: Final = ServerKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
POINTS: Final = 24
EPSILONS: Final = (2.0**-20, 0.01, 0.1, 0.5, 1.0, 1.5, 2.0, 10 / 6, 10.0, 60.0, 1000.0)
ABOUT: Final = (
    "Made by tests/vectors/envelope.py; docs/envelope.md says what each value is. Keys"
    " are for tests only. Words are 64 bits as 16 hex digits, in the order in which"
    " they are taken."
)


class Recorded:
    """Words from a seed that are remembered."""

    def __init__(self, seed: int) -> None:
        self._source, self.taken = SeededEntropy(seed), list[int]()

    def words(self, n: int) -> Words:
        """Return the next ``n`` words."""
        found = self._source.words(n)
        self.taken += map(int, found)
        return found


class Told:
    """The words that a vector gives, each once; asked for more: an error."""

    def __init__(self, words: list[str]) -> None:
        self._left = [int(word, 16) for word in words]

    def words(self, n: int) -> Words:
        """Return the next ``n`` words."""
        assert n <= len(self._left), "more words are asked for than the vector has"
        taken, self._left = self._left[:n], self._left[n:]
        return np.array(taken, dtype=np.uint64)


def report_task() -> Task:
    """Return a task as that of phonemes-remote, on fewer points."""
    constants = {
        "centre": np.array([38.0, 3.5, -1.65, -1.23, 0.11]),
        "scale": np.array([4.43, 3.72, 1.75, 1.58, 1.19]),
    }
    basis = projection("fourier", 5, np.linspace(0, 8, POINTS))
    encoding = Encoding(basis, "tanh", constants, "rescaled")
    return Task(encoding, ("iy", "sh"), 10.0, "mrma", "report", mechanism="laplace")


def vote_task() -> Task:
    """Return the task of the round after it, with two candidates."""
    coef = np.array([[0.5, -1.25, 0.75, 0.0, 2.0], [-1.0, 0.5, 0.25, 1.5, -0.75]])
    up = Candidates(coef, np.array([0.1, -0.2]))
    asked = replace(report_task(), asks="vote", mechanism="binary_rr", candidates=up)
    return replace(asked, epsilon=2.0)


def curve() -> np.ndarray[Any, Any]:
    """Return a curve that looks like a vowel's: falling, with a hump."""
    t = np.linspace(0, 8, POINTS)
    return np.asarray(np.round(16 - t + 4 * np.exp(-((t - 2) ** 2)), 3))


def message_vector(task: Task, place: int, about: int | None, seed: int) -> Any:
    """Return a task, an invitation and a record, and what becomes of them."""
    number = 2 * seed + (about is not None)
    invitation = Invitation(
        id=bytes(range(number, number + 16)).hex(),
        key=bytes(range(number + 64, number + 96)).hex(),
        task=task.digest(),
        asks=task.asks,
        about=about,
        signer=KEY.fingerprint,
    )
    words, given = Recorded(seed), OwnerRecord(curve(), place)
    told, message = (
        client_inputs(task, given, about),
        answer_task(task, given, about, words),
    )
    line = seal_message(invitation, message)
    return {
        "signed_task": KEY.sign({"task": task.to_json(), "seal_to": None}).decode(),
        "digest": task.digest(),
        "invitation": invitation.to_json(),
        "curve": given.values.tolist(),
        "class": task.classes[place],
        "coefficients": told.coefficients[0].tolist(),
        "z": told.z[0].tolist(),
        "words": [f"{word:016x}" for word in words.taken],
        "message": message,
        "content": signing.from_base64url(json.loads(line)["payload"]).decode(),
        "envelope": line.decode(),
        "file_name": invitation.file_name,
    }


def split_vector(epsilon: float, d: int) -> Any:
    """Return how a report's epsilon is shared out."""
    made = Reporter.build(d, epsilon, "laplace", "equal")
    each: Any = made.features
    shared = {"label": made.label.epsilon, "each": each.scalar.epsilon}
    return {"epsilon": epsilon, "d": d, **shared}


def constants_vector(epsilon: float) -> Any:
    """Return the integers of the two samplers."""
    noise = Laplace(epsilon=epsilon)
    integers = {"s": noise.noise.s, "bits": noise.noise.bits, "limit": noise.limit}
    keep = f"{BinaryRR(epsilon=epsilon).threshold:016x}"
    return {"epsilon": epsilon, **integers, "threshold": keep}


def draws_vector(epsilon: float, seed: int) -> Any:
    """Return noised values, and the words that made them."""
    words = Recorded(seed)
    values = np.array([-1.0, 1.0, 0.0, 0.3, -0.7000001, 2.0**-21, 3 * 2.0**-21, -2.5])
    noised = Laplace(epsilon=epsilon).randomize(values, words)
    taken = [f"{word:016x}" for word in words.taken]
    given = {"epsilon": epsilon, "values": values.tolist()}
    return {**given, "words": taken, "noised": noised.tolist()}


def receipts_vector(digest: str, epsilon: float, envelopes: list[bytes]) -> Any:
    """Return the receipts of envelopes, and how the first is in their tree."""
    upload = bytes(range(64, 96))
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32, 64)))
    salts = [envelope_salt(upload, data) for data in envelopes]
    given = [
        Receipt(digest, epsilon, salt.hex(), hashlib.sha256(data).hexdigest())
        for salt, data in zip(salts, envelopes, strict=True)
    ]
    leaves = [bytes.fromhex(receipt.leaf) for receipt in given]
    tree, signing_key = MerkleTree(leaves), ReceiptKey.of_round(KEY, digest, key)
    return {
        "upload_salt": upload.hex(),
        "envelopes": [data.decode() for data in envelopes],
        "receipts": [receipt.to_json() for receipt in given],
        "signed": signing_key.sign(given[0]),
        "leaves": leaves_document(tree, digest),
        "path": proof_document(tree, digest, leaves[0]),
    }


def made() -> dict[str, Any]:
    """Return all vectors."""
    report, vote = (
        message_vector(report_task(), 1, None, 1),
        message_vector(vote_task(), 0, 1, 2),
    )
    envelopes = [report["envelope"].encode(), vote["envelope"].encode(), b"third\n"]
    return {
        "about": ABOUT,
        "fingerprint": KEY.fingerprint,
        "report": report,
        "vote": vote,
        "receipts": receipts_vector(report["digest"], 10.0, envelopes),
        "shares": [split_vector(e, d) for e in (0.1, 1.0, 10.0) for d in (1, 5, 7, 99)],
        "constants": [constants_vector(epsilon) for epsilon in EPSILONS],
        "draws": [draws_vector(e, 10 + i) for i, e in enumerate((0.25, 1.0, 5.0))],
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(made(), indent=1) + "\n", encoding="utf-8")
