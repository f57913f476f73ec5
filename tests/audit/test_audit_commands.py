"""The audit of the commands themselves, of drawn epsilons and of more classes."""

from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from curvote.audit import choice, release_checks, run, shipped, verdict
from curvote.audit.command_release import CommandRelease, command_release
from curvote.base.entropy import Entropy, SeededEntropy
from curvote.chain.stage import Columns
from curvote.mechanisms import gaussian
from curvote.mechanisms.laplace import Laplace
from curvote.messages.message import ClientData
from curvote.systems.labels.messages import CodeMessage
from curvote.systems.mrma.messages import MESSAGES as MRMA
from curvote.systems.transfer.method.forms.moments import Moments
from tests.audit.release_twins import COMMANDS

CHECKS = {"envelope", "again", "refusal", "source", "words", "noised", "forks"}


# The twins of the others are looked for in each run of the tests.
QUICK = {"answer", "label", "labels", "release"}
ROUNDS = [
    pytest.param(name, whole, marks=[] if quick else pytest.mark.faults)
    for name in COMMANDS
    for whole in (False, True)
    for quick in [name in QUICK and not whole]
]


@pytest.mark.parametrize(("command", "whole"), ROUNDS)
def test_what_leaves_a_command_passes(command: str, whole: bool) -> None:
    """Each command of `curvote client`, installed, in another process."""
    honest = command_release(COMMANDS[command], 2.0)
    if not whole:
        honest = replace(honest, sizes=honest.sizes[:2])
    (row,) = run(honest, samples=int(whole))
    assert row.verdict == "pass", row.checks
    assert set(row.checks) >= CHECKS | {"observables"}


def test_every_command_and_message_has_a_name() -> None:
    """Reports, votes, codes at 2, 4 and 100 classes, and all forms of hospitals."""
    names = choice.shipped_names()
    assert set(COMMANDS.values()) <= set(names)
    for code in ("labels.code", "labels.code@4", "labels.code@100"):
        assert {code, f"client_label.{code}", f"client_labels.{code}"} <= {*names}
    assert len(names) == len(set(names))


class DeafCode(CodeMessage):
    """Draws codes from the public task, whatever words it is given."""

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        return super().draw(task, data, SeededEntropy(int(task.digest(), 16)))


class DeafLabel(type(MRMA["report"])):  # type: ignore[misc]
    """Draws the numbers honestly, and the label from the public task."""

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        heard = super().draw(task, data, entropy)
        deaf = super().draw(task, data, SeededEntropy(int(task.digest(), 16)))
        return heard | {"label": deaf["label"]}


@pytest.mark.parametrize(
    ("command", "message"), [("labels", DeafCode()), ("answer", DeafLabel())]
)
def test_a_message_that_ignores_its_words_is_seen(command: str, message: Any) -> None:
    """In one of its numbers even: redrawing from the same words could not tell."""
    honest: CommandRelease = command_release(COMMANDS[command], 2.0)
    with closing(replace(honest, sizes=honest.sizes[:2])) as small:
        assert release_checks.check_noised(small, 1) is None
        deaf = replace(small, message=message)
        assert "are the same" in str(release_checks.check_noised(deaf, 1))


def test_half_the_noise_at_one_epsilon_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all that people type; in draws, and in a loss that is calculated."""
    honest, calibrate = Laplace.randomize, gaussian.calibrate_sigma

    def quiet(self: Laplace, values: Any, entropy: Entropy) -> Any:
        made = Laplace(epsilon=3.0) if self.epsilon == 1.5 else self
        return honest(made, values, entropy)

    def small(epsilon: float, *rest: float) -> float:
        return calibrate(epsilon, *rest) / (2 if epsilon == 1.5 else 1)

    for name in ("levels.laplace", "levels.transfer.moments"):
        assert run(shipped(name, 1.0))[0].verdict == "pass"
    monkeypatch.setattr(Laplace, "randomize", quiet)
    monkeypatch.setattr(gaussian, "calibrate_sigma", small)
    (row,) = run(shipped("levels.laplace", 1.0))
    assert "at 1.5: the law is off" in row.checks["levels"]
    (row,) = run(shipped("levels.transfer.moments", 1.0))
    assert row.checks["exact"].startswith("violated: at 1.5")


def test_a_sensitivity_for_two_classes_alone_is_seen(monkeypatch):
    """By any audit: the number of classes that is drawn is more than two."""
    honest = Moments.sensitivity
    monkeypatch.setattr(
        Moments,
        "sensitivity",
        lambda self, task: honest(self, task) * (0.7 if len(task.classes) > 2 else 1),
    )
    name, epsilon = choice.random_level("transfer.moments", 5)
    (row,) = run(shipped(name, epsilon), samples=0)
    assert "sensitivity" in row.caught_by
    (row,) = run(shipped("transfer.moments", epsilon), samples=0)
    assert row.verdict == "pass"


def test_a_seed_names_what_is_tried() -> None:
    """The row names it; each seed tries epsilons that people type, and others."""
    tried = [choice.random_level("rr_with_prior", seed) for seed in range(40)]
    assert tried == [choice.random_level("rr_with_prior", seed) for seed in range(40)]
    typed = [epsilon in verdict.TYPED for _, epsilon in tried]
    assert 5 < sum(typed) < 35
    assert len({name for name, _ in tried}) > 5
    assert min(epsilon for _, epsilon in tried) > 0
    (row,) = run(shipped(*tried[3]), samples=1000, seed=3)
    assert (row.verdict, row.to_json()["seed"]) == ("pass", 3)
    asked = choice.audit_jobs(["k_rr", "client_label.labels.code"], [], 1000, 3)
    again = choice.audit_jobs(["k_rr", "client_label.labels.code"], [], 1000, 4)
    claims = [[s.budget.epsilon for s, _ in jobs] for jobs in (asked, again)]
    assert claims[0] != claims[1]
    assert np.isin([*choice.EPSILONS, *choice.FAR_EPSILONS], claims[0]).all()
