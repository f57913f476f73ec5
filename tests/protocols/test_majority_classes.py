"""Protocol majority of several classes: k-ary randomized response elects one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvote.audit import of_task
from curvote.audit.message_subject import message_subject_of
from curvote.audit.verdict import run
from curvote.base.classes import class_indices, class_signs
from curvote.base.entropy import Entropy, SeededEntropy
from curvote.base.errors import UserError
from curvote.chain.stage import Columns
from curvote.checks.word_checks import RefusingEntropy
from curvote.client.table import OwnerRecord, read_record
from curvote.mechanisms.randomized_response import KRR
from curvote.messages.answer import answer_task, stand_in_inputs, validate_task
from curvote.messages.message import MAX_CLASSES, ClientData, parse_message, payload_at
from curvote.pipeline.run.results import final_model, final_views, replicate_scores
from curvote.systems.references.messages import Label
from curvote.systems.references.stages import elect_class
from curvote.wire.task import Task
from tests import plain
from tests.rounds import REPORTS

COLOURS = ("red", "green", "blue")
MESSAGE = Label()
CIRCLE = {
    "source": {"name": "circle", "n_classes": 4, "shares": "rank"},
    "clients": {"train": 300, "vote": 100, "test": 80},
    "project": {"basis": "identity", "size": None},
    "epsilon": [8],
    "replicates": 2,
}


def task(classes: tuple[str, ...] = COLOURS, epsilon: float = 1.0) -> Task:
    """Return the task of a round about these classes."""
    stated = replace(REPORTS, protocol="majority", classes=classes, epsilon=epsilon)
    return MESSAGE.task(replace(stated, mechanism=""), lambda *_: {})


def known(labels: Any) -> ClientData:
    """Return clients with these labels."""
    own = np.full((np.size(labels), 4), 0.25)
    return ClientData(own, own, np.asarray(labels))


# ------------------------------------------------------------------------- the labels
def test_places_are_whole_numbers_below_the_number_of_classes() -> None:
    """Whatever kind of number; anything else is named, with its value."""
    assert class_indices([0.0, 2.0, 1.0], 3).tolist() == [0, 2, 1]
    for bad in (-1, 3, 0.5):
        with pytest.raises(UserError, match=f"the first is {bad:g}; the 3 classes are"):
            class_indices([0, bad], 3)
    with pytest.raises(UserError, match="NaN"):
        class_indices([np.nan], 3)


def test_signs_are_of_two_classes_alone() -> None:
    """Class 0 is -1, class 1 is +1, and a third one has no sign."""
    assert class_signs([0, 1, 1]).tolist() == [-1.0, 1.0, 1.0]
    with pytest.raises(UserError, match="the first is 2; the 2 classes"):
        class_signs([0, 1, 2])


# ------------------------------------------------------------------------ the message
def test_the_classes_choose_the_mechanism() -> None:
    """Two are told apart by a sign, more by their places; a task says so."""
    assert task(("no", "yes")).mechanism == "binary_rr"
    assert task().mechanism == "k_rr"
    for wrong in (
        replace(task(), mechanism="binary_rr"),
        replace(task(("no", "yes")), mechanism="k_rr"),
        replace(task(), params={"n_classes": 3}),
        task(tuple(map(str, range(MAX_CLASSES + 1)))),
    ):
        with pytest.raises(UserError):
            MESSAGE.check_task(wrong)
    MESSAGE.check_task(task(tuple(map(str, range(MAX_CLASSES)))))


@given(st.integers(3, MAX_CLASSES), st.integers(0, 2**32))
def test_what_is_sent_is_what_the_mechanism_draws(k: int, seed: int) -> None:
    """A place, from the same words; no further noise, nothing besides."""
    own = task(tuple(map(str, range(k))))
    labels = np.random.default_rng(seed).integers(k, size=50)
    sent = MESSAGE.draw(own, known(labels), SeededEntropy(seed))
    drawn = KRR(epsilon=1.0, n_classes=k).randomize(labels, SeededEntropy(seed))
    assert sent.keys() == {"label"}
    assert sent["label"].tolist() == drawn.tolist()
    assert MESSAGE.possible_mask(own, sent).all()
    parse_message(own, None, payload_at(sent, 0))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 10.0])
def test_the_declared_loss_is_that_of_the_law_and_within_epsilon(
    epsilon: float,
) -> None:
    """Over all pairs of labels and all outputs."""
    own = task(epsilon=epsilon)
    one, other, said = (part.ravel() for part in np.meshgrid(*[range(3)] * 3))
    found = MESSAGE.log_ratio(own, known(one), known(other), {"label": said})
    worst = MESSAGE.max_privacy_loss(own)
    assert 0 < worst <= epsilon
    np.testing.assert_allclose(np.abs(found).max(), worst, rtol=1e-9)


@pytest.mark.parametrize("forged", [-1, 3, 1.0, True, None, 2**40])
def test_a_label_that_no_class_has_is_refused(forged: Any) -> None:
    """The task's classes say what there is: -1 and 1 of two, places of more."""
    with pytest.raises(UserError, match="report"):
        parse_message(task(), None, {"label": forged})
    parse_message(task(), None, {"label": 0})


