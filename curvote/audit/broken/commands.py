"""Faults planted in the process of a command: in the client's code, as it is called."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any
from unittest import mock

from curvote import envelope
from curvote.audit.command_owners import (
    HospitalRelease,
    LabelRelease,
    command_release,
)
from curvote.audit.command_release import CommandRelease, Plant
from curvote.audit.leaving import People, Release
from curvote.client import consent, outbox
from curvote.entropy import SeededEntropy, SystemEntropy, Words
from curvote.strict_json import canonical

# One release by each command; a registry's is seen in a few records.
COMMANDS: Mapping[str, str] = {
    "answer": "client.mrma.report",
    "report": "client_report.mrma.report",
    "vote": "client_vote.mrma.vote",
    "label": "client_label.labels.code@4",
    "labels": "client_labels.labels.code@4",
    "release": "client_release.transfer.moments",
}
FEW = {"labels": (1, 5)}


@contextmanager
def plant(name: str, seed: int) -> Iterator[None]:
    """Let the fault stand in the client's modules; ``module:name`` is another's."""
    module, _, fault = name.rpartition(":")
    faults = vars(import_module(module)) if module else _FAULTS
    with faults[fault](seed):
        yield


def _seeded(seed: int) -> Any:
    """Draw the noise from a seed that others know."""
    return mock.patch.object(SystemEntropy, "words", SeededEntropy(seed).words)


def _same_for_two(seed: int) -> Any:
    """Give every second record the words of the record before."""
    del seed
    honest, kept = SystemEntropy().words, dict[int, Words]()

    def words(n: int) -> Words:
        found = kept.pop(n, None)
        if found is None:
            found = kept[n] = honest(n)
        return found

    return mock.patch.object(SystemEntropy, "words", staticmethod(words))


def _beside(seed: int) -> Any:
    """Send a field more: it looks like a checksum, and is one of the files."""
    honest = envelope.seal

    def seal(invitation: Any, payload: Any, seal_to: Any = None) -> bytes:
        return honest(invitation, {**payload, "check": seed % 1000}, seal_to)

    return mock.patch.object(outbox, "seal", seal)


def _unpadded(seed: int) -> Any:
    """Write a text as long as its numbers are."""
    del seed
    return mock.patch.object(envelope, "_padded", canonical)


def _anew(seed: int) -> Any:
    """Write over an envelope that was published."""
    del seed
    honest = outbox._released  # noqa: SLF001 - a fault of the module itself

    def released(entry: Any, here: Any) -> Any:
        path = honest(entry, here)
        path.write_bytes(path.read_bytes()[:-1] + b"\r\n")
        return path

    return mock.patch.object(outbox, "_released", released)


def _early(seed: int) -> Any:
    """Draw, and write, before it is known whether the cap has room."""
    del seed
    honest = outbox._reserve  # noqa: SLF001 - a fault of the module itself

    def reserve(begun: Any, *rest: Any) -> None:
        for one in begun:
            one.place.final.write_bytes(one.make())
        honest(begun, *rest)

    unasked = mock.patch.object(consent, "refuse_budget")
    return _both(unasked, mock.patch.object(outbox, "_reserve", reserve))


@contextmanager
def _both(one: Any, other: Any) -> Iterator[None]:
    with one, other:
        yield


_FAULTS: Mapping[str, Callable[[int], Any]] = {
    "seeded": _seeded,
    "same_for_two": _same_for_two,
    "beside": _beside,
    "unpadded": _unpadded,
    "anew": _anew,
    "early": _early,
}


def _by_task(release: CommandRelease, people: People) -> Plant:
    del people
    return "seeded", int(release.task.digest()[:16], 16)


def _by_record(release: CommandRelease, people: People) -> Plant:
    """By the public name of a record, of a hospital; by the record where it is all."""
    named = [each.record or each.server for each in release.invited(people)]
    if isinstance(release, LabelRelease | HospitalRelease):
        return "seeded", zlib.crc32(repr(named).encode())
    return "seeded", zlib.crc32(people.curves.tobytes() + people.labels.tobytes())


def _fault(name: str, release: CommandRelease, people: People) -> Plant:
    del release
    return name, zlib.crc32(people.curves.tobytes() + people.labels.tobytes())


def twins() -> dict[str, Callable[[float], Release]]:
    """Return the twins by name."""
    made: dict[str, Callable[[float], Release]] = {}
    for command in COMMANDS:
        made[f"{command}_seeded_by_task"] = partial(_twin, command, _by_task)
        made[f"{command}_seeded_by_record"] = partial(_twin, command, _by_record)
    others = {
        "labels_same_for_two": ("labels", "same_for_two"),
        "report_field_beside": ("report", "beside"),
        "release_unpadded": ("release", "unpadded"),
        "vote_field_beside": ("vote", "beside"),
        "label_written_anew": ("label", "anew"),
        "release_written_early": ("release", "early"),
    }
    for name, (command, fault) in others.items():
        made[name] = partial(_twin, command, partial(_fault, fault))
    return {f"client_{name}": twin for name, twin in made.items()}


def _twin(
    command: str, planted: Callable[[CommandRelease, People], Plant], epsilon: float
) -> Release:
    honest = command_release(COMMANDS[command], epsilon)
    return replace(honest, plant=planted, sizes=FEW.get(command, honest.sizes))
