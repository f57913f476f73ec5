"""The regressor: as scikit-learn wants it, and only from what was released."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from curvote import PrivateLabelRegressor, UserError
from curvote.labels import noise_targets
from curvote.systems.labels.regression import regressor

BOUNDS = (0.0, 100.0)
Data = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def data() -> Data:
    """Return 6,000 records of two numbers, and labels."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 2))
    return X, np.clip(40 + X @ [15, 8] + rng.normal(0, 8, 6000), *BOUNDS)


def error(model: Any, data: Data) -> float:
    """Return the root mean squared error of a fit on the first 5,000, on the rest."""
    X, y = data
    told = clone(model).fit(X[:5000], y[:5000]).predict(X[5000:])
    return float(np.sqrt(np.mean((told - y[5000:]) ** 2)))


@pytest.mark.parametrize("randomizer", ["auto", "piecewise", "hybrid", "rr_on_bins"])
def test_it_learns_as_far_as_the_budget_goes(randomizer: str, data: Data) -> None:
    """At epsilon 8 nearly as without noise, at 1 better than the mean."""
    made = PrivateLabelRegressor(
        bounds=BOUNDS, randomizer=randomizer, random_state=1, epsilon=8
    )
    assert error(made, data) < 8.5
    assert error(made.set_params(epsilon=1), data) < 11 < data[1].std()


@pytest.mark.parametrize(
    "estimator",
    [
        "ridge",
        "knn",
        "spectral",
        make_pipeline(StandardScaler(), Ridge()),
        KNeighborsRegressor(200),
        RandomForestRegressor(20, min_samples_leaf=100, random_state=0),
    ],
)
def test_any_regressor_learns(estimator: Any, data: Data) -> None:
    """By name or as it is."""
    made = PrivateLabelRegressor(estimator, 2.0, BOUNDS, random_state=2)
    assert error(made, data) < 9.6


def test_a_forest_chooses_its_leaves(data: Data) -> None:
    """By the noised labels."""
    some = data[0][:400], data[1][:400]
    made = PrivateLabelRegressor("forest", 9.0, BOUNDS, random_state=2).fit(*some)
    assert made.estimator_.best_params_["min_samples_leaf"] in range(2, 61)


def test_labels_matter_through_what_was_released_only(data: Data) -> None:
    """Altered labels, the same released numbers: the same model."""
    X, y = data
    targets = noise_targets(y, BOUNDS, 1.0, "piecewise", 5)
    made = PrivateLabelRegressor(bounds=BOUNDS, random_state=0)
    first = clone(made).fit(X, targets).predict(X)
    y[:] = y[::-1].copy()
    assert np.array_equal(first, clone(made).fit(X, targets).predict(X))
    y[:] = y[::-1].copy()


def test_each_label_is_released_once(data: Data, monkeypatch) -> None:
    """Those in the histogram's share are never among those learnt from."""
    X, y = data
    marked = y + np.arange(len(y)) * 1e-9  # every label is another number
    seen: list[np.ndarray] = []

    def watched(honest):
        def call(first, *rest, **more):
            seen.append(np.asarray(first))
            return honest(first, *rest, **more)

        return call

    for name in ("report_labels", "noise_targets"):
        mechanism = watched(getattr(regressor, name))
        monkeypatch.setattr(regressor, name, mechanism)
    made = PrivateLabelRegressor(bounds=BOUNDS, share=0.25, random_state=3)
    made.fit(X, marked)
    first, second = seen
    asked = first * 50 + 50
    assert (len(first), len(second)) == (1500, 4500)
    everybody = np.sort(np.concatenate([asked, second]))
    assert np.allclose(everybody, np.sort(np.clip(marked, *BOUNDS)), atol=1e-9)


def test_a_stated_prior_asks_nobody(data: Data) -> None:
    """All labels are learnt from, and the prior is kept."""
    X, y = data
    made = PrivateLabelRegressor(bounds=BOUNDS, prior=np.ones(20), random_state=0)
    made.fit(X, y)
    assert made.prior_ == pytest.approx(np.full(20, 1 / 20))
    assert made.randomizer_ == "rr_on_bins"


