"""What a certificate states of each mechanism and message is its law, and no less."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.checks.examples import example_task, mechanism_params, production_messages
from curvote.mechanisms.factory import make, mechanism_class, names
from curvote.mechanisms.law import state_laws
from curvote.messages.message import message_of
from curvote.report.certificate.document import CertifiedMessage
from tests.certificate import by_hand, checkers
from tests.certificate.mutations import lies

EPSILONS = (2.0**-20, 0.1, 1.0, 2.5, 7.0, 30.0, 300.0)
SIGNER = checkers.Signer()


def stated(messages: list[Any]) -> str:
    """Return a file of messages of which each came from somebody else."""
    groups = [
        {"people": m["records"], "sends": [int(i == k) for i in range(len(messages))]}
        for k, m in enumerate(messages)
    ]
    costs = [[Fraction(m[name]) for m in messages] for name in ("epsilon", "delta")]
    n = sum(m["records"] for m in messages)
    mean = sum(m["records"] * e for m, e in zip(messages, costs[0], strict=True)) / n
    largest = [str(sum(cost)) for cost in costs]
    spent = {"people": n, "mean": str(mean), "largest": largest[0], "delta": largest[1]}
    people = {"linked": False, "groups": groups, "spent": spent}
    people |= {"total": None, "cap": None}
    return SIGNER.text(by_hand.certificate(messages, people))


def mechanisms() -> Iterator[Any]:
    """Yield every mechanism at every epsilon that it can be made for."""
    for name in names():
        for epsilon in EPSILONS:
            kind = mechanism_class(name)
            try:
                yield make(name, epsilon=epsilon, **mechanism_params(kind, epsilon, 4))
            except UserError:
                assert epsilon in {EPSILONS[0], EPSILONS[-1]}, name


@checkers.needs_node
def test_both_programs_find_the_loss_of_every_mechanism(tmp_path: Path) -> None:
    """At seven epsilons; it is the one that the mechanism itself states."""
    texts = []
    for mechanism in mechanisms():
        laws = state_laws(mechanism)
        least = sum(law["times"] * Fraction(law["least"]) for law in laws)
        assert float(least) == pytest.approx(mechanism.worst_log_ratio(), rel=1e-8)
        assert least <= Fraction(mechanism.epsilon)
        more = {"delta": str(Fraction(mechanism.delta))}
        text = str(Fraction(mechanism.epsilon))
        texts.append(stated([by_hand.message(laws, text, 3, **more)]))
    lines = checkers.by_python(texts)
    assert {line[:6] for line in lines} == {"intact"}
    assert checkers.by_page(tmp_path, texts) == lines


@checkers.needs_node
def test_every_message_of_production_has_a_law(tmp_path: Path) -> None:
    """Its task's digest, its text and the sum of its laws are right."""
    messages = []
    for protocol, asks in production_messages():
        task = example_task(protocol, asks, 2.0)
        (message,) = [CertifiedMessage(task, 3, 3).state()]
        exact = message_of(task).max_privacy_loss(task)
        assert float(Fraction(message["least"])) == pytest.approx(exact, rel=1e-12)
        messages.append(message)
    text = stated(messages)
    (line,) = checkers.by_python([text])
    assert line.startswith("intact")
    assert checkers.by_page(tmp_path, [text]) == [line]


@pytest.mark.parametrize("write", by_hand.ALL)
@checkers.needs_node
def test_no_lie_by_the_right_key_passes(write: Any, tmp_path: Path) -> None:
    """Each of them, and both programs say so; the certificate itself holds."""
    told, certificates = zip(*lies(write()), strict=True)
    texts = [SIGNER.text(certificate) for certificate in certificates]
    lines = [checkers.by_python(texts), checkers.by_page(tmp_path, texts)]
    for name, *found in zip(told, *lines, strict=True):
        assert all(line.startswith("refused") for line in found), (name, found)
