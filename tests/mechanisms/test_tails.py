"""What is too rare to be honest is cut off where reports are gathered."""

import math
from dataclasses import replace

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.client.report import RARE_PROBABILITY, Reporter
from curvote.curves.basis import identity
from curvote.curves.encoding import Encoding
from curvote.mechanisms import factory, make, names, per_coordinate
from curvote.mechanisms.base import Mechanism, ScalarMechanism, VectorMechanism
from curvote.mechanisms.laplace import Laplace
from curvote.mechanisms.privunit import OneOf
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages.message import messages_of, parse_message
from curvote.wire.task import Task

D, N = 3, 4000
REPORTS = [
    name
    for name in names()
    if issubclass(factory.mechanism_class(name), ScalarMechanism | VectorMechanism)
    and factory.mechanism_class(name) not in {BinaryRR, OneOf}
]


def of_record(name: str, epsilon: float) -> VectorMechanism:
    """Return the mechanism of a record of D numbers."""
    if issubclass(factory.mechanism_class(name), ScalarMechanism):
        return per_coordinate(name, D, epsilon)
    delta = {"delta": 1e-5} if name == "gaussian" else {}
    made: Mechanism = make(name, epsilon=epsilon, d=D, **delta)
    assert isinstance(made, VectorMechanism)
    return made


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
@pytest.mark.parametrize("probability", [0.2, 0.01, RARE_PROBABILITY])
def test_honest_numbers_exceed_the_tail_at_most_so_often(name, epsilon, probability):
    """At the worst corner of the domain; a bound without a tail is never exceeded."""
    mechanism = of_record(name, epsilon)
    tail = mechanism.tail_bound(probability)
    drawn = mechanism.randomize(np.ones((N, D)), SeededEntropy(3))
    beyond = int((np.abs(drawn) > tail).sum())
    count = drawn.size * probability
    assert beyond <= count + 6 * math.sqrt(count) * (probability > RARE_PROBABILITY)
    if math.isfinite(tail):
        assert beyond > count / 20 - 1


@pytest.mark.parametrize("epsilon", [1e-3, 0.2, 5.0, 2000.0])
@pytest.mark.parametrize("probability", [0.5, 1e-3, RARE_PROBABILITY])
def test_the_laplace_tail_is_that_of_the_law(epsilon, probability):
    """From the exact distribution function, and no more than two steps too wide."""
    law = Laplace(epsilon=epsilon)
    steps = round(law.tail_bound(probability) * 2**20) - 2**20

    def rest(k: int) -> float:
        return 2 * float(law.noise.cdf(-k - 1))

    assert rest(steps) <= probability
    assert rest(steps - 2) > probability


@pytest.mark.parametrize("name", REPORTS)
def test_nothing_but_the_rarest_is_moved(name: str) -> None:
    """An honest report is gathered as it was sent."""
    task = stated(name)
    reporter, rng = Reporter.for_task(task), np.random.default_rng(5)
    z, label = reporter.release(
        rng.uniform(-1, 1, (N, D)),
        np.ones(N),
        *(SeededEntropy(seed) for seed in (1, 2)),
    )
    made = messages_of("mrma")["report"].collect(task, {"z": z, "label": label})
    np.testing.assert_array_equal(made["z"], z)


def stated(name: str) -> Task:
    """Return a task of reports with a mechanism."""
    task = Task(Encoding(identity(D), "none"), ("no", "yes"), 1.0, "mrma", "report")
    params = {"delta": 1e-5} if name == "gaussian" else {}
    return replace(task, mechanism=name, params=params)


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_the_largest_lie_counts_no_more_than_an_honest_number_may(name: str) -> None:
    """One possible message of a liar once moved a mean without any bound."""
    task, kind = stated(name), messages_of("mrma")["report"]
    features = Reporter.for_task(task).features
    lie = np.full(D, 2.0**20 if name == "laplace" else 2.0**30)
    while not features.possible_mask(lie[None])[0]:
        lie /= 2
    parse_message(task, None, {"z": lie.tolist(), "label": 1})
    tail = features.tail_bound(RARE_PROBABILITY)
    assert lie[0] > 30 * tail
    sent = {"z": np.stack([lie, -lie]), "label": np.array([1, -1])}
    made = kind.collect(task, sent)["z"]
    np.testing.assert_array_equal(made, np.outer([tail, -tail], np.ones(D)))
    assert features.possible_mask(made).all()


@pytest.mark.parametrize("probability", [0.0, 1.0, math.nan])
@pytest.mark.parametrize("name", ["laplace", "gaussian", "duchi"])
def test_a_tail_has_a_probability(name: str, probability: float) -> None:
    """Anything else is a UserError."""
    with pytest.raises(UserError, match="probability is"):
        of_record(name, 1.0).tail_bound(probability)
