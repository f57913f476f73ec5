"""Messages of every protocol: within their budget, and checked whatever they hold."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from curvote.audit import run, shipped
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.checks import examples
from curvote.checks.word_checks import RefusingEntropy
from curvote.messages import message as messages
from curvote.messages.message import ClientData, parse_message, payload_at
from curvote.systems.common.questions import one_against_rest_code
from curvote.wire.task import Task
from tests.valid_tasks import tasks

NAMES = sorted(name for name in tasks() if name.endswith("-0"))
SIGNED = ("mrma", "online", "drift", "federated", "majority", "votes")
ODD = (2**53, -1, 0.5, True, None, "a", [1], {})


def known(task: Task) -> ClientData:
    """Return what one client can tell."""
    points = task.encoding.projection.matrix.shape[1]
    curve = np.random.default_rng(1).normal(size=(1, points))
    label = np.ones(1) if task.protocol in SIGNED else np.zeros(1, dtype=np.int64)
    judge = None if task.candidates is None else np.zeros(1, dtype=np.int64)
    return messages.client_data(task, curve, label, judge)


def bent(sent: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a message, and each value of it bent in many ways."""
    yield sent
    for name, value in sent.items():
        if not isinstance(value, list):
            yield from (sent | {name: odd} for odd in ODD)
            continue
        n = len(value)
        for odd in ([], value[:-1], value * 2, [value], [0] * n, [1e100] * n, [""] * n):
            yield sent | {name: odd}


def alone(task: Task, about: int | None, sent: dict[str, Any]) -> Any:
    """Return what a message is told that comes alone."""
    try:
        return parse_message(task, about, sent)
    except UserError as error:
        return str(error)


@pytest.mark.parametrize("name", NAMES)
def test_together_each_is_told_what_it_is_told_alone(name: str) -> None:
    """Of every message of every system: kept in the same form, or the same words."""
    task = tasks()[name]
    about = None if task.candidates is None else 0
    message = messages.message_of(task)
    drawn = payload_at(message.draw(task, known(task), SeededEntropy(1)), 0)
    every = [(about, sent) for sent in bent(drawn)]
    told = [
        str(each) if isinstance(each, UserError) else each
        for each in messages.parse_messages(task, every)
    ]
    assert told == [alone(task, *each) for each in every]
    assert told[0] == drawn


# Codes of labels are audited in tests/audit/test_audit_gallery.py.
EXAMPLES = [
    name
    for name in (*examples.message_names(), *examples.many_class_names())
    if not name.startswith("labels")
]
every_example = pytest.mark.parametrize("name", EXAMPLES)
# What is one vector, label or bit: opposite records are the worst pair.
TIGHT = ("direct.", "direct_two.", "majority.", "votes.vote", "mrma_privunit.")
DRAWN = ("counts", "majority", "mrma_classes", "stump", "tree", "votes")


def audits() -> Iterator[Any]:
    """Yield each example at each level; a report of several parts takes long."""
    for name, epsilon in product(EXAMPLES, (0.01, 0.5, 2.0, 10.0, 60.0)):
        slow = name.startswith("mrma") and ".report" in name and "privunit" not in name
        slow = slow and (name, epsilon) != ("mrma_classes.report@5", 2.0)
        marks = [pytest.mark.faults] if slow else []
        yield pytest.param(name, epsilon, marks=marks)


@pytest.mark.parametrize(("name", "epsilon"), list(audits()))
def test_the_audit_passes(name: str, epsilon: float) -> None:
    """All of the budget is spent and no more; of odd records no word is drawn.

    The draws are looked at where others' audits do not, for five classes at epsilon 2.
    """
    drawn = name.startswith(DRAWN) and name.endswith("@5") and epsilon == 2.0
    samples = 2000 if drawn else 0
    (row,) = run(shipped(name, epsilon), samples=samples)
    assert row.verdict == "pass", row.checks
    assert row.exact is not None
    assert min(epsilon, 10) * (1 - 1e-6) < row.exact <= epsilon


def example(name: str, epsilon: float = 1.0) -> tuple[Any, ClientData]:
    """Return a message as a subject, and a record."""
    subject = shipped(name, epsilon)
    return subject, subject.inputs(np.random.default_rng(1))[0]


@every_example
def test_no_message_tells_more_than_is_declared(name: str) -> None:
    """In 200 draws, of other records; it is reached by what is one vector or bit."""
    for epsilon in (0.1, 2.0):
        subject, one = example(name, epsilon)
        sent = subject.draw(one, 200, SeededEntropy(5))
        others = subject.inputs(np.random.default_rng(1))[1:]
        losses = [np.abs(subject.log_ratio(one, other, sent)) for other in others]
        declared = subject.message.max_privacy_loss(subject.task)
        assert np.max(losses) <= declared * (1 + 1e-9)
        if name.startswith(TIGHT) and "votes.vote@" not in name:
            assert np.max(losses) > 0.999 * declared


@every_example
def test_what_is_no_record_draws_nothing(name: str) -> None:
    """A label below the first, and another width, beside what the audit tries."""
    subject, good = example(name)
    wrong = [replace(good, labels=np.array([-1.0]))]
    if "threshold" in subject.task.params:
        wrong.append(replace(good, z=np.zeros((1, good.z.shape[1] + 1))))
    for bad in wrong:
        with pytest.raises(UserError):
            subject.message.draw(subject.task, bad, RefusingEntropy())


def forged(task: Task, sent: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what no honest client sends: beyond, of another kind, less or more."""
    k, params = len(task.classes), task.params
    asked = params.get("threshold", one_against_rest_code(k))
    ends = (0, 2) if k == 2 or len(sent) > 1 else (-1, k)  # signs, else places
    beyond: dict[str, tuple[Any, ...]] = {
        "label": (*ends, 1.0, True, None, 2**40),
        "question": (len(asked), -1),
        "answer": (k * (1 + len(asked[0])), -1, 0.5),
        "named": (k, -1, 1.0, True, 10**30),
        "learner": (10**6, -1),
        "positive": (1,),
    }
    for name, value in sent.items():
        odd = [*beyond.get(name, ())]
        if name in {"direction", "gradient"}:
            odd += [[by * number for number in value] for by in (1.01, 2.0, 0.0, -1e9)]
        if isinstance(value, list):
            odd += [value[1:], value[:-1]]
        yield from (sent | {name: each} for each in odd)
        yield {key: each for key, each in sent.items() if key != name}
    yield sent | {"client_id": 3}


@every_example
def test_an_honest_message_is_taken_and_a_forged_one_refused(name: str) -> None:
    """Through its envelope and into its table; also one to another task."""
    subject, one = example(name)
    task, message = subject.task, subject.message
    about = None if task.candidates is None else 0
    drawn = message.draw(task, one, SeededEntropy(5))
    assert message.possible_mask(task, drawn).all()
    sent = payload_at(drawn, 0)
    parse_message(task, about, json.loads(json.dumps(sent)))
    for wrong in forged(task, sent):
        with pytest.raises(UserError):
            parse_message(task, about, wrong)
    others = [(task, 1)] if about == 0 else []
    if {"direction", "gradient"} & {*sent}:
        others.append((replace(task, epsilon=2.0), about))
    for other, candidate in others:
        with pytest.raises(UserError):
            parse_message(other, candidate, sent)
    if not message.count_columns:
        table = message.collect(task, drawn)
        assert table.keys() >= drawn.keys()
        assert all(np.array_equal(table[key], drawn[key]) for key in drawn)
