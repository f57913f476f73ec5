"""The arm `one_of`: its message, what the server reads, and when the rule takes it."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from curvote.base.classes import Classes
from curvote.base.entropy import SeededEntropy, StudyStreams
from curvote.base.errors import UserError
from curvote.curves.basis import identity
from curvote.curves.direction import simplex_codes
from curvote.curves.encoding import Encoding
from curvote.learning.directions import BlockMeans, estimate_block_moments
from curvote.mechanisms.privunit import one_of_variance
from curvote.messages.arms import directions_from_params
from curvote.messages.message import ClientData, message_of, parse_message, payload_at
from curvote.messages.stages import public_metadata
from curvote.systems.common.models import predict_places
from curvote.systems.direct import stages
from curvote.systems.direct.messages import MESSAGES_BY_SYSTEM
from curvote.systems.direct.system import choose_protocol, noise_factor
from curvote.wire.task import Task
from tests.noise import SEED

MESSAGES = MESSAGES_BY_SYSTEM["direct_one_of"]

D, N = 3, 20_000


def task(n_classes: int, epsilon: float = 5.0) -> Task:
    """Return what a client is asked for."""
    classes = Classes(map(str, range(n_classes)))
    stated = Task(
        Encoding(identity(D), "none"), classes, epsilon, "direct_one_of", "report"
    )
    return MESSAGES["report"].nominal_task(stated)


def crowd(n_classes: int, n: int = N) -> ClientData:
    """Return clients of classes around means of their own, of unequal shares."""
    rng = np.random.default_rng(SEED)
    shares = np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum()
    labels = rng.choice(n_classes, size=n, p=shares)
    z = rng.normal(size=(n_classes, D))[labels] * 2 + rng.normal(size=(n, D)) * 0.5
    return ClientData(z, z, labels)


def drawn(asked: Task, data: ClientData, seed: int = SEED) -> dict[str, np.ndarray]:
    """Return a study's draws."""
    entropy = StudyStreams(lambda _: SeededEntropy(seed))
    return message_of(asked).draw(asked, data, entropy)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_server_reads_the_moments(n_classes: int) -> None:
    """Label and second moment are within the noise that is stated of them."""
    asked, known = task(n_classes, 8.0), crowd(n_classes)
    sent, given = drawn(asked, known), directions_from_params(D, asked.params)
    total = BlockMeans.from_shards([(sent["named"], sent["direction"])], n_classes)
    found = estimate_block_moments(total, given, asked.epsilon)
    u, own = given.units(known.z), simplex_codes(n_classes)[known.labels]
    label = own.T @ u / N
    v = one_of_variance(n_classes, given.size, asked.epsilon) / N
    assert found.noise == pytest.approx(v / 0.8 * n_classes / (n_classes - 1))
    assert np.abs(found.label - label).max() < 6 * np.sqrt(found.noise)
    second = u.T @ u / N
    spread = np.sqrt(n_classes * v) * given.second_scale
    assert np.abs(found.second.matrix - second).max() < 0.05 + 6 * spread


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_noise_of_the_label_moment_is_what_is_stated(n_classes: int) -> None:
    """Over many draws of clients who all hold one record, to a tenth."""
    asked, n = task(n_classes, 3.0), 120
    given = directions_from_params(D, asked.params)
    labels, z = np.arange(n) % n_classes, np.tile([0.3, -0.2, 0.5], (n, 1))
    found = []
    for seed in range(200):
        sent = drawn(asked, ClientData(z, z, labels), seed)
        total = BlockMeans.from_shards([(sent["named"], sent["direction"])], n_classes)
        found.append(estimate_block_moments(total, given, asked.epsilon))
    spread = np.var([one.label for one in found], axis=0).mean()
    assert spread == pytest.approx(found[0].noise, rel=0.1)


def test_a_class_that_is_named_more_often_has_more_noise() -> None:
    """Of unequal classes whose shares are stated, to a sixth of each one's variance."""
    asked, shares, found = task(5, 3.0), np.array([0.6, 0.1, 0.1, 0.1, 0.1]), []
    given = directions_from_params(D, asked.params)
    labels = np.repeat(np.arange(5), (100 * shares).astype(int))
    z = np.tile([0.3, -0.2, 0.5], (len(labels), 1))
    for seed in range(400):
        sent = drawn(asked, ClientData(z, z, labels), seed)
        total = BlockMeans.from_shards([(sent["named"], sent["direction"])], 5)
        found.append(estimate_block_moments(total, given, asked.epsilon, shares))
    moments = np.array([0.8 * simplex_codes(5) @ one.label for one in found])
    stated = 0.64 * found[0].noise * found[0].by_class
    assert stated[0] > 1.5 * stated[1]
    assert moments.var(axis=0).mean(axis=1) == pytest.approx(stated, rel=1 / 6)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_classes_are_told_apart(n_classes: int) -> None:
    """At most six points worse than by what nobody noised."""
    asked, known = task(n_classes, 8.0), crowd(n_classes)
    made = stages.decode_one_of([drawn(asked, known)], public_metadata(asked))
    clean = LinearDiscriminantAnalysis().fit(known.z, known.labels)
    best = np.mean(clean.predict(known.z) != known.labels)
    found = np.mean(predict_places(known.z, made) != known.labels)
    assert best < 0.3
    assert found < best + 0.06


def test_no_report_and_no_class_that_is_not_there() -> None:
    """Nobody's reports make nothing; a class beyond the task's is refused."""
    asked = task(5)
    sent = payload_at(drawn(asked, crowd(5, 3)), 0)
    parse_message(asked, None, sent)
    for wrong in (5, -1, 1.0, True, 10**30):
        with pytest.raises(UserError):
            parse_message(asked, None, sent | {"named": wrong})
    with pytest.raises(UserError, match="no report"):
        BlockMeans.from_shards([(np.empty(0, dtype=int), np.empty((0, 13)))], 5)


@pytest.mark.parametrize("name", ["privunit", "k_rr"])
def test_another_mechanism_is_refused(name: str) -> None:
    """Before anything is drawn."""
    asked = replace(task(5), mechanism=name)
    with pytest.raises(UserError, match="mechanism is"):
        message_of(asked).check_task(asked)


def test_the_rule_takes_it_for_many_classes_at_large_epsilon() -> None:
    """Where its noise is less; never of two classes, nor where some lie."""
    taken = {
        (k, epsilon)
        for k in (2, 3, 5, 10, 26)
        for epsilon in (0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
        if choose_protocol(5000, 8, epsilon, n_classes=k).arm == "one_of"
    }
    assert {(10, 5.0), (26, 5.0), (10, 10.0), (5, 10.0)} <= taken
    assert all(k > 2 and epsilon >= 3 for k, epsilon in taken)
    assert all(noise_factor(k, 9, epsilon) > 1 for k, epsilon in taken)
    lied = choose_protocol(5000, 8, 5.0, 0.05, 10, of_direct=True)
    assert lied.arm == "mean"
