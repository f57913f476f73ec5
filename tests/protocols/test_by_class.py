"""What is told of each of several classes: counted right, stored, shown and logged."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from curvote.base.errors import UserError
from curvote.chain.measure import SCORES
from curvote.cli.tables import print_scores
from curvote.curves.encoding import predict_indices
from curvote.flows.tracking.cells import load_scores, metrics_by_cell
from curvote.learning.votes import average_classifiers
from curvote.messages.measures import errors_tell_nothing
from curvote.messages.message import ClientData
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.results import RunView, final_views, mean_scores
from curvote.pipeline.store.records import RunRecord
from curvote.report.page import load_page_data, render_report
from curvote.systems.common import study
from curvote.systems.common.checks import class_count
from curvote.systems.common.models import combine_lines, combined_decisions
from curvote.systems.common.page.utilities import ByClass
from curvote.systems.common.questions import (
    answer_questions,
    complete_labels,
    halving_code,
    interleave_questions,
    one_against_rest_code,
    split_questions,
)
from curvote.systems.common.study import CONFUSION, score_rows
from tests import plain

SOURCE = {"name": "simulated-classes", "n_classes": 4, "d": 3, "distance": 5.0}
RUN: dict[str, Any] = {
    "source": SOURCE,
    "clients": {"public": 20, "train": 900, "test": 60},
    "project": {"basis": "identity", "rescale": "standard", "scale": 1.8},
    "protocols": ["direct", "majority", "clean"],
    "learners": ["lda"],
    "epsilon": [1, 8],
    "replicates": 2,
}
pairs = st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=1, max_size=30)


@given(pairs)
def test_recall_and_confusion_are_counts(pairs: list[tuple[int, int]]) -> None:
    """Of classes that were tested; whatever is said of them adds up."""
    truth, said = np.array(pairs).T
    names = ["a", "b", "c", "d"]
    told = study.add_class_scores(score_rows({"own": 0.5}), "own", truth, said, names)
    counted = told[CONFUSION.name]
    assert counted["n"].sum() == len(pairs)
    recalls = {
        name: np.mean(said[truth == k] == k)
        for k, name in enumerate(names)
        if (truth == k).any()
    }
    rows = told[SCORES.name]
    of_class = rows["metric"] == "recall"
    found = dict(zip(rows["group"][of_class], rows["value"][of_class], strict=True))
    assert found == pytest.approx(recalls)
    balanced = rows["value"][rows["metric"] == "balanced_error"]
    missed = [1 - np.mean(list(recalls.values()))] * (len(recalls) > 1)
    assert balanced.tolist() == pytest.approx(missed)
    assert set(rows["group"][~of_class]) == {None}
    for true, other, n in zip(*counted.values(), strict=True):
        context = (truth == names.index(true)) & (said == names.index(other))
        assert n == context.sum()


def test_two_classes_are_ranked_beside_who_says_one() -> None:
    """Balanced error and AUC as scikit-learn has them; neither where all are of one."""
    rng, rows = np.random.default_rng(0), score_rows({"majority": 0.2, "own": 0.5})
    truth, decision = (rng.random(200) < 0.2).astype(int), rng.normal(size=200)
    places, names = (decision > 0).astype(int), ["no", "yes"]

    def scores_of(truth: np.ndarray) -> dict[tuple[str, str], float]:
        table = study.add_class_scores(
            rows, "own", truth, places, names, decision=decision
        )
        (told,) = table.values()
        pairs = zip(told["method"], told["metric"], strict=True)
        return dict(zip(pairs, told["value"], strict=True))

    assert scores_of(truth) == {
        ("majority", "misclassification"): 0.2,
        ("own", "misclassification"): 0.5,
        ("majority", "balanced_error"): 0.5,
        ("majority", "auc"): 0.5,
        ("own", "balanced_error"): 1 - balanced_accuracy_score(truth, places),
        ("own", "auc"): roc_auc_score(truth, decision),
    }
    assert ("own", "auc") not in scores_of(np.zeros(200, dtype=int))


@pytest.mark.parametrize(
    ("clean", "se", "leads"),
    [(0.05, 0.0, True), (0.045, 0.01, True), (0.03, 0.01, False), (None, None, False)],
)
def test_errors_tell_nothing_where_no_privacy_errs_as_the_majority(
    clean: float | None, se: float | None, *, leads: bool
) -> None:
    """As far as a standard error tells; who has no such row is never told so."""
    row = {"metric": "misclassification", "se": 0.0}
    rows = [row | {"method": "majority", "value": 0.05}]
    rows += [row | {"method": "clean", "value": clean, "se": se}] * (clean is not None)
    assert errors_tell_nothing(rows) is leads


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, RunRecord]:
    """Return a study of four classes, and one of two beside it."""
    two = RUN | {"source": SOURCE | {"n_classes": 2}, "train": {"count": 2, "size": 50}}
    root = tmp_path_factory.mktemp("classes")
    project = plain.write(root, tiny=RUN | {"seed": 3}, two=two | {"seed": 3})
    return project, plain.run(project)


def test_recall_is_one_less_the_error(done: tuple[Project, RunRecord]) -> None:
    """Weighted by how often a class was tested, in every cell that tells it."""
    cells = [
        view for view in final_views(*done) if view.holds("report", CONFUSION.name)
    ]
    assert {view.cell["protocol"] for view in cells} == {
        "direct",
        "clean",
        "volunteers",
    }
    for view in cells:
        told, table = view.read("report", CONFUSION.name), _errors(view)
        right = told[told["true"].astype(str) == told["said"].astype(str)]
        assert told["n"].sum() == 2 * 60
        assert right["n"].sum() / 120 == pytest.approx(1 - table.mean())


def _errors(view: RunView) -> Any:
    scores = view.read("report", SCORES.name)
    own = scores["method"].astype(str) != "majority"
    return scores[own & (scores["metric"] == "misclassification")]["value"]


def test_two_classes_have_no_such_table(done: tuple[Project, RunRecord]) -> None:
    """Neither in the plan nor in what is stored."""
    project, _ = done
    for view in final_views(project, plain.run(project, "two")):
        assert not view.holds("report", CONFUSION.name)
        scores = view.read("report", SCORES.name)
        assert "recall" not in set(scores["metric"].astype(str))


def test_rows_of_each_class_are_listed_and_logged(
    done: tuple[Project, RunRecord], capsys: pytest.CaptureFixture[str]
) -> None:
    """In `scores --json`, as a metric for each in MLflow, and where they are named."""
    project, record = done
    rows = mean_scores(project, record)
    own = [row for row in rows if row["metric"] == "recall"]
    assert {row["group"] for row in own} == {"0", "1", "2", "3"}
    logged = metrics_by_cell(load_scores(record, rows))
    (clean,) = (values for cell, values in logged.items() if cell["learner"])
    assert {f"recall.clean.class-{k}" for k in range(4)} <= set(clean)
    print_scores(record, rows)
    assert "recall" not in capsys.readouterr().out
    print_scores(record, rows, "recall")
    assert "class 3" in capsys.readouterr().out


@pytest.mark.usefixtures("blank_figures")
def test_the_page_has_a_section_of_classes(
    done: tuple[Project, RunRecord], tmp_path: Path
) -> None:
    """A table of recall, and matrices whose rows are shares; scores as they were."""
    data = load_page_data(*done)
    assert [metric.name for metric in data.measured_metrics] == ["misclassification"]
    (section,) = (one for one in data.sections if isinstance(one, ByClass))
    (table,) = section.recalls
    assert table.protocols == ["direct, epsilon 1", "clean, lda", "volunteers"]
    assert [row.name for row in table.rows] == ["0", "1", "2", "3"]
    assert [one.title for one in section.matrices] == [
        "direct, epsilon 1",
        "direct, epsilon 8",
    ]
    for one in section.matrices:
        np.testing.assert_allclose(one.shares.sum(axis=1), 100)
    page = render_report(data, tmp_path).read_text()
    assert "How often each class is recognised" in page
    assert (tmp_path / "figures" / "by_class.png").is_file()


@pytest.mark.parametrize("name", ["centroid", "svm"])
def test_clean_says_which_learners_know_several_classes(
    tmp_path: Path, name: str
) -> None:
    """With what there is instead."""
    project = plain.write(tmp_path, tiny=RUN | {"learners": [name]})
    with pytest.raises(UserError, match=f"learner is '{name}'.*lda"):
        plain.plan(project)


CODES = (one_against_rest_code, halving_code)
Code = Callable[[int], np.ndarray]
CLASSES = [2, 3, 4, 5, 8, 10, 26, 128]


@pytest.mark.parametrize("code", CODES)
def test_two_classes_leave_one_question(code: Code) -> None:
    """It is "is it class 1?", so that two classes are asked as they always were."""
    assert code(2).tolist() == [[-1.0, 1.0]]


@pytest.mark.parametrize("n_classes", CLASSES[1:])
def test_one_against_the_rest_singles_out_each_class(n_classes: int) -> None:
    """Question k is answered yes by class k alone."""
    code = one_against_rest_code(n_classes)
    assert ((code == 1) == np.eye(n_classes, dtype=bool)).all()
    assert set(np.unique(code)) == {-1, 1}


@pytest.mark.parametrize("n_classes", CLASSES)
def test_splits_are_corners_of_a_regular_simplex(n_classes: int) -> None:
    """Any two classes agree as often as any others, and each question parts some."""
    code = halving_code(n_classes)
    products = code.T @ code
    assert set(np.unique(code)) == {-1, 1}
    assert (products[~np.eye(n_classes, dtype=bool)] == -1).all()
    assert (np.ptp(code, axis=1) == 2).all()
    assert n_classes - 1 <= len(code) < 2 * (n_classes - 1) or n_classes == 2


def test_a_power_of_two_is_split_into_equal_halves() -> None:
    """Every answer is then as frequent as the other."""
    assert (halving_code(8).sum(axis=1) == 0).all()


def test_questions_are_taken_in_turn() -> None:
    """Number Q is the first one again; what is no class is refused."""
    code = one_against_rest_code(3)
    told = answer_questions(code, np.array([0, 1, 2, 3, 4]), np.array([0, 0, 2, 0, 2]))
    assert told.tolist() == [1, -1, 1, 1, -1]
    for bad in (-1, 3, 0.5, np.nan):
        with pytest.raises(UserError):
            answer_questions(code, np.array([0]), np.array([bad]))


@given(st.integers(1, 6), st.integers(1, 6))
def test_what_was_taken_apart_stands_in_turn_again(count: int, n: int) -> None:
    """Rows b, b + Q, ... are about one question."""
    rows = {"n": np.arange(count * n)}
    each = split_questions(rows, n)
    assert [set(own["n"] % n) for own in each] == [{q} for q in range(n)]
    assert (interleave_questions([own["n"] for own in each]) == rows["n"]).all()


def test_a_source_tells_how_many_classes_it_has() -> None:
    """Those that list none have two; so `mrma` of two is what it was."""
    assert class_count({"name": "simulated"}) == 2
    assert class_count({"name": "circle", "n_classes": 2}) == 2
    assert class_count({"name": "circle", "n_classes": 5}) == 5


def test_a_broken_record_is_refused() -> None:
    """Of labels and numbers alike, and where one has none of the other."""
    z = np.zeros((2, 3))
    assert complete_labels(ClientData(z, z, np.array([2.0, 0.0])), 3).tolist() == [2, 0]
    for numbers, labels in ((z, [0]), (z, [0, 3]), (z * np.nan, [0, 1])):
        with pytest.raises(UserError):
            complete_labels(ClientData(numbers, numbers, np.array(labels)), 3)


def test_two_classes_are_averaged_as_ever() -> None:
    """The one line has the bits of MRMA's average."""
    rng = np.random.default_rng(1)
    coef, intercept, w = rng.normal(size=(9, 4)), rng.normal(size=9), rng.normal(size=9)
    found = combine_lines(one_against_rest_code(2), (coef, intercept), w)
    right = average_classifiers(coef, intercept, w)
    assert found[0].tobytes() == right[0].tobytes()
    assert found[1].tolist() == [right[1]]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("n_classes", CLASSES)
def test_right_answers_name_the_class(code: Code, n_classes: int) -> None:
    """Lines that tell every answer rightly, each so often, make the right scores."""
    own = code(n_classes)
    records = np.eye(n_classes)  # f(z) = answer of class k at corner k
    lines = np.tile(own, (2, 1)), np.zeros(2 * len(own))
    weights = np.full(2 * len(own), 0.5)
    told = predict_indices(combined_decisions(own, records, lines, weights))
    assert told.tolist() == list(range(n_classes))
    turned = combined_decisions(own, records, (-lines[0], lines[1]), -weights)
    assert (predict_indices(turned) == told).all()
