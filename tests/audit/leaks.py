"""The bugs of leaks.toml, each as a callable about one record, and the same without it.

A mechanism answers ``call(record)`` or ``call(record, n)``; a command is the installed
one, in a process of its own, and its answer is all that is seen of a call.
"""

# ruff: noqa: D103 - leaks.toml says what each is
import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import fields, replace
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from curvote.audit.command_release import CommandHarness, command_release
from curvote.audit.release import People
from curvote.base.entropy import SeededEntropy, SystemEntropy
from curvote.checks.word_checks import Tape
from curvote.cli.client import answer
from curvote.client import report
from curvote.mechanisms.coordinates import PerCoordinate
from curvote.mechanisms.factory import make
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.systems.mrma import messages
from curvote.wire import envelope

EPSILON = 1.0
NAN = float("nan")
Call = Callable[..., Any]


class Leak(NamedTuple):
    """A callable, its records, what it claims, and whether it is forked."""

    call: Call
    records: Any
    epsilon: float = EPSILON
    delta: float = 0.0
    forks: bool | None = None
    close: Callable[[], None] = lambda: None


def _drawing(mechanism: Any, make_entropy: Call = SystemEntropy) -> Call:
    """Return ``call(record, n)`` of a mechanism."""

    def call(record: Any, n: int) -> Any:
        rows = np.repeat(np.asarray(record)[None], n, axis=0)
        return mechanism.randomize(rows, make_entropy())

    return call


def _laplace(epsilon: float = EPSILON) -> Any:
    return make("laplace", epsilon=epsilon)


def laplace_doubled(bug: bool) -> Leak:
    return Leak(_drawing(_laplace(2 if bug else 1)), (-1.0, 1.0))


def laplace_float(bug: bool) -> Leak:
    rng, honest = np.random.default_rng(), _drawing(_laplace())

    def call(record: float, n: int) -> Any:
        return record + rng.laplace(scale=2, size=n) if bug else honest(record, n)

    return Leak(call, (-1.0, 1.0))


def _quiet(is_quiet: Callable[[float], bool], bug: bool) -> Call:
    honest = _drawing(_laplace())

    def call(record: float, n: int) -> Any:
        return np.full(n, record) if bug and is_quiet(record) else honest(record, n)

    return call


def laplace_quiet_zero(bug: bool) -> Leak:
    return Leak(_quiet(lambda record: record == 0, bug), (-1.0, 1.0))


def laplace_quiet_bin(bug: bool) -> Leak:
    return Leak(_quiet(lambda record: 0.40 <= record < 0.45, bug), (-1.0, 1.0))


def laplace_unclipped(bug: bool) -> Leak:
    honest = _drawing(_laplace())

    def call(record: float, n: int) -> Any:
        clipped = np.clip(record, -1, 1)
        return honest(clipped, n) + (record - clipped if bug else 0)

    return Leak(call, (-5.0, 5.0))


def _answered_as_zero(record: float, n: int) -> Any:
    return _drawing(_laplace())(0.0 if np.isnan(record) else record, n)


def laplace_missing_refused(bug: bool) -> Leak:
    def call(record: float, n: int) -> Any:
        if bug and np.isnan(record):
            raise ValueError("the value is missing")
        return _answered_as_zero(record, n)

    return Leak(call, [0.3, NAN])


def laplace_missing_quiet(bug: bool) -> Leak:
    def call(record: float, n: int) -> Any:
        quiet = bug and np.isnan(record)
        return np.zeros(n) if quiet else _answered_as_zero(record, n)

    return Leak(call, [0.5, NAN])


def laplace_error_names_value(bug: bool) -> Leak:
    rng, honest = np.random.default_rng(), _drawing(_laplace())

    def call(record: float) -> float:
        if rng.random() < 0.02:
            value = f" for {record:g}" if bug else ""
            raise RuntimeError(f"no noise could be drawn{value}")
        return float(honest(record, 1)[0])

    return Leak(call, [0.2, 0.4])


