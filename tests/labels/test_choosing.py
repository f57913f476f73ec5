"""Candidates by what each record says of them: the best, its equals, the simplest."""

from __future__ import annotations

import numpy as np
import pytest

from curvote import PrivateLabelClassifier
from curvote.systems.labels.learners.knn import KNN
from curvote.systems.labels.method.search import CandidateScores

NOISE = np.random.default_rng(0).normal(size=(3, 400))


def judged(means: list[float], sign: int = 1, own: float = 1.0) -> CandidateScores:
    """Return three candidates of those means; ``own`` is noise that is not shared."""
    models = [PrivateLabelClassifier(KNN(k)) for k in (5, 50, 20)]
    shared = 5 * NOISE[0]
    noise = shared + own * (NOISE - NOISE.mean(axis=1, keepdims=True))
    return CandidateScores(models, {"score": np.array(means)[:, None] + noise}, sign)


def test_the_simplest_of_those_near_the_best_is_taken() -> None:
    """The error of a difference of 400 is about .07: .02 is nothing, .5 is much."""
    found = judged([1.0, 0.98, 0.5])
    assert found.best_place == 0
    assert found.significantly_worse.tolist() == [False, False, True]
    assert found.simplest_place == 1
    assert judged([1.0, 0.5, 0.98]).simplest_place == 2


def test_noise_that_all_share_hides_nothing() -> None:
    """Codes are the same for all candidates: differences are of records, not means."""
    found = judged([1.0, 0.98, 0.97], own=1e-3)
    assert found.significantly_worse.tolist() == [False, True, True]
    assert (found.to_columns()["std_error_test_score"] > 0.1).all()


def test_of_losses_the_least_is_best() -> None:
    """And ranks first."""
    found = judged([1.0, 0.2, 0.6], sign=-1)
    assert found.best_place == 1
    assert found.to_columns()["rank_test_score"].tolist() == [3, 1, 2]
    assert (
        found.to_columns()["mean_test_score"][1]
        < found.to_columns()["mean_test_score"][0]
    )


def test_records_of_which_nothing_is_known_count_for_nothing() -> None:
    """NaN: a learner judged by a sample of the records."""
    found = judged([1.0, 0.98, 0.5])
    each = found.scores["score"].copy()
    each[1, 200:] = np.nan
    half = CandidateScores(found.models, {"score": each}, 1)
    assert half.to_columns()["mean_test_score"][1] == pytest.approx(
        each[1, :200].mean()
    )
    assert half.significantly_worse.tolist()[2]
