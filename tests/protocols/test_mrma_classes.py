"""MRMA of several classes: each message is about one class against the rest."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.audit.message_subject import message_subject_of
from curvote.audit.verdict import run
from curvote.base.classes import Classes
from curvote.base.entropy import Entropy, SeededEntropy
from curvote.base.errors import UserError
from curvote.chain.lookup import find_system
from curvote.chain.stage import Columns
from curvote.checks import examples
from curvote.curves.basis import identity
from curvote.curves.encoding import Encoding
from curvote.messages.message import ClientData
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.results import final_model, final_views, replicate_scores
from curvote.pipeline.store.records import RunRecord
from curvote.systems.common.tables import WEAK_VARIANTS, lines_of_variant
from curvote.systems.mrma.messages import MESSAGES_BY_SYSTEM, ClassReport, ClassVote
from curvote.wire.task import Candidates, Task
from tests import plain, production
from tests.exchange import FAR, NAME, Server, answers
from tests.memory import Made, Memory, do, replicates
from tests.rounds import REPORTS

MESSAGES = MESSAGES_BY_SYSTEM["mrma_classes"]

SYSTEM = find_system("mrma_classes")

K = 4
CIRCLE: dict[str, Any] = {
    "source": {"name": "circle", "n_classes": K},
    "clients": {"train": 800, "vote": 1600, "test": 300},
    "project": {"basis": "identity"},
    "train": {"count": 5, "size": 60},
    "aggregate": {"cutoff": 0.6},
    "epsilon": [4],
    "learners": ["centroid"],
    "replicates": 2,
    "seed": 7,
    "protocol": "mrma",
}
NAMES = ("weak", "mr", "ma", "mrma", "best_single", "voting", "averaging", "all_data")


def task(n_classes: int = K, epsilon: float = 1.0) -> Task:
    """Return the task of a round of reports about so many classes."""
    own = {"classes": Classes(map(str, range(n_classes))), "epsilon": epsilon}
    return replace(REPORTS, protocol="mrma_classes", **own)


def asked(n_classes: int = K, epsilon: float = 1.0) -> Task:
    """Return the task of a round of votes: a constant yes for each class, and no."""
    up = Candidates(np.zeros((2 * n_classes, 4)), np.repeat([1.0, -1.0], n_classes))
    own = replace(task(n_classes, epsilon), asks="vote", mechanism="binary_rr")
    return replace(own, candidates=up)


def known(labels: Any, judge: Any = None) -> ClientData:
    """Return clients with these labels."""
    own = np.full((np.size(labels), 4), 0.25)
    return ClientData(own, own, np.asarray(labels), judge)


# --------------------------------------------------------------------------- messages
def test_a_report_tells_of_one_class_drawn_without_the_data() -> None:
    """Each class as often, whatever the label is; at a large epsilon the answer is."""
    labels = np.repeat(np.arange(K), 500)
    sent = ClassReport().draw(task(epsilon=1e4), known(labels), SeededEntropy(1))
    assert np.bincount(sent["question"], minlength=K) == pytest.approx(500, abs=120)
    assert (sent["label"] == np.where(sent["question"] == labels, 1, -1)).all()
    others = ClassReport().draw(
        task(epsilon=1e4), known(labels[::-1]), SeededEntropy(1)
    )
    assert (others["question"] == sent["question"]).all()


def test_a_vote_is_about_its_candidate_s_class() -> None:
    """Candidate b is about class b mod K: yes and no are right for whom they name."""
    judge, labels = np.arange(2 * K), np.tile([0, 1, 1, 3], 2)
    bits = ClassVote().draw(asked(epsilon=60.0), known(labels, judge), SeededEntropy(1))
    yes = np.array([True, True, False, True])
    assert bits["positive"].tolist() == [*yes, *~yes]
    assert bits["learner"].tolist() == judge.tolist()


class AsksItsOwnClass(ClassReport):
    """Draws no class: it answers for its own."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return reports whose question is the label."""
        sent = super().draw(task, data, entropy)
        return {**sent, "question": data.labels.astype(np.int64)}


class AnswersBeside(ClassReport):
    """Noises an answer, and forgets that of the last class."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return reports of which some answers are true."""
        sent = super().draw(task, data, entropy)
        last = len(task.classes) - 1
        truth = np.where(data.labels == last, 1, -1)
        told = np.where(sent["question"] == last, truth, sent["label"])
        return {**sent, "label": told.astype(np.int8)}


@pytest.mark.parametrize("twin", [AsksItsOwnClass(), AnswersBeside()])
def test_the_audit_catches_a_broken_twin(twin: ClassReport) -> None:
    """The class would tell the label, or one answer would."""
    subject = message_subject_of(
        examples.example_task("mrma_classes", "report", 2.0, 5)
    )
    (found,) = run(replace(subject, message=twin), samples=6000)
    assert found.verdict == "violated"


