"""Tasks, invitations and envelopes keep every byte, and are read as they were written.

Messages are drawn from seeded words for the records that the audit tries first.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.audit import choice
from curvote.base.entropy import SeededEntropy
from curvote.chain import lookup
from curvote.chain.lookup import all_systems
from curvote.checks import examples
from curvote.messages.message import message_of, parse_message, payload_at
from curvote.systems.transfer.audit import tables as servers
from curvote.wire.envelope import Invitation, is_genuine, read_envelope, seal_message
from tests import valid_tasks
from tests.pins import pinned
from tests.vectors.envelope import KEY

KIND = "envelopes"
NAMES = [*examples.message_names(), *examples.code_names(), *servers.example_names()]


def facts(name: str) -> dict[str, Any]:
    """Return the task of a message as it is published, and one envelope about it."""
    subject = choice.shipped(name, 1.0)
    task = lookup.read_task(pinned.portable(subject.task.to_json()))
    message = message_of(task)
    known = subject.inputs(np.random.default_rng(0))[0]
    payload = payload_at(message.draw(task, known, SeededEntropy(1)), 0)
    judge = getattr(known, "candidate", None)
    invitation = Invitation(
        id=bytes(range(16)).hex(),
        key=bytes(range(32)).hex(),
        task=task.digest(),
        asks=task.asks,
        about=None if judge is None else int(judge[0]),
        signer=KEY.fingerprint,
        **{"record": "a"} if message.per_record else {},
        **{"server": servers.SERVER} if message.per_table else {},
    )
    payload |= {"record": "a"} if message.per_record else {}
    line = seal_message(invitation, payload)
    signed = KEY.sign({"task": task.to_json(), "seal_to": None})
    return {
        "task": task.to_json(),
        "digest": task.digest(),
        "signed": pinned.digest(signed.decode()),
        "invitation": invitation.to_json(),
        "file": invitation.file_name,
        "payload": pinned.digest(payload, 17) if message.per_table else payload,
        "envelope": pinned.digest(line.decode())
        if message.per_table
        else line.decode(),
    }


def digests() -> dict[str, str]:
    """Return a digest of all small tasks of each message, however it is encoded."""
    found: dict[str, list[str]] = {}
    for name, task in valid_tasks.tasks().items():
        if task.encoding.smooth:
            continue  # what tasks were before curves had channels and times
        portable = lookup.read_task(pinned.portable(task.to_json()))
        found.setdefault(name.rpartition("-")[0], []).append(portable.digest())
    return {name: pinned.digest(every) for name, every in found.items()}


def every(_: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    """Yield the facts of all messages."""
    del patch
    yield "tasks", digests()
    for name in NAMES:
        yield name, facts(name)


def test_every_message_of_every_system_is_pinned() -> None:
    """Those that only studies simulate by the digests of their tasks."""
    named = {tuple(name.partition("@")[0].split(".")) for name in NAMES}
    named |= {tuple(name.split("-")) for name in pinned.recorded(KIND, "tasks")}
    named |= {("transfer", "release")}
    assert named >= {(one.name, asks) for one in all_systems() for asks in one.messages}


def test_all_small_tasks_keep_their_digests() -> None:
    """Each basis, rescaling and mechanism."""
    assert digests() == pinned.recorded(KIND, "tasks")


@pytest.mark.parametrize("name", NAMES)
def test_what_travels_keeps_its_bytes(name: str) -> None:
    """The task, its signature, the invitation, the message and its envelope."""
    assert pinned.as_json(facts(name)) == pinned.recorded(KIND, name)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_written_is_read(name: str) -> None:
    """The task has its digest, the invitation its form, the message is admitted."""
    known = pinned.recorded(KIND, name)
    task, invitation = (
        lookup.read_task(known["task"]),
        Invitation.from_json(known["invitation"]),
    )
    assert task.digest() == known["digest"] == invitation.task
    assert invitation.to_json() == known["invitation"]
    if isinstance(known["payload"], dict):
        found = read_envelope(known["envelope"].encode())
        assert is_genuine(found, invitation.key)
        assert (
            parse_message(task, invitation.subject, found.payload) == known["payload"]
        )
