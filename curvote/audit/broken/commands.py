"""Broken twins of releases: faults in a command's process, tables that tell."""

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
from curvote.strict_json import canonical_json

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
def plant_fault(name: str, seed: int) -> Iterator[None]:
    """Plant the fault ``name`` in the client's modules."""
    module, _, fault = name.rpartition(":")
    faults = vars(import_module(module)) if module else _FAULTS
    with faults[fault](seed):
        yield


def _seeded_noise(seed: int) -> Any:
    """Draw the noise from a seed that others know."""
    return mock.patch.object(SystemEntropy, "words", SeededEntropy(seed).words)


def _shared_words(seed: int) -> Any:
    """Give every second record the words of the record before."""
    del seed
    honest, reused = SystemEntropy().words, dict[int, Words]()

    def repeat_words(n: int) -> Words:
        reused_words = reused.pop(n, None)
        if reused_words is None:
            reused_words = reused[n] = honest(n)
        return reused_words

    return mock.patch.object(SystemEntropy, "words", staticmethod(repeat_words))


def _extra_field(seed: int) -> Any:
    """Send a field more: it looks like a checksum, and is one of the files."""
    honest = envelope.seal_message

    def seal_extra(invitation: Any, payload: Any, seal_to: Any = None) -> bytes:
        return honest(invitation, {**payload, "check": seed % 1000}, seal_to)

    return mock.patch.object(outbox, "seal_message", seal_extra)


def _unpadded_text(seed: int) -> Any:
    """Return the fault that writes texts at their natural length."""
    del seed
    return mock.patch.object(envelope, "_pad_content", canonical_json)


def _overwrite_envelope(seed: int) -> Any:
    """Write over an envelope that was published."""
    del seed
    honest = outbox._check_released  # noqa: SLF001 - a fault of the module itself

    def release_anew(entry: Any, context: Any) -> Any:
        path = honest(entry, context)
        path.write_bytes(path.read_bytes()[:-1] + b"\r\n")
        return path

    return mock.patch.object(outbox, "_check_released", release_anew)


def _draw_before_check(seed: int) -> Any:
    """Draw, and write, before it is known whether the cap has room."""
    del seed
    honest = outbox._reserve  # noqa: SLF001 - a fault of the module itself

    def draw_first(pending: Any, *rest: Any) -> None:
        for entry in pending:
            entry.place.final.write_bytes(entry.make())
        honest(pending, *rest)

    unchecked = mock.patch.object(consent, "refuse_excess_budget")
    return _nested(unchecked, mock.patch.object(outbox, "_reserve", draw_first))


@contextmanager
def _nested(first: Any, second: Any) -> Iterator[None]:
    with first, second:
        yield


_FAULTS: Mapping[str, Callable[[int], Any]] = {
    "seeded": _seeded_noise,
    "same_for_two": _shared_words,
    "beside": _extra_field,
    "unpadded": _unpadded_text,
    "anew": _overwrite_envelope,
    "early": _draw_before_check,
}


def _task_seed(release: CommandRelease, people: People) -> Plant:
    del people
    return "seeded", int(release.task.digest()[:16], 16)


def _record_seed(release: CommandRelease, people: People) -> Plant:
    """Return a seed by the public name of a record or hospital."""
    named = [
        invitation.record or invitation.server
        for invitation in release.invitations_for(people)
    ]
    if isinstance(release, LabelRelease | HospitalRelease):
        return "seeded", zlib.crc32(repr(named).encode())
    return "seeded", zlib.crc32(people.curves.tobytes() + people.labels.tobytes())


def _planted_fault(name: str, release: CommandRelease, people: People) -> Plant:
    del release
    return name, zlib.crc32(people.curves.tobytes() + people.labels.tobytes())


def command_twins() -> dict[str, Callable[[float], Release]]:
    """Return the twins by name."""
    twin_of: dict[str, Callable[[float], Release]] = {}
    for command in COMMANDS:
        twin_of[f"{command}_seeded_by_task"] = partial(
            _command_twin, command, _task_seed
        )
        twin_of[f"{command}_seeded_by_record"] = partial(
            _command_twin, command, _record_seed
        )
    faults = {
        "labels_same_for_two": ("labels", "same_for_two"),
        "report_field_beside": ("report", "beside"),
        "release_unpadded": ("release", "unpadded"),
        "vote_field_beside": ("vote", "beside"),
        "label_written_anew": ("label", "anew"),
        "release_written_early": ("release", "early"),
    }
    for name, (command, fault) in faults.items():
        twin_of[name] = partial(_command_twin, command, partial(_planted_fault, fault))
    return {f"client_{name}": twin for name, twin in twin_of.items()}


def _command_twin(
    command: str, planted: Callable[[CommandRelease, People], Plant], epsilon: float
) -> Release:
    honest = command_release(COMMANDS[command], epsilon)
    return replace(honest, plant=planted, sizes=FEW.get(command, honest.sizes))