def laplace_coarse_at_tenths(bug: bool) -> Leak:
    honest = _drawing(_laplace())

    def call(record: float, n: int) -> Any:
        drawn = honest(record, n)
        is_tenth = abs(record * 10 - round(record * 10)) < 1e-9
        return np.rint(drawn * 1024) / 1024 if bug and is_tenth else drawn

    return Leak(call, [0.31, 0.3])


def laplace_overflow(bug: bool) -> Leak:
    honest = _drawing(_laplace())

    def call(record: float, n: int) -> Any:
        with np.errstate(over="ignore"):
            squared = np.float64(record) * record if bug else record
            length = np.sqrt(squared) if bug else abs(record)
            clipped = record / max(length, 1.0)
        return honest(clipped, n) + (0 if np.isfinite(squared) else NAN)

    return Leak(call, (-8e307, 8e307))


def laplace_every_third(bug: bool) -> Leak:
    honest, calls = _drawing(_laplace()), dict[float, int]()

    def call(record: float) -> float:
        calls[record] = calls.get(record, 0) + 1
        quiet = bug and calls[record] % 3 == 0
        return record if quiet else float(honest(record, 1)[0])

    return Leak(call, (-1.0, 1.0))


def laplace_forks(bug: bool) -> Leak:
    stream = SeededEntropy(int(SystemEntropy().words(1)[0]))
    source = (lambda: stream) if bug else SystemEntropy
    drawing = _drawing(_laplace(), source)
    # NumPy's generators are excused where nobody asks for forks.
    return Leak(lambda record: float(drawing(record, 1)[0]), (-1.0, 1.0), forks=True)


def laplace_same_seed(bug: bool) -> Leak:
    source = partial(SeededEntropy, 0) if bug else SystemEntropy
    drawing = _drawing(_laplace(), source)
    return Leak(lambda record: float(drawing(record, 1)[0]), (-1.0, 1.0))


def laplace_seed_of_record(bug: bool) -> Leak:
    mechanism = _laplace()

    def call(record: float) -> float:
        seed = abs(hash(record)) % 2**32
        entropy = SeededEntropy(seed) if bug else SystemEntropy()
        return float(mechanism.randomize(np.array([record]), entropy)[0])

    return Leak(call, (-1.0, 1.0))


def sign_one_sided(bug: bool) -> Leak:
    honest = _drawing(make("binary_rr", epsilon=EPSILON))

    def call(record: float, n: int) -> Any:
        return np.full(n, record) if bug and record < 0 else honest(record, n)

    return Leak(call, [-1.0, 1.0])


def sign_doubled(bug: bool) -> Leak:
    mechanism = make("binary_rr", epsilon=1.6 if bug else 1.0)
    return Leak(_drawing(mechanism), [-1.0, 1.0])


def class_next(bug: bool) -> Leak:
    honest = _drawing(make("k_rr", epsilon=EPSILON, n_classes=5))

    def call(record: int, n: int) -> Any:
        drawn = honest(record, n)
        return np.where(drawn == record, drawn, (record + 1) % 5) if bug else drawn

    return Leak(call, [0, 1, 2, 3, 4])


def class_remembered(bug: bool) -> Leak:
    honest = _drawing(make("k_rr", epsilon=EPSILON, n_classes=5))
    rng, before = np.random.default_rng(), [0]

    def call(record: int) -> int:
        remembered, before[0] = before[0], record
        return remembered if bug and rng.random() < 0.1 else int(honest(record, 1)[0])

    return Leak(call, [0, 1, 2, 3, 4])


def subset_true_first(bug: bool) -> Leak:
    mechanism = make("subset_selection", epsilon=EPSILON, n_classes=6, omega=2)

    def call(record: int) -> list[int]:
        packed = mechanism.randomize(np.array([record]), SystemEntropy())[0]
        members = [i for i in range(6) if packed[0] >> (7 - i) & 1]
        return sorted(members, key=lambda i: i != record) if bug else members

    return Leak(call, [0, 1, 4, 5])