def test_what_was_spent(data: Data) -> None:
    """Each fit on labels draws anew; one on noised labels spends nothing."""
    X, y = data
    made = PrivateLabelRegressor(epsilon=3.0, bounds=BOUNDS, randomizer="piecewise")
    made.fit(X, y)
    assert (str(made.spent_), made.private_) == ("epsilon 3", True)
    made.fit(X, noise_targets(y, BOUNDS, 3.0, "piecewise"))
    assert str(made.spent_) == "epsilon 3"
    made.set_params(random_state=0).fit(X, y)
    assert (str(made.spent_), made.private_) == ("epsilon 6", False)


def test_columns_are_found_by_name(data: Data) -> None:
    """In any order, as the classifier does; one missing is refused."""
    X, y = data
    frame = pd.DataFrame(X, columns=["age", "steps"])
    made = PrivateLabelRegressor(bounds=BOUNDS, random_state=0).fit(frame, y)
    same = made.predict(frame[["steps", "age"]])
    assert np.array_equal(same, made.predict(frame))
    with pytest.raises(UserError, match="X lacks column age"):
        made.predict(frame[["steps"]])


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"epsilon": 0}, "epsilon is 0"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
        ({"bounds": (5, 5)}, "bounds is"),
        ({"share": 1.0}, "share is 1.0"),
        ({"randomizer": "laplace"}, "randomizer is 'laplace'"),
        ({"estimator": "lasso"}, "estimator is 'lasso'"),
        ({"estimator": Ridge}, "a scikit-learn regressor"),
        ({"random_state": -1}, "random_state is -1"),
        ({"prior": [0, 0]}, "one above 0"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], said: str) -> None:
    """By name; nothing is spent."""
    made = PrivateLabelRegressor(**params)
    with pytest.raises(UserError, match=said):
        made.fit(np.zeros((4, 1)), [0.0, 0.1, 0.2, 0.3])
    assert not hasattr(made, "spent_") or "estimator" in params


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bounds": (0, 1)}, "bounds of the noised labels"),
        ({"epsilon": 2.0}, "epsilon of the noised labels is 2.0, of the model 1.0"),
        ({"randomizer": "hybrid"}, "randomizer of the noised labels is 'hybrid'"),
        ({"y": [0.0] * 5}, "there are 5 noised labels; X has 4 rows"),
    ],
)
def test_other_targets_are_refused(given: dict[str, Any], said: str) -> None:
    """Both are named."""
    usual = {"y": [0.0] * 4, "bounds": (-1, 1), "epsilon": 1.0}
    targets = noise_targets(**(usual | {"randomizer": "piecewise"} | given))
    with pytest.raises(UserError, match=said):
        PrivateLabelRegressor(randomizer="piecewise").fit(np.zeros((4, 1)), targets)


TABLE = np.arange(24.0).reshape(12, 2)


@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        (TABLE, [0.0] * 11 + [np.nan], "y holds 1 values that are NaN"),
        (TABLE, [0.0] * 11, "X has 12 records, and y 11 labels"),
        (TABLE, np.zeros((12, 2)), "y has shape"),
        (TABLE, ["a"] * 12, "y holds text"),
        (TABLE, None, "the target y is None"),
        (TABLE * np.nan, [0.0] * 12, "X holds 24 values that are NaN"),
        (TABLE * 1e200, [0.0] * 12, r"X holds a number as large as 2.3e\+201"),
        (TABLE[:, 0], [0.0] * 12, "Expected 2D array"),
        (TABLE.astype(str) + "a", [0.0] * 12, "could not convert"),
        (TABLE[:1], [0.0], r"X has one record \(n_samples = 1\)"),
        (TABLE[:2], [0.0] * 2, "1 of them say what the bins are"),
        (TABLE[:7], [0.0] * 7, "n_neighbors is 7, but n_samples = 6 records"),
    ],
)
def test_what_cannot_be_learnt_spends_nothing(X: Any, y: Any, said: str) -> None:
    """A UserError in plain words, before any label is noised."""
    made = PrivateLabelRegressor(KNeighborsRegressor(7))
    with pytest.raises(UserError, match=said):
        made.fit(X, y)
    assert not hasattr(made, "spent_")
