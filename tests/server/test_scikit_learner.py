"""Any linear classifier of scikit-learn as a learner; the others refused."""

import sys
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from curvote.base.errors import UserError
from curvote.learning import learners
from curvote.learning.learners.scikit import LINEAR_CLASSES, PROBLEMS_PER_WORKER
from tests.problems import RIDGE, assert_same, noisy


@pytest.mark.parametrize("path", [path for path in LINEAR_CLASSES if path[-2:] != "CV"])
def test_the_linear_classifiers_work(path: str) -> None:
    """Every usual one fits, twice the same, and names its parameters."""
    x, y = noisy(50, 3, 40, 3)
    fits = learners.fit(f"sklearn:{path}", x, y)
    assert_same(learners.fit(f"sklearn:sklearn.{path}", x, y), fits)
    right = np.sign((x @ fits.coef[:, :, None])[:, :, 0] + fits.intercept[:, None])
    assert (right == y).mean() > 0.6
    assert "workers" in learners.parameters(f"sklearn:{path}")


def test_the_class_itself_is_fitted() -> None:
    """The coefficients are those of the class, with the parameters given."""
    x, y = noisy(51, 5, 40, 3)
    fits = learners.fit(RIDGE, x, y, alpha=3.0)
    for b in range(5):
        model = RidgeClassifier(alpha=3.0).fit(x[b], y[b])
        np.testing.assert_array_equal(fits.coef[b], np.ravel(model.coef_))
        assert fits.intercept[b] == model.intercept_[0]


def test_worker_processes_change_nothing() -> None:
    """Problems may be shared out; the results are the same bits, in order."""
    x, y = noisy(52, 2 * PROBLEMS_PER_WORKER, 10, 2)
    alone, shared = (learners.fit(RIDGE, x, y, workers=w) for w in (1, 2))
    np.testing.assert_array_equal(alone.coef, shared.coef)
    np.testing.assert_array_equal(alone.flagged, shared.flagged)


def test_a_fit_that_warns_is_kept_and_flagged() -> None:
    """No convergence after one iteration: flagged, not printed, still the fit."""
    x, y = noisy(53, 2, 40, 3)
    name = "sklearn:linear_model.LogisticRegression"
    fits = learners.fit(name, x, y, max_iter=1)
    assert fits.flagged.all()
    with pytest.warns(match="failed to converge"):
        model = LogisticRegression(max_iter=1, random_state=0).fit(x[0], y[0])
    np.testing.assert_array_equal(fits.coef[0], model.coef_[0])


def test_a_fit_that_fails_gives_the_majority() -> None:
    """Too few reports for five folds: flagged, coef 0, the commoner label."""
    name = "sklearn:linear_model.RidgeClassifierCV"
    fits = learners.fit(name, np.eye(3)[None], [[1, 1, -1]], cv=5)
    assert fits.flagged[0]
    assert not fits.coef.any()
    assert fits.intercept[0] == 1


@pytest.mark.parametrize(
    ("path", "params", "message"),
    [
        ("linear_model.RidgeClasifier", {}, "Did you mean 'linear_model.RidgeCl"),
        ("linear_model.Ridge", {}, "is not a classifier"),
        ("linear_model.np", {}, "scikit-learn has no"),
        ("linear_model", {}, "scikit-learn has no"),
        ("tree.DecisionTreeClassifier", {}, "is not linear"),
        ("svm.SVC", {}, "is not linear"),
        ("svm.LinearSVC", {"c": 1}, "takes no parameter 'c'.*Did you mean|Known"),
        ("svm.LinearSVC", {"C": -1}, "cannot work: The 'C' parameter"),
        ("ensemble.VotingClassifier", {}, "cannot work: .*missing"),
        ("svm.LinearSVC", {"workers": 0}, "workers is 0"),
    ],
)
def test_what_cannot_work_is_refused(
    path: str, params: dict[str, Any], message: str
) -> None:
    """Not found, not a classifier, not linear, wrong parameters: each with why."""
    with pytest.raises(UserError, match=message):
        learners.check(f"sklearn:{path}", params)
    with pytest.raises(UserError, match=message):
        learners.fit(f"sklearn:{path}", *noisy(54, 1, 20, 2), **params)


@pytest.mark.parametrize("path", ["os.path", "..this.x", ".x", "this.that", "", "_x.y"])
def test_nothing_outside_scikit_learn_is_imported(path: str) -> None:
    """A path is looked up inside the package, never elsewhere."""
    before = set(sys.modules)
    with pytest.raises(UserError):
        learners.check(f"sklearn:{path}", {})
    assert not {m for m in set(sys.modules) - before if not m.startswith("sklearn")}


def test_svc_is_linear_with_a_linear_kernel() -> None:
    """Whether a class is linear may hang on its parameters."""
    learners.check("sklearn:svm.SVC", {"kernel": "linear"})