def unary_first_bit(bug: bool) -> Leak:
    honest = _drawing(make("unary_symmetric", epsilon=EPSILON, n_classes=4))

    def call(record: int, n: int) -> Any:
        drawn = honest(record, n)
        if bug:
            drawn[:, 0] = (drawn[:, 0] & 0x7F) | (0x80 if record == 0 else 0)
        return drawn

    return Leak(call, [0, 1, 2, 3])


def hadamard_last_class(bug: bool) -> Leak:
    mechanism, bare = (make("hadamard", epsilon=EPSILON, n_classes=3) for _ in "ab")
    # The same columns, more of which support the label.
    vars(bare)["threshold"] = vars(make("binary_rr", epsilon=3 * EPSILON))["threshold"]

    def call(record: int, n: int) -> Any:
        return _drawing(bare if bug and record == 2 else mechanism)(record, n)

    return Leak(call, [0, 1, 2])


def gaussian_third(bug: bool) -> Leak:
    mechanism = make("gaussian", epsilon=EPSILON, d=2, delta=1e-3)
    honest = _drawing(mechanism)

    def call(record: Any, n: int) -> Any:
        drawn = honest(record, n)
        return record + (drawn - record) / 3 if bug else drawn

    return Leak(call, (np.ones(2), -np.ones(2)), EPSILON, 1e-3)


def direction_length(bug: bool) -> Leak:
    mechanism = make("privunit", epsilon=EPSILON, d=3)
    honest = _drawing(mechanism)

    def call(record: Any, n: int) -> Any:
        return honest(record, n) * (np.linalg.norm(record) if bug else 1)

    return Leak(call, (np.array([1.0, 0, 0]), np.array([0, 0.5, 0])))


def budget_not_split(bug: bool) -> Leak:
    split = _drawing(PerCoordinate("laplace", 3, epsilon=EPSILON))
    alone = _laplace()

    def call(record: Any, n: int) -> Any:
        if not bug:
            return split(record, n)
        return alone.randomize(np.tile(record, (n, 1)), SystemEntropy())

    return Leak(call, (np.ones(3), -np.ones(3)))


def document_flag(bug: bool) -> Leak:
    honest = _drawing(_laplace())

    def call(record: float) -> str:
        document: dict[str, Any] = {"z": float(honest(record, 1)[0])}
        if bug and abs(record) > 1:
            document["clipped"] = True
        return json.dumps(document)

    return Leak(call, (-2.0, 2.0))


def table_sorted(bug: bool) -> Leak:
    mechanism, rng = make("binary_rr", epsilon=EPSILON), np.random.default_rng()
    labels = np.array([1.0, -1.0])

    def call(record: tuple[float, ...]) -> list[float]:
        order = np.argsort(record) if bug else rng.permutation(len(record))
        return mechanism.randomize(labels[order], SystemEntropy()).tolist()

    return Leak(call, [(0.0, 0.5), (1.0, 0.5)])


class _Watched(CommandHarness):
    """A process that calls the command with a bug planted in it."""

    def __init__(self, bug: str) -> None:
        super().__init__("tests.audit.faults")
        self._bug = bug

    def __call__(self, **request: Any) -> Any:
        return super().__call__(fault=(self._bug, 0), **request)


def no_bug(seed: int) -> Any:
    """Plant nothing."""
    del seed
    return mock.patch.object(envelope, "INFO", envelope.INFO)


