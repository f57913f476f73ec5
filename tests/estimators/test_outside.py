"""Values outside what is stated of them: their holder is warned, and nobody else."""

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

from curvote import (
    DirectClassifier,
    MRMAClassifier,
    PrivateLabelRegressor,
    TransferKernelClassifier,
)

KINDS: Any = pytest.mark.parametrize(
    "kind", [DirectClassifier, MRMAClassifier, TransferKernelClassifier]
)
PRESSURE = ([300.0, -5.0], [700.0, 5.0])


def table(n: int = 400) -> tuple[Any, Any]:
    """Return two features, one in [300, 700], and labels that the first one tells."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return np.column_stack(
        [380 + 200 * y + rng.normal(0, 20, n), rng.normal(size=n)]
    ), y


@KINDS
def test_who_fits_beyond_the_bounds_hears_which_columns_and_what_to_state(
    kind: Any,
) -> None:
    """Default bounds clip all of a column in [300, 700]: half of the answers are right.

    The warning points to the line that called `fit`; bounds that hold say nothing.
    """
    X, y = table()
    with pytest.warns(UserWarning, match=r"column 0 100.0 %|x0 100.0 %") as heard:
        kind(epsilon=8, random_state=0).fit(X, y)
    (told,) = heard
    assert "bounds=(lower, upper)" in str(told.message)
    assert "without noise" in str(told.message)
    assert told.filename == __file__
    right = kind(epsilon=8, bounds=PRESSURE, random_state=0).fit(X, y)
    assert right.score(X, y) > 0.9


@KINDS
def test_a_few_values_outside_are_no_news(kind: Any) -> None:
    """As in `curvote check`: from one value in a hundred of a column on."""
    X, y = table()
    X[:4, 1] = 6.0
    kind(epsilon=8, bounds=PRESSURE).fit(X, y)
    X[4, 1] = -6.0
    with pytest.warns(UserWarning, match=r"\((column 1|x1) 1.2 %\)"):
        kind(epsilon=8, bounds=PRESSURE).fit(X, y)


@pytest.mark.parametrize("kind", [DirectClassifier, MRMAClassifier])
def test_curves_far_from_the_centre_are_said(kind: Any) -> None:
    """A tanh, or a direction, of coefficients around 500 tells no two curves apart."""
    y = np.arange(200) % 2
    X = 500 + np.outer(10.0 * y, np.linspace(0, 1, 30))
    X += np.random.default_rng(0).normal(size=X.shape)
    given = {"basis": "bspline", "coordinates": "coefficients", "epsilon": 8}
    given = given if kind is DirectClassifier else {"basis": "bspline", "epsilon": 8}
    with pytest.warns(UserWarning, match=r"coefficient 0 100.0 %.*State centre"):
        kind(**given).fit(X, y)
    kind(**given, centre=500, scale=10).fit(X, y)


def test_labels_outside_are_said() -> None:
    """A regressor clips the labels that it noises."""
    X = np.linspace(0, 1, 100)[:, None]
    with pytest.warns(UserWarning, match=r"\(y 10.0 %\)"):
        PrivateLabelRegressor(bounds=(0, 100), random_state=0).fit(X, 111 * X[:, 0])


@KINDS
def test_what_is_saved_knows_nothing_of_the_shares(kind: Any) -> None:
    """A model of clipped data is, to the byte, that of data which were clipped before.

    Nothing that is released, printed or pickled holds a number that only the warning
    has; as an error it comes before a row has spent anything.
    """
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        far = kind(epsilon=1, random_state=0).fit(X, y)
    near = kind(epsilon=1, random_state=0).fit(np.clip(X, -1, 1), y)
    assert pickle.dumps(far) == pickle.dumps(near)
    assert repr(far) == repr(near)
    refused = kind(epsilon=1)
    with pytest.raises(UserWarning, match="outside"):
        refused.fit(X, y)
    assert not hasattr(refused, "spent_")
