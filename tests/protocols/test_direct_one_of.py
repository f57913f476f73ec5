"""The arm `one_of`: its message, what the server reads, and when the rule takes it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from curvote.classes import Classes
from curvote.entropy import SeededEntropy, StudyStreams
from curvote.errors import UserError
from curvote.mechanisms.one_of import noise
from curvote.protocols.choice import arm_of, times_less
from curvote.protocols.classifiers import named
from curvote.protocols.direct.arms import from_params
from curvote.protocols.direct_one_of import combine
from curvote.protocols.direct_one_of.messages import MESSAGES
from curvote.protocols.message import Known, check, message_of, row
from curvote.protocols.stages.stated import public
from curvote.representation.basis import identity
from curvote.representation.encoding import Encoding
from curvote.representation.simplex import corners
from curvote.server.named import Blocks, read
from curvote.task import Task
from tests.noise import SEED

D, N = 3, 20_000


def task(n_classes: int, epsilon: float = 5.0) -> Task:
    """Return what a client is asked for."""
    classes = Classes(map(str, range(n_classes)))
    stated = Task(
        Encoding(identity(D), "none"), classes, epsilon, "direct_one_of", "report"
    )
    return MESSAGES["report"].rehearsal(stated)


def crowd(n_classes: int, n: int = N) -> Known:
    """Return clients of classes around means of their own, of unequal shares."""
    rng = np.random.default_rng(SEED)
    shares = np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum()
    labels = rng.choice(n_classes, size=n, p=shares)
    z = rng.normal(size=(n_classes, D))[labels] * 2 + rng.normal(size=(n, D)) * 0.5
    return Known(z, z, labels)


def drawn(asked: Task, known: Known, seed: int = SEED) -> dict[str, np.ndarray]:
    """Return a study's draws."""
    entropy = StudyStreams(lambda _: SeededEntropy(seed))
    return message_of(asked).draw(asked, known, entropy)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_server_reads_the_moments(n_classes: int) -> None:
    """Label and second moment are within the noise that is stated of them."""
    asked, known = task(n_classes, 8.0), crowd(n_classes)
    sent, given = drawn(asked, known), from_params(D, asked.params)
    total = Blocks.of(sent["named"], sent["direction"], n_classes)
    found = read(total, given, asked.epsilon)
    u, own = given.units(known.z), corners(n_classes)[known.labels]
    label = own.T @ u / N
    v = noise(n_classes, given.size, asked.epsilon) / N
    assert found.noise == pytest.approx(v / 0.8 * n_classes / (n_classes - 1))
    assert np.abs(found.label - label).max() < 6 * np.sqrt(found.noise)
    second = u.T @ u / N
    spread = np.sqrt(n_classes * v) * given.stretch
    assert np.abs(found.second.matrix - second).max() < 0.05 + 6 * spread


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_noise_of_the_label_moment_is_what_is_stated(n_classes: int) -> None:
    """Over many draws of clients who all hold one record, to a tenth."""
    asked, n = task(n_classes, 3.0), 120
    given = from_params(D, asked.params)
    labels, z = np.arange(n) % n_classes, np.tile([0.3, -0.2, 0.5], (n, 1))
    found = []
    for seed in range(200):
        sent = drawn(asked, Known(z, z, labels), seed)
        total = Blocks.of(sent["named"], sent["direction"], n_classes)
        found.append(read(total, given, asked.epsilon))
    spread = np.var([one.label for one in found], axis=0).mean()
    assert spread == pytest.approx(found[0].noise, rel=0.1)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_classes_are_told_apart(n_classes: int) -> None:
    """At most six points worse than by what nobody noised."""
    asked, known = task(n_classes, 8.0), crowd(n_classes)
    made = combine.decoded([drawn(asked, known)], public(asked))
    clean = LinearDiscriminantAnalysis().fit(known.z, known.labels)
    best = np.mean(clean.predict(known.z) != known.labels)
    found = np.mean(named(known.z, made) != known.labels)
    assert best < 0.3
    assert found < best + 0.06


def test_no_report_and_no_class_that_is_not_there() -> None:
    """Nobody's reports make nothing; a class beyond the task's is refused."""
    asked = task(5)
    sent = row(drawn(asked, crowd(5, 3)), 0)
    check(asked, None, sent)
    for wrong in (5, -1, 1.0, True, 10**30):
        with pytest.raises(UserError):
            check(asked, None, sent | {"named": wrong})
    with pytest.raises(UserError, match="no report"):
        Blocks.of(np.empty(0, dtype=int), np.empty((0, 13)), 5)


@pytest.mark.parametrize("name", ["privunit", "k_rr"])
def test_another_mechanism_is_refused(name: str) -> None:
    """Before anything is drawn."""
    asked = replace(task(5), mechanism=name)
    with pytest.raises(UserError, match="mechanism is"):
        message_of(asked).admit(asked)


def test_the_rule_takes_it_for_many_classes_at_large_epsilon() -> None:
    """Where its noise is clearly less; never of two classes, nor where some lie."""
    taken = {
        (k, epsilon)
        for k in (2, 3, 5, 10, 26)
        for epsilon in (0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
        if arm_of(5000, 8, epsilon, n_classes=k).arm == "one_of"
    }
    assert {(10, 5.0), (26, 5.0), (10, 10.0), (5, 10.0)} <= taken
    assert all(k > 2 and epsilon >= 3 for k, epsilon in taken)
    assert all(times_less(k, 9, epsilon) > 1 for k, epsilon in taken)
    lied = arm_of(5000, 8, 5.0, 0.05, 10)
    assert lied.arm == "mean"
