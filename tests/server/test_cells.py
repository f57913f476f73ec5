"""Counts freed of bias, and the classifiers that they make."""

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.curves.partition import bin_partitions, half_partitions
from curvote.learning.cells import (
    CellShares,
    best_question,
    estimate_shares,
    leaf_scores,
    naive_bayes_scores,
    predict_cells,
)
from curvote.mechanisms.randomized_response import KRR

Q, C, K = 2, 3, 4
HUGE = 200.0


def answers(n: int, epsilon: float, seed: int = 1) -> tuple[np.ndarray, ...]:
    """Return questions, true words and noised ones; the law differs by question."""
    rng = np.random.default_rng(seed)
    question = rng.integers(Q, size=n)
    weight = np.array([np.arange(1, C * K + 1), np.ones(C * K)])
    law = weight / weight.sum(axis=1, keepdims=True)
    truth = np.array([rng.choice(C * K, p=law[q]) for q in question])
    noised = KRR(epsilon=epsilon, n_classes=C * K).randomize(truth, SeededEntropy(seed))
    return question, truth, noised, law


@pytest.mark.parametrize("epsilon", [0.5, 2.0, HUGE])
def test_shares_are_unbiased_and_their_noise_is_known(epsilon: float) -> None:
    """Within 6 standard errors of the law, those of sampling and of noise."""
    n = 6000
    question, _, noised, law = answers(n, epsilon)
    found = estimate_shares(question, noised, (Q, C, K), epsilon)
    assert found.n.tolist() == np.bincount(question).tolist()
    sampling = np.sqrt(law * (1 - law) / found.n[:, None])
    noise = found.noise[:, None] + sampling
    # Of the kept word the noise is larger, by at most this.
    kept = np.sqrt(law / found.n[:, None]) * np.exp(epsilon / 2) / np.expm1(epsilon)
    gap = np.abs(found.joint.reshape(Q, -1) - law)
    assert (gap < 6 * (noise + 4 * kept)).all()
    np.testing.assert_allclose(found.joint.sum(axis=(1, 2)), 1)


def test_what_nobody_was_asked_says_nothing() -> None:
    """Every word is as likely, and no number is undefined."""
    found = estimate_shares(np.zeros(5, dtype=int), np.arange(5), (Q, C, K), 1.0)
    np.testing.assert_allclose(found.joint[1], 1 / (C * K))
    for scores in (
        naive_bayes_scores(found),
        best_question(found)[1],
        leaf_scores(found),
    ):
        assert np.isfinite(scores).all()


def test_naive_bayes_is_that_of_the_counts() -> None:
    """Without noise, a product over numbers of what the class says of the bin."""
    joint = np.array([[[0.3, 0.1], [0.2, 0.4]], [[0.1, 0.3], [0.4, 0.2]]])
    found = CellShares(joint, np.full(2, 1e12), np.zeros(2))
    scores = naive_bayes_scores(found)
    total = scores[0][:, None] + scores[1][None]  # bins of both numbers
    cells = (joint[0][:, None] * joint[1][None]) / np.array([0.5, 0.5])
    np.testing.assert_allclose(np.exp(total), cells, rtol=1e-6)


def test_cells_below_the_noise_say_little() -> None:
    """A share that is negative by noise does not rule a class out."""
    joint = np.array([[[0.5, -0.02], [0.02, 0.5]]])
    quiet, loud = (
        naive_bayes_scores(CellShares(joint, np.full(1, 1000.0), np.array([noise])))
        for noise in (0.001, 0.2)
    )
    assert quiet[0, 0, 0] - quiet[0, 0, 1] > 5
    assert loud[0, 0, 0] - loud[0, 0, 1] < 1
    assert np.isfinite([quiet, loud]).all()


def test_the_best_question_is_the_one_that_tells_classes_apart() -> None:
    """Its scores name the larger class on each side."""
    joint = np.array([[[0.3, 0.2], [0.3, 0.2]], [[0.4, 0.1], [0.1, 0.4]]])
    place, scores = best_question(
        CellShares(joint, np.full(2, 100.0), np.full(2, 0.01))
    )
    assert place == 1
    assert scores.argmax(axis=2).tolist() == [[0, 1]]


def test_a_leaf_leaves_the_majority_only_where_it_is_sure() -> None:
    """A lead of less than its standard error is noise."""
    joint = np.array([[[0.4, 0.1], [0.24, 0.26]]])
    for noise, wanted in ((0.001, [0, 1]), (0.1, [0, 0])):
        scores = leaf_scores(CellShares(joint, np.full(1, 100.0), np.array([noise])))
        assert scores.argmax(axis=2).tolist() == [wanted]


def test_scores_are_added_over_questions() -> None:
    """The largest sum wins, the first of ties."""
    z = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0]])
    scores = np.zeros((2, 2, 3))
    scores[0, 1, 1], scores[1, 1, 2] = 1.0, 2.0
    assert predict_cells(scores, half_partitions(2, "none", 1), z).tolist() == [0, 1, 2]
    assert predict_cells(
        np.zeros((2, 3, 3)), bin_partitions(2, "none", 3), z
    ).tolist() == [0, 0, 0]
