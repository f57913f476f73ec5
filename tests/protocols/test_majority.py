"""Protocol majority of two classes and more: noised labels elect a constant."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from curvote.audit.message_subject import message_subject_of
from curvote.audit.verdict import run
from curvote.base.classes import class_indices, class_signs
from curvote.base.entropy import Entropy, SeededEntropy
from curvote.base.errors import UserError
from curvote.chain.stage import Columns
from curvote.client.table import OwnerRecord, read_record
from curvote.curves.basis import identity
from curvote.curves.encoding import Encoding
from curvote.mechanisms.randomized_response import KRR, BinaryRR
from curvote.messages.answer import answer_task, stand_in_inputs, validate_task
from curvote.messages.message import MAX_CLASSES, ClientData, parse_message, payload_at
from curvote.messages.roles import split_roles
from curvote.pipeline.run.results import final_model, final_views, replicate_scores
from curvote.pipeline.store.arrow import to_arrow
from curvote.systems.mrma.system import SYSTEM as MRMA
from curvote.systems.references.messages import Label
from curvote.systems.references.stages import elect_class
from curvote.systems.references.system import LABELS, SYSTEM
from curvote.wire.task import Task
from tests import plain
from tests.memory import Made, Memory, do
from tests.rounds import REPORTS

HUGE = 200.0
SIZES = {"public": 0, "train": 300, "vote": 500, "test": 100}
N, D = sum(SIZES.values()), 3
PARAMS: dict[str, Any] = {
    "seed": 3,
    "clients": SIZES,
    "source.groups": None,
    "epsilon": HUGE,
    "replicates": 1,
    "histogram.bins": 2,
    "published.histogram": False,
}
TASK = replace(REPORTS, protocol="majority", mechanism=BinaryRR.name)
MESSAGE = Label()


def people(share: float, z: float | None = None, seed: int = 1) -> Memory:
    """Return clients, a ``share`` of them positive; all have the same z, if given."""
    rng = np.random.default_rng(seed)
    own = rng.uniform(-1, 1, (N, D)) if z is None else np.full((N, D), z)
    label = (np.arange(N) < round(share * N)).astype(int)
    rows = {"label": label, "z": own, "coefficients": own}
    encoding = Encoding(identity(D), "none").to_json()
    facts = {"d": D, "encoding": encoding, "classes": ["-1", "+1"], "roughness": []}
    return Memory.of(facts, encoded=[rows])


def chain(project: Memory, **changes: Any) -> Made:
    """Run every stage that follows the encoding."""
    made = {"project": project}
    for stage in SYSTEM.stages[2:]:
        made[stage.name] = do(stage, made, PARAMS | changes)
    return made


def known(labels: Any, z: float = 0.25) -> ClientData:
    """Return clients with these labels."""
    own = np.full((np.size(labels), 4), z)
    return ClientData(own, own, np.asarray(labels, dtype=float))


# ------------------------------------------------------------------------ the chain
@pytest.mark.parametrize(("share", "place"), [(0.3, 0), (0.7, 1), (1.0, 1)])
def test_the_larger_class_is_elected(share: float, place: int) -> None:
    """Without noise to speak of: the place of the larger class."""
    made = chain(people(share))
    found = made["aggregate"].columns("elected", (0,))
    assert found["place"] == [place]
    assert found["n"] == [SIZES["train"] + SIZES["vote"]]


@given(st.lists(st.sampled_from([-1, 1]), min_size=1, max_size=50))
def test_the_election_counts(labels: list[int]) -> None:
    """+1 wins with more than half of the labels; a tie is -1, as everywhere."""
    assert elect_class(np.array(labels), 2) == (2 * labels.count(1) > len(labels))


@pytest.mark.parametrize("epsilon", [0.5, HUGE])
def test_z_is_never_looked_at(epsilon: float) -> None:
    """Whatever the numbers are: the same labels and classifier."""
    first, *others = (
        [made[name].tables for name in ("privatize", "aggregate")]
        for z in (None, 0.5, -1e300)
        for made in [chain(people(0.4, z), epsilon=epsilon)]
    )
    for tables in others:
        np.testing.assert_equal(tables, first)


def test_labels_are_kept_as_often_as_the_mechanism_says() -> None:
    """Of equal labels a binomial number is kept; chance of a failure below 1e-6."""
    n, keep = SIZES["train"] + SIZES["vote"], BinaryRR(epsilon=1.0).keep
    table = chain(people(1.0), epsilon=1.0)["privatize"].columns("labels", (0,))
    kept = int((table["label"] == 1).sum())
    assert binom.ppf(2.5e-7, n, keep) <= kept <= binom.isf(2.5e-7, n, keep)


def test_the_table_of_labels_tells_labels_alone() -> None:
    """One column that keeps its contract, in an order that tells no role."""
    project = people(0.5)
    roles = split_roles(PARAMS["seed"], 0, N, SIZES)
    project.columns("encoded", (0,))["label"][:] = 0
    project.columns("encoded", (0,))["label"][roles["train"]] = 1
    table = chain(project)["privatize"].columns("labels", (0,))
    kept = to_arrow(LABELS, ("replicate",), (0,), table)
    assert kept.column_names == ["replicate", "label"]
    assert (table["label"] == 1).sum() == SIZES["train"]
    assert not (table["label"][: SIZES["train"]] == 1).all()


@pytest.mark.parametrize("epsilon", [0.1, HUGE])
def test_the_only_row_is_the_baseline_of_every_protocol(epsilon: float) -> None:
    """The method's error is the one that mrma's chain states beside its own."""
    made = chain(people(0.45), epsilon=epsilon)
    (baseline,) = (stage for stage in MRMA.stages if stage.module.endswith(":baseline"))
    beside = do(baseline, made, PARAMS | {"epsilon": epsilon})
    (found,), (expected,) = (one.each("scores") for one in (made["report"], beside))
    assert set(found["method"]) == {"majority"}
    assert found["metric"].tolist() == ["misclassification", "balanced_error", "auc"]
    assert found["value"][1:].tolist() == [0.5, 0.5]
    assert found["value"][0] == expected["value"][expected["method"] == "majority"]


# ----------------------------------------------------------------------- the message
def test_everybody_sends_one() -> None:
    """Who trains and who votes, as the study's table has it."""
    assert MESSAGE.senders.count(SIZES) == SIZES["train"] + SIZES["vote"]
    assert MESSAGE.stage == "privatize"


