"""Messages that hold a code of several classes: few, and as many as letters."""

from dataclasses import replace

import numpy as np
import pytest

from curvote.audit import run, shipped
from curvote.audit.message_subject import message_subject_of
from curvote.base.entropy import SeededEntropy, StudyStreams
from curvote.checks import examples
from curvote.checks.subject import BROKEN
from curvote.messages.message import ClientData, message_of
from curvote.wire.task import Task
from tests.audit.gallery import gallery
from tests.noise import SEED

# That of two rounds is the same as in one.
SENT = [("direct", "report"), ("direct_two", "refinement"), ("direct_one_of", "report")]
every_code = pytest.mark.parametrize(("protocol", "asks"), SENT)


@every_code
@pytest.mark.parametrize("n_classes", [2, 5, 26])
@pytest.mark.parametrize(("epsilon", "samples"), [(0.5, 0), (2.0, 600), (10.0, 0)])
def test_codes_of_classes_pass(protocol, asks, n_classes, epsilon, samples):
    """All checks; what a message loses is epsilon, whatever the number of classes."""
    task = examples.example_task(protocol, asks, epsilon, n_classes)
    (row,) = run(message_subject_of(task), samples=samples)
    assert row.verdict == "pass", row.checks
    assert row.exact is not None
    assert epsilon - 1e-6 < row.exact <= epsilon
    assert not samples or row.lower_bound is not None


@pytest.mark.parametrize("name", examples.many_class_names())
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 10.0])
def test_messages_of_many_classes_spend_their_budget(name: str, epsilon: float) -> None:
    """Whatever tells classes apart: the exact checks, without a draw."""
    (row,) = run(shipped(name, epsilon), samples=0)
    assert row.verdict == "pass", row.checks
    assert row.mechanism == name
    assert row.exact is not None
    assert 0.99 * epsilon < row.exact <= epsilon


def test_a_vector_without_a_second_moment_passes() -> None:
    """As arm `mean` publishes it, of five classes."""
    task = examples.example_task("direct", "report", 2.0, 5)
    alone = replace(task, params={**task.params, "share": 1.0})
    (row,) = run(message_subject_of(alone), samples=600)
    assert row.verdict == "pass", row.checks


def sent(task: Task, labels: list[int], *, study: bool) -> dict[str, np.ndarray]:
    """Return what clients of these classes and of the same numbers send."""
    z = np.full((len(labels), task.encoding.d), 0.25)
    words = SeededEntropy(SEED)
    entropy = StudyStreams(lambda _: words) if study else words
    return message_of(task).draw(task, ClientData(z, z, np.array(labels)), entropy)


@every_code
@pytest.mark.parametrize("study", [False, True])
def test_classes_are_the_task_s(protocol: str, asks: str, study: bool) -> None:
    """What is sent has one form, whichever classes are among those who send.

    A lone client's message is the same whether its class is the only one there is in
    the data or not; and no column grows with the classes that are seen.
    """
    task = examples.example_task(protocol, asks, 2.0, 5)
    crowds = [[3], [3, 3, 3], [3, 0, 1], [3, 4, 2]]
    shapes = [
        {name: (one.dtype, one.shape[1:]) for name, one in columns.items()}
        for columns in (sent(task, labels, study=study) for labels in crowds)
    ]
    assert all(shape == shapes[0] for shape in shapes)
    more = examples.example_task(protocol, asks, 2.0, 6)
    first, second = (sent(one, [3], study=study) for one in (task, more))
    assert message_of(task).possible_mask(task, first).all()
    alike = all(np.array_equal(first[name], second[name]) for name in first)
    assert not alike  # classes of the task count, though nobody has the last


@pytest.mark.parametrize(
    ("name", "check", "reason"),
    [
        ("label_beside_code", "exact", "the worst loss is 1, not 0.5"),
        ("corner_of_wrong_length", "statistical", "norm"),
    ],
)
def test_a_class_is_told_for_the_reason_it_leaks(name, check, reason):
    """A budget that is spent twice; a length that is the class."""
    (row,) = run(gallery(BROKEN + name), samples=2000)
    assert reason in row.checks[check], row.checks
