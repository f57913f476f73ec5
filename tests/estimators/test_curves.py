"""Curves of scikit-fda: one grid at fit and predict, else a refusal with its cure."""

import re
from typing import Any

import numpy as np
import pytest
from skfda import FDataGrid, FDataIrregular
from skfda.representation.basis import BSplineBasis
from sklearn.base import clone

from curvote import (
    CurveClassifier,
    DirectClassifier,
    MRMAClassifier,
    PrivateLabelClassifier,
    PrivateLabelRegressor,
    PrivateSearchCV,
    Spectral,
    TransferKernelClassifier,
    UserError,
)
from curvote.curves.basis import check_projection
from curvote.curves.columns import grid_names
from curvote.curves.encoding import Linear
from curvote.wire.task import Task

KINDS = pytest.mark.parametrize("kind", [DirectClassifier, MRMAClassifier])
GRID = np.linspace(0, 9, 20)
Data = tuple[Any, np.ndarray]


@pytest.fixture(scope="module")
def data() -> Data:
    """Return 60 curves on 20 points of [0, 9], and labels."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    return FDataGrid(rng.normal(size=(60, 20)) / 9 + y[:, None], GRID), y


def made(kind: Any, **more: Any) -> Any:
    """Return a classifier of curves."""
    return kind(basis="bspline", n_basis=4, random_state=0, **more)


@KINDS
@pytest.mark.parametrize(
    ("grid", "said"),
    [
        (np.linspace(0, 1, 20), "judges no curve on another domain"),
        (np.linspace(0, 9.5, 20), "judges no curve on another domain"),
        (np.linspace(0, 9, 40), "X.to_grid(model.grid_)"),
    ],
    ids=["domain", "longer", "finer"],
)
def test_another_grid_is_refused_at_predict(
    kind: Any, grid: np.ndarray, said: str, data: Data
) -> None:
    """Both grids are named; so is the cure, if there is one."""
    model = made(kind).fit(*data)
    with pytest.raises(UserError, match=re.escape(said)) as refused:
        model.predict(FDataGrid(np.zeros((3, len(grid))), grid))
    assert "20 grid points from 0 to 9" in str(refused.value)
    assert model.predict(data[0]).shape == (60,)


@KINDS
def test_the_cure_of_another_grid_cures(kind: Any, data: Data) -> None:
    """``to_grid(model.grid_)`` is judged, and rounding of the grid is no other grid."""
    curves, y = data
    model = made(kind).fit(curves, y)
    finer = curves.to_grid(np.linspace(0, 9, 39))
    assert np.array_equal(
        model.predict(finer.to_grid(model.grid_)), model.predict(curves)
    )
    near = FDataGrid(curves.data_matrix, GRID * (1 + 1e-12))
    assert np.array_equal(model.predict(near), model.predict(curves))


@KINDS
@pytest.mark.filterwarnings("ignore:values beyond what is stated")
def test_an_array_is_on_the_grid_that_was_learned(kind: Any, data: Data) -> None:
    """It says nothing of its grid; an array that was learned is on [0, 1]."""
    curves, y = data
    values = curves.data_matrix[..., 0]
    model = made(kind).fit(curves, y)
    assert np.array_equal(model.predict(values), model.predict(curves))
    stated = made(kind, grid=GRID).fit(values, y)
    assert np.array_equal(stated.grid_, GRID)
    assert np.array_equal(stated.coef_, model.coef_)
    plain = made(kind).fit(values, y)
    assert np.array_equal(plain.grid_, np.linspace(0, 1, 20))
    with pytest.raises(UserError, match="another domain"):
        plain.predict(curves)
    assert kind(random_state=0).fit(values, y).grid_ is None


@KINDS
def test_a_stated_grid_that_is_not_the_curves_is_refused(kind: Any, data: Data) -> None:
    """An FDataGrid brings its own; the same one may be stated."""
    with pytest.raises(UserError, match="Leave grid out"):
        made(kind, grid=np.linspace(0, 1, 20)).fit(*data)
    assert np.array_equal(made(kind, grid=GRID).fit(*data).grid_, GRID)


def basis(curves: Any) -> Any:
    """Return curves as coefficients of six splines."""
    return curves.to_basis(BSplineBasis(domain_range=(0, 9), n_basis=6))


irregular = FDataIrregular.from_fdatagrid


@KINDS
def test_another_form_is_refused_with_a_cure_that_cures(kind: Any, data: Data) -> None:
    """What the message says to write, written, is taken at fit and at predict."""
    curves, y = data
    given = basis(curves)
    with pytest.raises(UserError, match="X is ") as refused:
        made(kind).fit(given, y)
    cure = re.search(r"X\.to_.*\)(?=\.$)", str(refused.value))
    assert cure
    cured = eval(cure[0], {"X": given, "np": np, "BSplineBasis": BSplineBasis})
    model = made(kind).fit(cured, y)
    assert model.predict(cured).shape == (60,)
    with pytest.raises(UserError, match="X is "):
        model.predict(given)


@KINDS
def test_curves_of_every_form_are_learned_and_judged(kind: Any, data: Data) -> None:
    """Times of their own, missing points, two coordinates: at fit and predict alike."""
    curves, y = data
    rng = np.random.default_rng(1)
    there = rng.random(curves.data_matrix.shape) < 0.7
    holes = curves.copy(data_matrix=np.where(there, curves.data_matrix, np.nan))
    own_times = irregular(holes)
    uneven = curves.to_grid(np.sqrt(np.linspace(0, 81, 12)))
    model = made(kind).fit(uneven, y)
    assert np.array_equal(model.grid_, np.linspace(0, 9, 12))
    assert np.array_equal(model.predict(uneven), model.predict(irregular(uneven)))
    with pytest.raises(UserError, match="which is somebody's") as refused:
        made(kind).fit(own_times, y)
    assert "grid=np.linspace(0, 9, 101)" in str(refused.value)
    stated = own_times.copy(domain_range=(0, 10))
    assert np.array_equal(made(kind).fit(stated, y).grid_, np.linspace(0, 10, 101))
    model = made(kind, grid=GRID).fit(own_times, y)
    for form, grid in ((holes, None), (holes.data_matrix[..., 0], GRID)):
        other = made(kind, grid=grid).fit(form, y)
        assert np.allclose(model.coef_, other.coef_)
        assert np.array_equal(model.predict(own_times), other.predict(form))
    pair = np.concatenate([holes.data_matrix, -curves.data_matrix], axis=2)
    both = FDataGrid(pair, GRID, coordinate_names=("x", "y"))
    model = made(kind, grid=GRID, derivative=1).fit(both, y)
    assert (model.channels_, model.coef_.shape) == (("x", "y"), (1, 2 * 3))
    assert len(model.predict(irregular(both))) == 60
    check_projection(model.task_.encoding.projection)
    assert model.task_.encoding.smooth
    assert not made(kind).fit(curves, y).task_.encoding.smooth
    assert Task.from_json(model.task_.to_json()).digest() == model.task_.digest()
    with pytest.raises(UserError, match="are y, x; the model"):
        model.predict(FDataGrid(pair, GRID, coordinate_names=("y", "x")))
    with pytest.raises(UserError, match="are one; the model"):
        model.predict(curves)


@KINDS
@pytest.mark.parametrize(
    ("points", "values", "message"),
    [
        ([1, 2, 3], [[1, 2], [1, 2], [1, 2]], "curve 1 has one value of channel 1"),
        ([1, 2, 3, 4], [[1, 2]] * 3 + [[1, np.nan]], "has one value of channel 2"),
        ([1, 2, 3, 4], [[1], [1], [np.nan], [np.nan]], "curve 1 has no value"),
        ([1, 2, 3, 10], [[1], [1], [1], [1]], r"X.restrict\(\(0, 9\)\)"),
        ([1, 2, 3, 4], [[1], [1], [1], [np.inf]], "infinite"),
    ],
    ids=["one", "channel", "none", "beyond", "infinite"],
)
def test_measurements_that_make_no_curve_are_refused(
    kind: Any, points: Any, values: Any, message: str
) -> None:
    """The curve, its coordinate and what would be right are named."""
    curves = FDataIrregular([0, 2], points, values, domain_range=(0, 11))
    with pytest.raises(UserError, match=message):
        made(kind, grid=GRID).fit(curves, [0, 1])


@KINDS
def test_surfaces_are_refused(kind: Any, data: Data) -> None:
    """Nothing of a curve is left out without a word."""
    surface = FDataGrid(np.zeros((60, 4, 5)), [[0, 1, 2, 3], [0, 1, 2, 3, 4]])
    with pytest.raises(UserError, match="X holds surfaces, over 2"):
        made(kind).fit(surface, data[1])


def test_a_finished_classifier_knows_its_grid(data: Data) -> None:
    """An FDataGrid on it is judged as its values are; another one is refused."""
    curves, y = data
    fitted = made(MRMAClassifier, judge="coefficients").fit(curves, y)
    line = Linear(fitted.coef_[0], fitted.intercept_[0], "coefficients")
    model = CurveClassifier.of(
        fitted.task_.encoding, grid_names(GRID), line, ("no", "yes")
    )
    expected = np.where(fitted.predict(curves) == 1, "yes", "no")
    assert np.array_equal(model.predict(curves), expected)
    for grid in (np.linspace(0, 1, 20), np.linspace(0, 9, 40)):
        with pytest.raises(UserError, match=r"the model takes 20: 0 \.\. 9"):
            model.predict(FDataGrid(np.zeros((2, len(grid))), grid))
    assert np.array_equal(model.predict(irregular(curves)), expected)
    uneven = curves.to_grid(np.sqrt(np.linspace(0, 81, 12)))
    assert np.array_equal(model.predict(uneven), model.predict(irregular(uneven)))
    there = np.where(np.arange(20) == 3, np.nan, 1)
    assert len(model.predict(curves.data_matrix[..., 0] * there)) == 60


@pytest.mark.parametrize(
    "model",
    [
        PrivateLabelClassifier("knn", 4.0),
        PrivateLabelRegressor(epsilon=4.0),
        PrivateSearchCV(PrivateLabelClassifier("knn", 4.0), holdout=0.5),
        TransferKernelClassifier(),
        Spectral(2, 10, 3),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("form", [FDataGrid.copy, basis, irregular])
@pytest.mark.filterwarnings("ignore:values beyond what is stated")
def test_who_learns_from_columns_says_how_curves_become_some(
    model: Any, form: Any, data: Data
) -> None:
    """What the message says to give, given, is taken at fit and at predict."""
    curves, y = data
    given = form(curves)
    with pytest.raises(UserError, match="columns of numbers") as refused:
        model.fit(given, y)
    cure = re.search(r"Give (.*), and", str(refused.value))
    assert cure
    columns = eval(cure[1], {"X": given, "BSplineBasis": BSplineBasis})
    model.fit(columns, y)
    judge = getattr(model, "predict", None) or model.transform
    assert len(judge(columns)) == 60
    with pytest.raises(UserError, match="columns of numbers"):
        judge(given)


def test_components_of_public_curves_take_no_private_one() -> None:
    """The model's are the same whatever the others' curves and labels; a way out.

    Who gives the private curves themselves, a broken twin, gets others for others.
    """
    drawn = np.random.default_rng(0).standard_normal((230, 20)).cumsum(axis=1)
    public, private, mirrored = (
        FDataGrid(values, grid_points=np.linspace(0, 9, 20))
        for values in (drawn[:30], drawn[30:], drawn[30:, ::-1])
    )
    given = {"basis": "fpca", "n_basis": 3, "random_state": 0, "epsilon": 8.0}
    labels, others = drawn[30:, -1] > 0, drawn[30:, 0] > 0
    kind = DirectClassifier(**given, public_curves=public)
    assert clone(kind).fit(private, labels).score(private, labels) > 0.8
    for stated in (public, None):
        found = set()
        for curves, y in ((private, labels), (mirrored, others)):
            shown = curves if stated is None else stated
            kind.set_params(public_curves=shown).fit(curves, y)
            found.add(kind.task_.encoding.projection.matrix.tobytes())
        assert (len(found) == 1) is (stated is public)
    with pytest.raises(UserError, match="give curves that are public"):
        DirectClassifier(**given).fit(private, labels)