@pytest.mark.parametrize("bad", [[np.nan], [-1], [3], [0.5]])
def test_what_is_no_class_is_refused_before_a_word_is_drawn(bad: list[float]) -> None:
    """Nothing is drawn of a broken label."""
    with pytest.raises(UserError):
        MESSAGE.draw(task(), known(bad), RefusingEntropy())


def test_the_audit_passes_a_message_of_four_classes() -> None:
    """Its losses, its draws and what it refuses, as of any message."""
    (found,) = of_task(task(("a", "b", "c", "d"), 2.0), samples=6000)
    assert (found.mechanism, found.verdict) == ("majority.report@4", "pass"), found
    assert found.exact == pytest.approx(2.0, abs=1e-6)


class KeptInTwoClasses(Label):
    """Noises the label among the first two classes only, and sends the others."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return labels of which some are true."""
        sent = super().draw(task, data, entropy)["label"]
        return {"label": np.where(data.labels > 1, data.labels, sent).astype(np.int8)}


def test_the_audit_catches_a_message_that_noises_two_classes_only() -> None:
    """A third class would else be plain to see."""
    subject = message_subject_of(task(("a", "b", "c", "d"), 2.0))
    (found,) = run(replace(subject, message=KeptInTwoClasses()), samples=6000)
    assert found.verdict == "violated"


# ------------------------------------------------------------------------- the client
def test_a_client_names_any_of_the_classes(tmp_path: Path) -> None:
    """The word is its place; another word is refused, and the file is not read."""
    curve = tmp_path / "curve.csv"
    curve.write_text("1,2,3,4\n")
    own = validate_task(json.loads(json.dumps(task().to_json())))
    assert [read_record(curve, word, own).label for word in COLOURS] == [0, 1, 2]
    with pytest.raises(UserError, match="label"):
        read_record(tmp_path / "none.csv", "purple", own)


def test_what_cannot_be_told_stands_for_the_first_class() -> None:
    """The record that everybody knows; and an answer names one of the classes."""
    assert stand_in_inputs(task(), None).labels.tolist() == [0]
    sent = answer_task(
        task(), OwnerRecord(np.full(4, np.nan), 2), None, SeededEntropy(1)
    )
    assert sent["label"] in range(3)


# --------------------------------------------------------------------------- the chain
@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_the_class_with_most_labels_is_elected(labels: list[int]) -> None:
    """And the first of those that have equally many."""
    counts = [labels.count(place) for place in range(5)]
    assert elect_class(np.array(labels), 5) == counts.index(max(counts))


def test_a_study_of_several_classes_keeps_what_it_scored(tmp_path: Path) -> None:
    """The largest of four classes wins; the model says its name for every record."""
    project = plain.write(tmp_path, tiny=CIRCLE | {"protocol": "majority"})
    record = plain.run(project)
    (view,) = final_views(project, record)
    found = replicate_scores(project, record)
    share = 1 / (1 + 1 / 2 + 1 / 3 + 1 / 4)
    assert found["value"].mean() == pytest.approx(1 - share, abs=0.1)
    assert set(view.columns("privatize", "labels")["label"]) <= {0, 1, 2, 3}
    model = final_model(project, record, view.cell)
    assert model.classes_.tolist() == ["0", "1", "2", "3"]
    assert model.predict(np.zeros((3, 2))).tolist() == ["0"] * 3
    assert view.columns("aggregate", "elected")["place"].tolist() == [0]
