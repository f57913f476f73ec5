"""Scores of several classes by scikit-learn, whichever classes the records have."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from curvote.curves.encoding import predict_indices
from curvote.learning.volunteers import class_scores, ridge_logistic


@pytest.mark.parametrize("there", [[2], [0, 3], [3, 1], [0, 1, 2], [0, 1, 2, 3]])
def test_scores_name_what_scikit_learn_names(there: list[int]) -> None:
    """A class that no record has never wins; one alone always does."""
    rng = np.random.default_rng(5)
    places = np.repeat(there, 40)
    z = rng.normal(size=(len(places), 3)) + 2 * np.eye(4)[places][:, :3]
    coef, intercept = class_scores(LinearDiscriminantAnalysis(), z, places, 4)
    assert coef.shape == (4, 3)
    assert np.isfinite(coef).all()
    assert np.isfinite(intercept).all()
    named = predict_indices(z @ coef.T + intercept)
    if len(there) == 1:
        assert (named == there[0]).all()
    else:
        own = LinearDiscriminantAnalysis().fit(z, places).predict(z)
        assert (named == own).all()


def test_volunteers_of_several_classes_have_a_score_for_each() -> None:
    """Of two they keep the one line that they had."""
    rng = np.random.default_rng(6)
    places = np.arange(60) % 3
    z = rng.normal(size=(60, 2)) + 4 * np.eye(3)[places][:, :2]
    coef, intercept = ridge_logistic(z, places, 3)
    assert np.mean(predict_indices(z @ coef.T + intercept) == places) > 0.9
    line, constant = ridge_logistic(z, places % 2)
    assert line.shape == (2,)
    assert np.ndim(constant) == 0