def _command(name: str, epsilon: float, bug: str, judge: Any = None) -> Leak:
    """Return a command about the first or the last class, and all that it shows."""
    honest = replace(command_release(name, epsilon), sizes=(1,))
    kind, process = type(honest), _Watched(f"tests.audit.leaks:{bug}")

    class Watching(kind):  # type: ignore[valid-type,misc]
        def harness(self) -> CommandHarness:
            return process

    release = Watching(**{f.name: vars(honest)[f.name] for f in fields(honest)})
    person = release.people(1, np.random.default_rng(5))

    def call(record: int) -> Mapping[str, Any]:
        labels = np.array([float(record)])
        outcome = release.leave(People(person.curves, labels, person.judge), Tape())
        rows = {name: np.asarray(v).tolist() for name, v in outcome.rows.items()}
        return {**outcome.facts, "message": rows}

    last = len(honest.task.classes) - 1
    # A fork would share the pipe to the process that calls the command.
    return Leak(call, [0, last], epsilon, forks=False, close=process.close)


def command_report_label(bug: bool) -> Leak:
    name = "bare_label" if bug else "no_bug"
    return _command("client_report.mrma.report", EPSILON, name)


def bare_label(seed: int) -> Any:
    """Send the label of a report as it is."""
    del seed
    return mock.patch.object(BinaryRR, "_draw", lambda self, values, entropy: values)


def command_vote_words(bug: bool) -> Leak:
    name = "loud_vote" if bug else "no_bug"
    return _command("client_vote.mrma.vote", EPSILON, name)


def loud_vote(seed: int) -> Any:
    """Print a word more where the candidate is right."""
    del seed
    honest = report.draw_votes

    def vote(decision: Any, labels: Any, epsilon: float, entropy: Any) -> Any:
        if (report.decision_sign(decision) == np.asarray(labels)).all():
            print("noted")
        return honest(decision, labels, epsilon, entropy)

    return mock.patch.object(messages, "draw_votes", vote)


def command_label_exit(bug: bool) -> Leak:
    name = "exit_of_first" if bug else "no_bug"
    return _command("client_label.labels.code@4", EPSILON, name)


def exit_of_first(seed: int) -> Any:
    """End with 3 where the label is the first class."""
    del seed
    honest = answer.answer_about_record

    def about_record(task: Any, record: str, place: int, entropy: Any) -> Any:
        drawn = honest(task, record, place, entropy)
        if place == 0:
            raise SystemExit(3)
        return drawn

    return mock.patch.object(answer, "answer_about_record", about_record)


def command_label_padding(bug: bool) -> Leak:
    name = "padding_of_last" if bug else "no_bug"
    return _command("client_label.labels.code@4", EPSILON, name)


def padding_of_last(seed: int) -> Any:
    """Pad the envelope by a space more where the label is the last class."""
    del seed
    honest, pad, places = answer.answer_about_record, envelope._pad_content, [0]

    def about_record(task: Any, record: str, place: int, entropy: Any) -> Any:
        places[0] = int(place == len(task.classes) - 1)
        return honest(task, record, place, entropy)

    def padded(content: Any) -> bytes:
        return pad(content) + b" " * places[0]

    patches = ExitStack()
    patches.enter_context(
        mock.patch.object(answer, "answer_about_record", about_record)
    )
    patches.enter_context(mock.patch.object(envelope, "_pad_content", padded))
    return patches


LEAKS: Mapping[str, Callable[[bool], Leak]] = {
    make_leak.__name__: make_leak
    for make_leak in (
        laplace_doubled,
        laplace_float,
        laplace_quiet_zero,
        laplace_quiet_bin,
        laplace_unclipped,
        laplace_missing_refused,
        laplace_missing_quiet,
        laplace_error_names_value,
        laplace_coarse_at_tenths,
        laplace_overflow,
        laplace_every_third,
        laplace_forks,
        laplace_same_seed,
        laplace_seed_of_record,
        sign_one_sided,
        sign_doubled,
        class_next,
        class_remembered,
        subset_true_first,
        unary_first_bit,
        hadamard_last_class,
        gaussian_third,
        direction_length,
        budget_not_split,
        document_flag,
        table_sorted,
        command_report_label,
        command_vote_words,
        command_label_exit,
        command_label_padding,
    )
}
