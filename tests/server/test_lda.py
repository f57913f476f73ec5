"""Linear discriminant analysis: scikit-learn's, and a flag where it has none."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from curvote.learning import learners
from tests.problems import noisy, scores


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("n", "d"), [(50, 4), (60, 30), (2_000, 3)])
def test_lda_scores_as_scikit_learn_does(n: int, d: int, unit: float) -> None:
    """The decision functions of 30 problems agree to 1e-4, far from the origin too."""
    x, y = noisy(30, 30, n, d)
    x = unit * (x + np.arange(d))
    fits = learners.fit("lda", x, y)
    assert not fits.flagged.any()
    for b in range(len(x)):
        model = LinearDiscriminantAnalysis().fit(x[b], y[b])
        expected = model.decision_function(x[b])
        np.testing.assert_allclose(scores(fits, x)[b], expected, atol=1e-4)


def test_unequal_classes_move_the_boundary() -> None:
    """Between two classes of one shape the scores sum to twice the log odds."""
    rng = np.random.default_rng(31)
    cloud, shift = rng.normal(size=(10, 3)), np.array([1, 0, 0])
    x = np.concatenate([cloud + shift, cloud, cloud, cloud])[None]
    fits = learners.fit("lda", x, [[1] * 10 + [-1] * 30])
    centres = np.stack([cloud.mean(axis=0) + shift, cloud.mean(axis=0)])
    found = (centres @ fits.coef[0] + fits.intercept[0]).sum()
    np.testing.assert_allclose(found, 2 * np.log(10 / 30))


def test_a_coordinate_that_tells_all_is_not_lost() -> None:
    """Without any spread within the classes, the difference between them decides."""
    x = np.array([[0.0, 7], [0, 7], [2, 7], [2, 7]])[None]
    fits = learners.fit("lda", x, [[-1, -1, 1, 1]])
    assert fits.flagged[0]
    assert np.sign(scores(fits, x)[0]).tolist() == [-1, -1, 1, 1]
    assert fits.coef[0, 1] == 0
