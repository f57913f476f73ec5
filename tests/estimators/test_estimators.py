"""MRMA as a scikit-learn class: checked by scikit-learn, and right on curves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from curvote.base.errors import UserError
from curvote.curves.columns import grid_names
from curvote.curves.curve_classifier import CurveClassifier
from curvote.curves.encoding import Linear
from curvote.data.simulation.simulated import generate
from curvote.estimators import MRMAClassifier

SPLINES = {"basis": "bspline", "n_basis": 4, "judge": "coefficients"}


@pytest.fixture(scope="module")
def curves() -> tuple[np.ndarray, np.ndarray]:
    """Return 3,000 simulated curves and their labels."""
    return generate(np.random.default_rng(3), 3000)


@pytest.mark.filterwarnings("ignore:values outside of what is stated")
def test_scikit_learn_finds_nothing_to_complain_about() -> None:
    """All of its checks for a binary classifier that need not score well."""
    results = check_estimator(
        MRMAClassifier(random_state=0), on_fail=None, on_skip=None
    )
    failed = [r["check_name"] for r in results if r["status"] == "failed"]
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 40


def test_it_learns_from_noised_reports(curves: tuple[np.ndarray, np.ndarray]) -> None:
    """At epsilon 5 the error is near Bayes' 10 %, never the 50 % of guessing."""
    x, y = curves
    model = MRMAClassifier(epsilon=5, random_state=1, **SPLINES).fit(x[:2500], y[:2500])
    assert model.score(x[2500:], y[2500:]) > 0.85
    assert model.utility_.shape == model.weight_.shape == (25,)
    assert model.weight_.sum() == pytest.approx(1)


def test_with_hardly_any_budget_it_guesses(
    curves: tuple[np.ndarray, np.ndarray],
) -> None:
    """The test above could fail: at epsilon 0.01 there is nothing to learn from."""
    x, y = curves
    scores = [
        MRMAClassifier(epsilon=0.01, random_state=seed, **SPLINES)
        .fit(x[:2500], y[:2500])
        .score(x[2500:], y[2500:])
        for seed in range(8)
    ]
    assert np.mean(scores) < 0.7


def test_an_fdatagrid_is_the_array_on_its_grid(
    curves: tuple[np.ndarray, np.ndarray],
) -> None:
    """The same fit and predictions, from either form."""
    from skfda import FDataGrid

    x, y = curves[0][:600], curves[1][:600]
    grid = np.linspace(0, 1, x.shape[1])
    model = MRMAClassifier(epsilon=4, random_state=2, **SPLINES)
    plain = clone(model).fit(x, y)
    functional = clone(model).fit(FDataGrid(x, grid), y)
    assert np.array_equal(plain.coef_, functional.coef_)
    assert np.array_equal(plain.predict(x), functional.predict(FDataGrid(x, grid)))


def test_a_seed_repeats_and_the_system_does_not(
    curves: tuple[np.ndarray, np.ndarray],
) -> None:
    """``random_state=None`` takes its noise from the operating system."""
    x, y = curves[0][:600], curves[1][:600]
    seeded = [MRMAClassifier(random_state=4, **SPLINES).fit(x, y).coef_ for _ in "ab"]
    system = [MRMAClassifier(**SPLINES).fit(x, y).coef_ for _ in "ab"]
    assert np.array_equal(*seeded)
    assert not np.array_equal(*system)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"basis": "fourier", "n_basis": 4}, "odd"),
        ({"basis": "splines"}, "bspline"),
        ({"learner": "logit"}, "logistic"),
        ({"cutoff": 0.3}, "cutoff"),
        ({"train_share": 1}, "train_share"),
        ({"label_share": 2}, "label_share"),
        ({"scale": 0.0, "basis": "bspline"}, "scale"),
        ({"rescale": "standard"}, "cannot hide"),
        ({"rescale": "tan"}, "tanh"),
    ],
)
@pytest.mark.filterwarnings("ignore:values outside of what is stated")
def test_a_parameter_out_of_range_is_a_clear_error(
    curves: tuple[np.ndarray, np.ndarray], parameters: dict[str, object], said: str
) -> None:
    """A UserError, which is a ValueError, that names the parameter."""
    x, y = curves[0][:200], curves[1][:200]
    with pytest.raises(UserError, match=said):
        MRMAClassifier(**parameters).fit(x, y)


def test_bounds_are_never_taken_from_the_data() -> None:
    """Scaling one client's record does not move anybody else's features."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (100, 3)), rng.integers(0, 2, 100)
    far = x.copy()
    far[0] *= 1e6
    a = MRMAClassifier(random_state=0).fit(x, y).task_
    b = MRMAClassifier(random_state=0).fit(far, y).task_
    assert a.digest() == b.digest()


@pytest.mark.parametrize(
    ("given", "taken"),
    [(SPLINES, "tanh"), ({}, "min_max"), ({"rescale": "max_abs"}, "max_abs")],
)
def test_the_rescaling_follows_the_basis(given: dict[str, object], taken: str) -> None:
    """Unless it is named."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (100, 9)), rng.integers(0, 2, 100)
    fitted = MRMAClassifier(random_state=0, **given).fit(x, y)
    assert fitted.task_.encoding.rescale == taken


def test_a_finished_classifier_reads_columns_by_name() -> None:
    """Shuffled columns give the same labels; a missing one is an error."""
    x, y = generate(np.random.default_rng(5), 400, points=20)
    grid = np.linspace(0, 1, 20)
    fitted = MRMAClassifier(epsilon=5, random_state=0, **SPLINES).fit(x, y)
    line = Linear(fitted.coef_[0], fitted.intercept_[0], "coefficients")
    names = grid_names(grid)
    model = CurveClassifier.of(fitted.task_.encoding, names, line, ("no", "yes"))
    frame = pd.DataFrame(x, columns=names)
    expected = np.where(fitted.predict(x) == 1, "yes", "no")
    assert np.array_equal(model.predict(x), expected)
    assert np.array_equal(model.predict(frame[frame.columns[::-1]]), expected)
    with pytest.raises(UserError, match="1 columns are missing"):
        model.predict(frame.drop(columns="1"))
    frame.iloc[2, 3] = np.nan
    with pytest.raises(UserError, match="curve 2"):
        model.predict(frame)


def test_irregular_curves_are_refused_with_the_way_out() -> None:
    """Curves with grid points of their own have no common projection."""
    from skfda import FDataGrid, FDataIrregular

    grid = FDataGrid(np.random.default_rng(0).normal(size=(30, 8)))
    with pytest.raises(UserError, match=r"X\.to_basis"):
        MRMAClassifier(basis="bspline").fit(
            FDataIrregular.from_fdatagrid(grid), np.arange(30) % 2
        )
    uneven = FDataGrid(grid.data_matrix, [0, 1, 2, 3, 4, 5, 6, 9])
    with pytest.raises(UserError, match="equidistant"):
        MRMAClassifier(basis="bspline").fit(uneven, np.arange(30) % 2)
