"""What an exchange between servers is worth, in paired comparisons."""

from __future__ import annotations

import numpy as np
import pytest

from tests.federated import Study

GROUPS = np.repeat([1, 2, 3], [4, 1, 4])


@pytest.fixture(scope="module")
def many() -> Study:
    """Enough replicates to compare ways to split the voters, at epsilon 1."""
    return Study(80, (4, 1, 4))


def _errors(study: Study, split: str) -> np.ndarray:
    return study.scores(study.run(federation__split=split), "federated")


def _standard_errors(gain: np.ndarray) -> float:
    return float(gain.mean() / gain.std(ddof=1) * np.sqrt(len(gain)))


@pytest.mark.faults  # of two splits in many replicates
def test_splitting_clients_beats_splitting_the_budget(many: Study) -> None:
    """At epsilon 1, by more than 4 standard errors of the paired difference."""
    errors = {split: _errors(many, split) for split in ("clients", "budget")}
    gain = (errors["budget"] - errors["clients"])[:, GROUPS != 2].mean(axis=1)
    assert _standard_errors(gain) > 4
    assert 0.40 < errors["clients"][:, GROUPS == 2].mean() < 0.55


def test_opposite_servers_help() -> None:
    """The only server of its direction gains from six of the other (5 errors)."""
    clients = {"public": 0, "train": 120, "vote": 600, "test": 200}
    study = Study(30, (1, 0, 6), learner__name="logistic", epsilon=3.0, clients=clients)
    alone, joint = (_errors(study, split)[:, 0] for split in ("single", "clients"))
    assert _standard_errors(alone - joint) > 5
