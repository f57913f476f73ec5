"""Protocol `direct`: its arms, and the messages that leave its clients."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from curvote.base.classes import Classes
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.client.report import DirectionReporter
from curvote.curves.basis import identity
from curvote.curves.direction import Whitening
from curvote.curves.encoding import RESCALING_CONSTANTS, Encoding
from curvote.messages.arms import (
    LABEL_SHARES,
    directions_from_params,
    directions_to_params,
    make_directions,
    protocol_of,
)
from curvote.messages.message import (
    ClientData,
    message_of,
    messages_of,
    parse_message,
    payload_at,
)
from curvote.wire.task import Task
from tests.noise import SEED, Replay

D = 3
STATED = Task(Encoding(identity(D), "none"), ("no", "yes"), 1.0, "direct", "report")


def stated(arm: str) -> Task:
    """Return what a configuration says of the first round of an arm."""
    name = protocol_of(arm)
    own = {"direct.arm": arm, "direct.intercept": "auto"}
    terms = messages_of(name)["report"].terms(own.__getitem__, STATED.encoding)
    return replace(STATED, protocol=name, **terms)


def tasks() -> dict[str, Task]:
    """Return the task of every message and arm."""
    first = {arm: stated(arm) for arm in LABEL_SHARES}
    refinement = messages_of("direct_two")["refinement"]
    more = replace(first["joint"], classes=Classes("abcde"))
    asked = {"refinement": refinement.nominal_task(first["two"]), "five classes": more}
    return first | asked


def known(n: int, value: float = 0.3, label: float = 1.0) -> ClientData:
    """Return n clients with the same record."""
    z = np.full((n, D), value)
    return ClientData(z, z, np.full(n, label))


every_task = pytest.mark.parametrize("task", tasks().values(), ids=tasks())


@pytest.mark.parametrize("rescale", RESCALING_CONSTANTS)
@pytest.mark.parametrize("arm", LABEL_SHARES)
def test_an_arm_is_what_its_task_publishes(arm: str, rescale: str) -> None:
    """The vectors survive the way through a task's parameters, for every rescaling."""
    made = make_directions(arm, D, rescale, "auto")
    assert (
        directions_from_params(D, json.loads(json.dumps(directions_to_params(made))))
        == made
    )
    assert made.share == LABEL_SHARES[arm]
    assert make_directions(arm, D, rescale, 0.25).intercept == 0.25


def test_arms_out_of_range_are_refused() -> None:
    """An unknown arm, and an intercept that is no number above 0."""
    with pytest.raises(UserError, match="arm is 'three'"):
        make_directions("three", D, "none", "auto")
    with pytest.raises(UserError, match="intercept"):
        make_directions("mean", D, "none", 0.0)


@every_task
@pytest.mark.parametrize("epsilon", [0.1, 1, 5, 10])
def test_a_message_spends_all_of_the_budget_and_no_more(
    task: Task, epsilon: float
) -> None:
    """`worst_loss` is at most epsilon and within 1e-6 of it."""
    worst = message_of(task).max_privacy_loss(replace(task, epsilon=epsilon))
    assert epsilon * (1 - 1e-6) < worst <= epsilon


@every_task
def test_no_answer_tells_more_than_the_budget(task: Task) -> None:
    """The loss of honest messages; one of a client who spends twice is beyond it."""
    message, one, other = message_of(task), known(200), known(200, -0.5, 0.0)

    def worst(asked: Task) -> float:
        drawn = message.draw(asked, one, SeededEntropy(SEED))
        return float(np.abs(message.log_ratio(asked, one, other, drawn)).max())

    assert 0.999 * task.epsilon < worst(task) <= task.epsilon
    assert worst(replace(task, epsilon=2 * task.epsilon)) > 1.9 * task.epsilon


@every_task
def test_a_message_survives_its_envelope(task: Task) -> None:
    """An honest payload passes; of other length, or of another task's, it does not."""
    message = message_of(task)
    drawn = message.draw(task, known(3), SeededEntropy(SEED))
    sent = payload_at(drawn, 1)
    parse_message(task, None, json.loads(json.dumps(sent)))
    for wrong in (
        sent | {"direction": [2 * value for value in sent["direction"]]},
        sent | {"direction": sent["direction"][:-1]},
        sent | {"direction": [0.0] * len(sent["direction"])},
        sent | {"client_id": 3},
    ):
        with pytest.raises(UserError):
            parse_message(task, None, wrong)
    with pytest.raises(UserError):
        parse_message(replace(task, epsilon=2.0), None, sent)
    table = message.collect(task, drawn)
    assert table.keys() == drawn.keys()
    assert all(np.array_equal(table[name], drawn[name]) for name in drawn)


@every_task
@pytest.mark.parametrize(
    "wrong",
    [
        known(2, label=0.5),
        known(2, label=5.0),
        known(2, value=np.nan),
        replace(known(2), labels=np.ones(3)),
    ],
    ids=["no-label", "another-class", "nan", "labels"],
)
def test_what_is_no_record_draws_nothing(task: Task, wrong: ClientData) -> None:
    """A UserError before a single word is asked for."""
    with pytest.raises(UserError):
        message_of(task).draw(task, wrong, Replay())


def test_a_refinement_speaks_of_whitened_numbers() -> None:
    """Of ``matrix`` (z - ``centre``), with the label as it is."""
    task = tasks()["refinement"]
    made = Whitening(*(np.array(task.params[name]) for name in ("matrix", "centre")))
    given = directions_from_params(D, task.params).whitened
    reporter = DirectionReporter.build(given, task.epsilon)
    one, other = known(50), known(50, -0.5)
    white, far = ((made.apply(x.z), x.signs) for x in (one, other))
    sent = message_of(task).draw(task, one, SeededEntropy(SEED))
    direction = sent["direction"]
    assert np.array_equal(direction, reporter.release(*white, SeededEntropy(SEED)))
    loss = message_of(task).log_ratio(task, one, other, sent)
    assert np.array_equal(loss, reporter.log_ratio(white, far, direction))
