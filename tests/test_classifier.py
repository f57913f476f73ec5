import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.curves.encoding import Linear, decision_sign, predict_indices


def test_the_sign_of_the_score_is_the_prediction() -> None:
    """A score above 0 is +1, below 0 is -1, and 0 itself is -1."""
    model = Linear(np.array([1.0, -2.0]), 0.5, "rescaled")
    features = [[0.0, 0.0], [1.5, 1.0], [0.0, 1.0]]
    assert model.decision(features).tolist() == [0.5, 0.0, -1.5]
    assert decision_sign(model.decision(features)).tolist() == [1, -1, -1]
    assert predict_indices(model.decision(features)).tolist() == [1, 0, 0]


def test_a_classifier_cannot_change() -> None:
    """It keeps its own copy of the coefficients, and that copy is read-only."""
    given = np.ones(2)
    model = Linear(given, 0, "rescaled")
    given[:] = 7
    assert model.coef.tolist() == [1, 1]
    with pytest.raises(ValueError, match="read-only"):
        model.coef[0] = 2


@pytest.mark.parametrize(
    ("coef", "intercept", "feature_map", "message"),
    [
        (np.ones((2, 2, 2)), 0.0, "rescaled", "coef has shape"),
        (np.ones((2, 2)), 0.0, "rescaled", "intercept has shape"),
        (np.ones(0), 0.0, "rescaled", "coef has shape"),
        (np.array([np.nan]), 0.0, "rescaled", "NaN"),
        (np.ones(2), np.inf, "rescaled", "is inf"),
        (np.ones(2), np.ones(1), "rescaled", "intercept has shape"),
        (np.ones(2), 0.0, "rescale", "Did you mean 'rescaled'"),
    ],
)
def test_what_is_no_classifier_is_refused(
    coef: np.ndarray, intercept: float, feature_map: str, message: str
) -> None:
    """Wrong shapes, values that are not finite and unknown maps are user errors."""
    with pytest.raises(UserError, match=message):
        Linear(coef, intercept, feature_map)


@pytest.mark.parametrize("features", [np.ones(2), np.ones((3, 3)), [[np.nan, 0.0]]])
def test_features_that_do_not_fit_are_refused(features: np.ndarray) -> None:
    """Features must be [n, d] and finite: a NaN must not silently become -1."""
    with pytest.raises(UserError, match="features"):
        Linear(np.ones(2), 0.0, "rescaled").decision(features)
