"""Faults in the process that runs a command, planted by name.

Run as ``python -m tests.audit.faults``: the audit's harness, with a fault at each call.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from importlib import import_module
from typing import Any
from unittest import mock

from curvote.audit.command_harness import run_command, serve
from curvote.audit.command_release import (
    CommandHarness,
    CommandRelease,
    shared_harness,
)
from curvote.audit.release import People
from curvote.base.entropy import SeededEntropy, SystemEntropy, Words
from curvote.client import consent
from curvote.ledger import session
from curvote.wire import envelope, strict_json

# The name of a fault, or "module:name", and a seed.
Fault = tuple[str, int]


@contextmanager
def plant_fault(name: str, seed: int) -> Iterator[None]:
    """Plant the fault ``name`` in the client's modules."""
    module, _, fault = name.rpartition(":")
    faults = vars(import_module(module)) if module else _FAULTS
    with faults[fault](seed):
        yield


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

    return mock.patch.object(session, "seal_message", seal_extra)


def _overwrite_envelope(seed: int) -> Any:
    """Write over an envelope that was published."""
    del seed
    honest = session._check_released

    def release_anew(entry: Any, context: Any) -> Any:
        path = honest(entry, context)
        path.write_bytes(path.read_bytes()[:-1] + b"\r\n")
        return path

    return mock.patch.object(session, "_check_released", release_anew)


def _draw_before_check(seed: int) -> Any:
    """Draw, and write, before it is known whether the cap has room."""
    del seed
    honest = session._reserve

    def draw_first(pending: Any, *rest: Any) -> None:
        for entry in pending:
            entry.place.final.write_bytes(entry.make())
        honest(pending, *rest)

    faults = ExitStack()
    faults.enter_context(mock.patch.object(consent, "refuse_excess_budget"))
    faults.enter_context(mock.patch.object(session, "_reserve", draw_first))
    return faults


_FAULTS: Mapping[str, Callable[[int], Any]] = {
    # The noise comes from a seed that others know.
    "seeded": lambda seed: mock.patch.object(
        SystemEntropy, "words", SeededEntropy(seed).words
    ),
    "same_for_two": _shared_words,
    "beside": _extra_field,
    # Texts have their natural length.
    "unpadded": lambda seed: mock.patch.object(
        envelope, "_pad_content", strict_json.canonical_json
    ),
    "anew": _overwrite_envelope,
    "early": _draw_before_check,
}


def with_fault(
    honest: CommandRelease, plant: Callable[[CommandRelease, People], Fault]
) -> CommandRelease:
    """Return a release in whose process a fault is planted for these people."""

    class Faulty(type(honest)):  # type: ignore[misc]
        def harness(self) -> CommandHarness:
            return shared_harness("tests.audit.faults")

        def call(self, people: People, **request: Any) -> Any:
            return super().call(people, fault=plant(self, people), **request)

    return Faulty(**{field.name: vars(honest)[field.name] for field in fields(honest)})


def run_faulty(entry: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Return what one call does with its fault."""
    with plant_fault(*request["fault"]):
        return run_command(entry, request)


if __name__ == "__main__":
    serve(run_faulty)