def test_impossible_labels_are_told_apart() -> None:
    """Row by row: -1 and +1 can have been sent, nothing else."""
    found = MESSAGE.possible_mask(TASK, {"label": np.array([1, 0, -1, 3])})
    np.testing.assert_array_equal(found, [True, False, True, False])


def test_an_honest_message_is_taken_and_its_order_is_lost() -> None:
    """What a client draws passes the server's check; a table is a set of labels."""
    sent = MESSAGE.draw(TASK, known([1.0, 0.0, 1.0]), SeededEntropy(5))
    for index in range(3):
        parse_message(TASK, None, payload_at(sent, index))
    table = MESSAGE.collect(TASK, sent)
    assert len(table["label"]) == 3
    assert elect_class(table["label"], 2) == elect_class(table["label"][::-1], 2)


COLOURS = ("red", "green", "blue")
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


def owners(labels: Any) -> ClientData:
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
    sent = MESSAGE.draw(own, owners(labels), SeededEntropy(seed))
    drawn = KRR(epsilon=1.0, n_classes=k).randomize(labels, SeededEntropy(seed))
    assert sent.keys() == {"label"}
    assert sent["label"].tolist() == drawn.tolist()
    assert MESSAGE.possible_mask(own, sent).all()
    parse_message(own, None, payload_at(sent, 0))


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
    errors = found["value"][found["metric"] == "misclassification"]
    assert errors.mean() == pytest.approx(1 - share, abs=0.1)
    assert set(view.columns("privatize", "labels")["label"]) <= {0, 1, 2, 3}
    model = final_model(project, record, view.cell)
    assert model.classes_.tolist() == ["0", "1", "2", "3"]
    assert model.predict(np.zeros((3, 2))).tolist() == ["0"] * 3
    assert view.columns("aggregate", "elected")["place"].tolist() == [0]
