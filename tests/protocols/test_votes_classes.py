"""Protocol votes about more than two classes: public splits of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.audit import of_task
from curvote.base.classes import Classes
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.checks import examples
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages.message import ClientData
from curvote.pipeline.run.results import final_model, final_views, replicate_scores
from curvote.systems.common.questions import halving_code
from curvote.systems.mrma.messages import DirectionVote
from curvote.wire.task import Candidates
from tests import plain, production
from tests.rounds import REPORTS

TASK = replace(REPORTS, protocol="votes", asks="vote", mechanism=BinaryRR.name)
MESSAGE = DirectionVote()


# ------------------------------------------------------------------- several classes
CIRCLE: dict[str, Any] = {
    "source": {"name": "circle", "n_classes": 5},
    "clients": {"train": 1000, "vote": 2000, "test": 300},
    "project": {"basis": "identity"},
    "votes": {"directions": 60},
    "epsilon": [8],
    "replicates": 2,
    "protocol": "votes",
}


def test_several_classes_are_learned_by_their_splits(tmp_path: Path) -> None:
    """So many directions about each of 7 splits; the model errs as it was scored."""
    project = plain.write(tmp_path, tiny=CIRCLE)
    record = plain.run(project)
    (view,) = final_views(project, record)
    assert len(view.columns("train", "weak")["coef"]) == 7 * 60
    found = replicate_scores(project, record)
    error = found[found["metric"] == "misclassification"].groupby("method")["value"]
    ours, best, constant = error.mean()[["votes", "best_single", "majority"]]
    assert ours < 0.3 < best < constant
    assert (found["metric"] == "recall").sum() == 2 * 5
    model = final_model(project, record, view.cell)
    angle = 2 * np.pi * np.arange(5) / 5
    corners = np.column_stack([np.cos(angle), np.sin(angle)])
    assert model.predict(corners).tolist() == model.classes_.tolist()


@pytest.mark.parametrize("n_classes", [3, 5, 26])
def test_a_vote_is_right_of_its_split(n_classes: int) -> None:
    """A direction that always says yes is right for whom the split answers yes."""
    code, labels = halving_code(n_classes), np.arange(n_classes)
    words = Classes(map(str, labels))
    up = Candidates(np.zeros((len(code), 4)), np.ones(len(code)))
    task = replace(TASK, classes=words, epsilon=60.0, candidates=up)
    MESSAGE.check_task(task)
    own = np.full((n_classes, 4), 0.25)
    for b, answers in enumerate(code):
        judge = np.full(n_classes, b)
        sent = MESSAGE.draw(task, ClientData(own, own, labels, judge), SeededEntropy(1))
        assert (sent["positive"] == (answers > 0)).all()


def test_too_few_clients_for_all_splits_are_refused(tmp_path: Path) -> None:
    """Every direction about every split has a voter."""
    many = CIRCLE | {"votes": {"directions": 500}}
    with pytest.raises(UserError, match="more directions about each of 7 splits"):
        plain.plan(plain.write(tmp_path, tiny=many))


def test_a_release_of_several_classes(tmp_path: Path) -> None:
    """Everybody votes once; a repeated run gives the same bytes."""
    own = {name: v for name, v in CIRCLE.items() if name != "replicates"}
    own |= {"epsilon": 4, "clients": {"train": 1000, "vote": 2000}}
    project = production.write(tmp_path, **own)
    before = production.bytes_of(project, production.run(project))
    again = production.run(project)
    assert production.bytes_of(project, again) == before
    assert len(before) == len(production.confirmed(project)) == 1


@pytest.mark.parametrize("n_classes", [5, 26])
def test_the_audit_passes_votes_about_several_classes(n_classes: int) -> None:
    """Exactly epsilon."""
    task = examples.example_task("votes", "vote", 2.0, n_classes)
    (found,) = of_task(task, samples=2000)
    assert found.verdict == "pass", found.checks
    assert found.exact == pytest.approx(2.0, abs=1e-6)