# -------------------------------------------------------------------------- the chain
@lru_cache
def made() -> Made:
    """Return what clients and server make of corners that tell their class."""
    stages = {stage.name: stage for stage in SYSTEM.stages}
    n, rng = 3000, np.random.default_rng(3)
    label = rng.integers(K, size=n)
    z = np.tanh(np.eye(K)[label] * 2 - 1 + rng.normal(size=(n, K)) / 2)
    facts = {"d": K, "encoding": Encoding(identity(K), "tanh").to_json()}
    facts |= {"classes": list("abcd"), "roughness": np.zeros((K, K)).tolist()}
    rows = {"label": label, "z": z, "coefficients": z}
    found = {"project": Memory.of(facts, encoded=[rows] * 2)}
    sizes = {"public": 0, "train": 1000, "vote": 1500, "test": 500}
    params = {
        "seed": 3,
        "clients": sizes,
        "source.groups": None,
        "epsilon": 50.0,
        "replicates": 2,
        "project.judge": "rescaled",
        "privatize.mechanism": "laplace",
        "privatize.params": {},
        "privatize.label_share": "equal",
        "learner.name": "centroid",
        "learner.params": {},
        "train.count": 5,
        "train.size": 60,
        "aggregate.cutoff": 0.6,
        "aggregate.weights": "excess",
        "aggregate.when_none_pass": "soft",
    }
    for name in ("privatize", "train", "evaluate", "aggregate"):
        found[name] = do(stages[name], found, params, replicates(2))
    return found


def test_each_classifier_learns_of_one_class_and_has_length_1() -> None:
    """Rows are about class b mod K, in every variant: its own axis weighs most."""
    weak = made()["train"].columns("weak", (0,))
    assert np.bincount(weak["arm"]).tolist() == [5 * K, 5 * K, K]
    lengths = np.hypot(np.linalg.norm(weak["coef"], axis=1), weak["intercept"])
    np.testing.assert_allclose(lengths, 1)
    assert (weak["n"][weak["arm"] == 0] == 60).all()
    for name in WEAK_VARIANTS:
        coef, _ = lines_of_variant(weak, name)
        assert (coef.argmax(axis=1) == np.arange(len(coef)) % K).mean() > 0.9


def test_weights_are_of_the_classifiers_of_one_class() -> None:
    """They sum to 1 for each, and each voter judged one classifier."""
    assert made()["evaluate"].columns("votes", (0,))["n"].sum() == 1500
    weight = made()["aggregate"].columns("ensemble", (0,))["weight"]
    np.testing.assert_allclose(weight.reshape(-1, K).sum(axis=0), 1)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, RunRecord]:
    """Return a project and its run."""
    project = plain.write(tmp_path_factory.mktemp("study"), tiny=CIRCLE)
    return project, plain.run(project)


def test_a_study_scores_every_method(study: tuple[Project, RunRecord]) -> None:
    """Under the label `mrma`, baselines and recalls beside; it learns something."""
    found = replicate_scores(*study)
    told = found[found["metric"] == "misclassification"]
    error = told.groupby("method")["value"].mean()
    assert set(error.index) == {*NAMES, "majority", "histogram"}
    assert error["mrma"] < error["mr"] < error["weak"] < 0.75
    assert set(found["protocol"]) == {"mrma"}
    assert (found["metric"] == "recall").sum() == 2 * K


def test_the_model_errs_as_it_was_scored(study: tuple[Project, RunRecord]) -> None:
    """It holds a line for each class, and names the classes."""
    (view,) = final_views(*study)
    model = final_model(*study, view.cell)
    assert model.coef.shape == (K, 2)
    assert model.classes_.tolist() == ["0", "1", "2", "3"]
    corners = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    assert model.predict(corners).tolist() == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"train": {"count": 500, "size": 60}}, "500 classifiers of each of 4 classes"),
        ({"train": {"count": 5, "size": 300}}, "300 reports about each of 4 classes"),
        ({"as_published": True}, "the printed tables know two classes"),
    ],
)
def test_too_few_clients_for_each_class_are_refused(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    """And what exists for two classes alone."""
    with pytest.raises(UserError, match=words):
        plain.plan(plain.write(tmp_path, tiny=CIRCLE | change))


def test_production_releases_once_and_knows_its_classes(tmp_path: Path) -> None:
    """A report of who trains, a vote of the others; a repeated run gives the bytes."""
    own = {name: v for name, v in CIRCLE.items() if name != "replicates"}
    own |= {"epsilon": 4, "clients": {"train": 800, "vote": 1600}}
    project = production.write(tmp_path, **own)
    did = production.run(project)
    before = production.bytes_of(project, did)
    assert len(before) == len(production.confirmed(project)) == 2
    again = production.run(project)
    assert {step.action for step in again.steps} == {"reuse"}
    assert production.bytes_of(project, again) == before


def test_several_classes_by_envelope(tmp_path: Path) -> None:
    """Clients elsewhere answer both rounds; then there is a line for each class."""
    source = {"name": "remote", "points": 20, "classes": ["a", "b", "c"]}
    few = {"clients": {"train": 30, "vote": 12}, "train": {"count": 2, "size": 10}}
    far = FAR | {"source": source, "epsilon": 8} | few
    server = Server(plain.write(tmp_path / "server", **{NAME: far}))
    server.run()
    for asks, n in (("report", 30), ("vote", 12)):
        curves = np.random.default_rng(n).normal(size=(n, 20))
        server.take(answers(server, asks, curves, np.arange(n) % 3, tmp_path / asks))
        did, record = server.run()
    assert not did.blocked_steps()
    (view,) = final_views(server.project, record)
    assert np.unique(view.columns("privatize", "class_reports")["question"]).size == 3
    assert final_model(server.project, record, view.cell).coef.shape == (3, 4)
