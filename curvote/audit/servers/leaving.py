"""Checks of a server's message: declared fields, declared draw, own noise."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from curvote.entropy import SeededEntropy, SystemEntropy, Words
from curvote.errors import UserError
from curvote.protocols.message import payload_at
from curvote.protocols.transfer.messages import ReleasePayload
from curvote.strict_json import canonical_json
from curvote.transfer.releasing import check_release

if TYPE_CHECKING:
    from curvote.audit.servers.subject import TableSubject
    from curvote.protocols.message import ClientData

SEEDS = 8
# Of two servers' numbers chance makes a few alike: sigma is 16 steps at least.
EQUAL_SHARE = 0.5


class SeededSystemEntropy(SystemEntropy):
    """Seeded words in the operating system's place."""

    def __init__(self, seed: int) -> None:
        self._words = SeededEntropy(seed)

    def words(self, n: int) -> Words:
        """Return the next ``n`` words of the seed."""
        return self._words.words(n)


def check_fields(subject: TableSubject) -> str | None:
    """Return a finding if more than the declared fields leaves or differs."""
    visible = []
    for x in subject.worst.tables:
        message = payload_at(subject.message.draw(subject.task, x, SeededEntropy(1)), 0)
        undeclared = sorted(set(message) - set(ReleasePayload.model_fields))
        if undeclared:
            return f"{', '.join(undeclared)} leaves beside what is declared"
        why = _check_stored(subject, message)
        if why:
            return why
        visible.append(canonical_json(message | {"values": len(message["values"])}))
    return None if len(set(visible)) == 1 else "more than the values tells neighbours"


def _check_stored(subject: TableSubject, message: dict[str, Any]) -> str | None:
    """Return why a message is no release of this server, or None."""
    ReleasePayload.model_validate(message)
    try:
        release = check_release(subject.task, message["n"], message["values"])
    except UserError as error:
        return str(error)
    if release.to_json() != message | {"task": subject.task.digest()}:
        return "a stored release holds other things than what was sent"
    return None


def check_path(subject: TableSubject) -> str | None:
    """Return a finding if the message is not sums plus declared noise."""
    for seed, x in enumerate(subject.worst.tables):
        message = subject.message.draw(subject.task, x, SeededSystemEntropy(seed))
        sums = subject.message.sums(subject.task, x)
        noise = subject.message.noise(subject.task, len(x.z))
        if not np.array_equal(
            message["values"][0], noise.add(sums, SeededEntropy(seed))
        ):
            return "what leaves is not the sums with the declared noise"
    return None


def check_streams(subject: TableSubject) -> str | None:
    """Return a finding if noise depends on more than task, server and seed."""
    first_table, *other_tables = subject.worst.tables
    server_noise = _seeded_noise(subject, first_table)
    if any(
        not np.array_equal(server_noise, _seeded_noise(subject, x))
        for x in other_tables
    ):
        return "with one seed the noise depends on the records"
    other_tasks = {
        "another server": replace(subject.task, servers=_renamed_server(subject.task)),
        "another time": replace(subject.task, number=subject.task.number + 1),
        "another grid": replace(subject.task, seed=subject.task.seed + 1),
    }
    for label, task in other_tasks.items():
        if _mostly_equal(
            server_noise, _seeded_noise(replace(subject, task=task), first_table)
        ):
            return f"with one seed {label} gets the same noise"
    first, second = (
        subject.message.draw(subject.task, first_table, SystemEntropy())
        for _ in range(2)
    )
    if np.array_equal(first["values"], second["values"]):
        return "the operating system gives the same noise twice"
    return None


def _renamed_server(task: Any) -> dict[str, Any]:
    """Return the task's servers under another name."""
    return {"another": task.servers[task.server]}


def _seeded_noise(subject: TableSubject, x: ClientData) -> Any:
    """Return the noise of some seeded releases, (SEEDS, length)."""
    sums = subject.message.sums(subject.task, x)
    draws = (
        subject.message.draw(subject.task, x, SeededEntropy(seed))["values"][0]
        for seed in range(SEEDS)
    )
    return np.stack([values - sums for values in draws])


def _mostly_equal(first: Any, second: Any) -> bool:
    """Return whether many numbers are the same up to sign."""
    return bool(np.mean(np.abs(first) == np.abs(second)) > EQUAL_SHARE)
