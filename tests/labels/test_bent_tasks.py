"""Whatever a server writes into a task for labels: refused, or it hides every label."""

import copy
import json
import random
from typing import Any

import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.messages import answer
from curvote.messages.message import message_of, parse_message
from curvote.systems.labels.codes.encoders import ENCODERS
from curvote.systems.labels.messages import Task
from curvote.wire.envelope import issue_record_invitations, seal_message
from tests.fuzzing import HOSTILE, bend

SENT = [name for name in ENCODERS if name != "rr_with_prior"]
CLASSES = ("low", "mid", "high")
ROUNDS = 400


def document(encoder: str = "k_rr", **changes: Any) -> dict[str, Any]:
    """Return a task as a server writes it."""
    return Task(CLASSES, 1.5, encoder).to_json() | changes  # type: ignore[arg-type]


def bent(rng: random.Random) -> dict[str, Any]:
    """Return a task with something odd in it, once or twice."""
    first, other = (document(rng.choice(SENT)) for _ in range(2))
    for _ in range(rng.randrange(1, 3)):
        bend(rng, first, other)
    if rng.random() < 0.3:
        name = rng.choice(["omega", "n_classes", "epsilon", "prior", "p", "size"])
        given = [2, 1, 3, 4, 0.5, [0.2, 0.3, 0.5], "x", 2**40, -1]
        first["params"] = {name: copy.deepcopy(rng.choice([*given, *HOSTILE]))}
    return first


def hides(task: Any) -> None:
    """Any label is told as any other, by an envelope of one length, within epsilon."""
    (invited,) = issue_record_invitations(task, ["r"], "ab" * 32)
    answer.check_invitation(task, invited)
    assert message_of(task).max_privacy_loss(task) <= task.epsilon * (1 + 1e-9)
    assert answer.describe_answer(task, "r").isprintable()
    lengths = set()
    for place in {0, 1, len(task.classes) - 1}:
        payload = answer.answer_about_record(task, "r", place, SeededEntropy(place))
        assert parse_message(task, "r", payload) == payload
        assert json.loads(json.dumps(payload)) == payload
        lengths.add(len(seal_message(invited, payload)))
    assert len(lengths) == 1


def test_a_bent_task_is_refused_or_hides_every_label() -> None:
    """No crash whatever is written; what is accepted never tells labels apart."""
    rng, taken = random.Random(5), 0
    for _ in range(ROUNDS):
        try:
            task = answer.validate_task(bent(rng))
        except UserError:
            continue
        taken += 1
        hides(task)
    assert ROUNDS > taken > 20


@pytest.mark.parametrize("encoder", SENT)
@pytest.mark.parametrize("n_classes", [2, 3, 1024])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
def test_every_encoder_answers_in_one_form(
    encoder: str, n_classes: int, epsilon: float
) -> None:
    """Up to the largest number of classes; it fits an envelope."""
    classes = [f"c{i}" for i in range(n_classes)]
    task = answer.validate_task(document(encoder, classes=classes, epsilon=epsilon))
    hides(task)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"encoder": "auto"}, "encoder must be one of"),
        ({"encoder": "vector"}, "by its full name"),
        ({"encoder": "none"}, "encoder must be one of"),
        ({"encoder": "laplace"}, "encoder must be one of"),
        ({"encoder": "rr_with_prior"}, "needs prior"),
        ({"params": {"n_classes": 2}}, "must not hold n_classes"),
        ({"params": {"epsilon": 9.0}}, "must not hold epsilon"),
        ({"params": {"prior": [0.5, 0.5, 0.0]}}, "must not hold prior"),
        ({"params": {"omega": 1}}, "'omega'"),
        ({"encoder": "subset_selection", "params": {"omega": 3}}, "omega"),
        ({"encoder": "subset_selection", "params": {"omega": 1.5}}, "omega"),
        ({"epsilon": 0}, "above 0"),
        ({"epsilon": 1001}, "at most 1000"),
        ({"epsilon": 1e-12}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
        ({"classes": ["low"]}, "classes"),
        ({"classes": ["low", "LOW"]}, "different words"),
        ({"classes": ["low", "low "]}, "margins"),
        ({"classes": ["low", "a/b"]}, "no single word"),
        ({"classes": [f"c{i}" for i in range(1025)]}, "1024"),
        ({"asks": "vote"}, "asks"),
        ({"number": 0}, "number"),
        ({"format": 1}, "asked in 3"),
        ({"prior": 1}, "prior"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], words: str) -> None:
    """Before any label is looked at; printable, whatever stood there."""
    with pytest.raises(UserError) as caught:
        answer.validate_task(document() | change)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()
