"""What leaves a server: declared fields, the declared draw, noise that is its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from curvote.entropy import SeededEntropy, SystemEntropy, Words
from curvote.errors import UserError
from curvote.protocols.message import row
from curvote.protocols.transfer.messages import ReleasePayload
from curvote.strict_json import canonical
from curvote.transfer.releasing import received

if TYPE_CHECKING:
    from curvote.audit.servers.subject import TableSubject
    from curvote.protocols.message import Known

SEEDS = 8
# Of two servers' numbers chance makes a few alike: sigma is 16 steps at least.
ALIKE = 0.5


class Chosen(SystemEntropy):
    """Chosen words in the operating system's place."""

    def __init__(self, seed: int) -> None:
        self._words = SeededEntropy(seed)

    def words(self, n: int) -> Words:
        """Return the next ``n`` words of a seed."""
        return self._words.words(n)


def fields(subject: TableSubject) -> str | None:
    """Ask whether all that leaves is declared, and only ``values`` tell neighbours."""
    seen = []
    for x in subject.worst.tables:
        sent = row(subject.message.draw(subject.task, x, SeededEntropy(1)), 0)
        beside = sorted(set(sent) - set(ReleasePayload.model_fields))
        if beside:
            return f"{', '.join(beside)} leaves beside what is declared"
        why = _form(subject, sent)
        if why:
            return why
        seen.append(canonical(sent | {"values": len(sent["values"])}))
    return None if len(set(seen)) == 1 else "more than the values tells neighbours"


def _form(subject: TableSubject, sent: dict[str, Any]) -> str | None:
    """Say why a release is not one of this server and these numbers, if it is none."""
    ReleasePayload.model_validate(sent)
    try:
        told = received(subject.task, sent["n"], sent["values"])
    except UserError as error:
        return str(error)
    if told.to_json() != sent | {"task": subject.task.digest()}:
        return "a stored release holds other things than what was sent"
    return None


def path(subject: TableSubject) -> str | None:
    """Ask whether what leaves is the sums and the declared noise, word for word."""
    for seed, x in enumerate(subject.worst.tables):
        sent = subject.message.draw(subject.task, x, Chosen(seed))
        sums = subject.message.sums(subject.task, x)
        noise = subject.message.noise(subject.task, len(x.z))
        if not np.array_equal(sent["values"][0], noise.add(sums, SeededEntropy(seed))):
            return "what leaves is not the sums with the declared noise"
    return None


def streams(subject: TableSubject) -> str | None:
    """Ask whether noise depends on task, server and seed, and on nothing else."""
    one, *others = subject.worst.tables
    own = _noise(subject, one)
    if any(not np.array_equal(own, _noise(subject, x)) for x in others):
        return "with one seed the noise depends on the records"
    strangers = {
        "another server": replace(subject.task, servers=_renamed(subject.task)),
        "another time": replace(subject.task, number=subject.task.number + 1),
        "another grid": replace(subject.task, seed=subject.task.seed + 1),
    }
    for who, task in strangers.items():
        if _alike(own, _noise(replace(subject, task=task), one)):
            return f"with one seed {who} gets the same noise"
    first, second = (
        subject.message.draw(subject.task, one, SystemEntropy()) for _ in range(2)
    )
    if np.array_equal(first["values"], second["values"]):
        return "the operating system gives the same noise twice"
    return None


def _renamed(task: Any) -> dict[str, Any]:
    return {"another": task.servers[task.server]}


def _noise(subject: TableSubject, x: Known) -> Any:
    """Return the noise of some seeded releases, (SEEDS, length)."""
    sums = subject.message.sums(subject.task, x)
    drawn = (
        subject.message.draw(subject.task, x, SeededEntropy(seed))["values"][0]
        for seed in range(SEEDS)
    )
    return np.stack([values - sums for values in drawn])


def _alike(one: Any, other: Any) -> bool:
    """Say whether many numbers are the same, but for the sign perhaps."""
    return bool(np.mean(np.abs(one) == np.abs(other)) > ALIKE)
