"""Bases that volunteers' curves make or choose, and nobody else's.

Principal components, or what their labels tell best by.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.chain.stage import Columns
from curvote.curves import basis, fpca
from curvote.curves.encoding import Encoding
from curvote.messages import evidence
from curvote.messages.evidence import Choice
from curvote.messages.message import messages_of
from curvote.messages.roles import roles_of_table
from curvote.messages.stages import release_task
from curvote.systems.common import projection
from curvote.systems.common.declarations import PROJECT
from tests.memory import Memory, do

Array = NDArray[np.float64]
Places = NDArray[np.int64]
GRID = np.linspace(0, 2, 40)
CHOICE = Choice("auto", 12, "standard", 0.004)
SIZES = {"public": 9, "train": 20, "vote": 0, "test": 10}
PARAMS = {
    "project.basis": "fpca",
    "project.size": 4,
    "project.order": 4,
    "project.coordinates": "coefficients",
    "project.rescale": "standard",
    "project.centre": "volunteers",
    "project.scale": "volunteers",
    "clients": SIZES,
    "source.groups": None,
    "seed": 5,
    "replicates": 2,
}


OTHERS = np.setdiff1d(
    np.arange(60),
    [roles_of_table({"label": np.zeros(60)}, PARAMS, n)["public"] for n in (0, 1)],
)


def draw_curves(n: int, points: int = 40) -> Array:
    """Return rough curves (n, T) on a slope."""
    steps = np.random.default_rng(1).standard_normal((n, points))
    return np.asarray(steps.cumsum(axis=1) + np.linspace(0, 5, points))


def clients(curves: Array) -> Memory:
    """Return the ingested clients of two replicates, the same in both."""
    n = np.arange(len(curves))
    rows: Columns = {"client_id": n, "label": n % 2, "group": n, "curve": curves}
    facts = {"grid": GRID.tolist(), "classes": ["no", "yes"]}
    return Memory.of(facts, clients=[rows, rows])


def projected(made: Memory, **changes: object) -> Memory:
    """Return what stage project makes of them."""
    params = PARAMS | {f"project.{name}": value for name, value in changes.items()}
    also = [name for name in params if name not in PROJECT.params]
    return do(PROJECT, {"ingest": made}, params, ((0,), (1,)), (2,), also)


@pytest.mark.parametrize("channels", [(), ("x", "y")])
def test_components_are_those_of_scikit_fda_and_the_same_each_time(channels) -> None:
    """Orthonormal in L2, most variance first; of several channels joint ones."""
    count = max(1, len(channels))
    curves, grid = draw_curves(60, 600), np.linspace(0, 2, 600 // count)
    found = fpca.principal_projection(curves, 5, grid, channels=channels)
    weights = np.diag(basis.grid_projection(grid).stacked(channels).gram)
    functions = found.matrix / weights
    np.testing.assert_allclose(found.matrix @ functions.T, np.eye(5), atol=1e-12)
    centred = (curves - curves.mean(axis=0)) * np.sqrt(weights)
    values = np.linalg.svd(centred, compute_uv=False)[:5]
    scores = found.apply(curves - curves.mean(axis=0))
    np.testing.assert_allclose(np.linalg.norm(scores, axis=0), values, rtol=1e-9)
    again = fpca.principal_projection(curves, 5, grid, channels=channels)
    assert again.matrix.tobytes() == found.matrix.tobytes()


def plant(rows: Columns) -> None:
    """Make label and curve wild of all who volunteer in neither replicate."""
    rows["curve"][OTHERS] = 1e6 * np.sin(np.outer(OTHERS + 1, GRID))
    rows["label"][OTHERS] = 1


def double(rows: Columns) -> None:
    """Make every curve twice as large."""
    rows["curve"] *= 2


AUTO = {"basis": "auto", "size": 8, "noise": 0.004}


@pytest.mark.parametrize("changes", [{}, AUTO], ids=["fpca", "auto"])
def test_volunteers_alone_move_the_projection(
    changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Canaries of all others move no byte of basis or constants; a volunteer's do.

    A stage that takes everybody for a volunteer is caught.
    """

    def learnt(made: Memory) -> str:
        found = projected(made, **changes)
        rows = [*found.each("basis_rows"), *found.each("constants")]
        return repr([column.tolist() for each in rows for column in each.values()])

    def moves(change: Callable[[Columns], None]) -> bool:
        plain, planted = clients(draw_curves(60)), clients(draw_curves(60))
        change(planted.each("clients")[0])  # which is that of both replicates
        return learnt(plain) != learnt(planted)

    assert len(OTHERS) > 40
    assert not moves(plant)
    assert moves(double)
    real = projection.roles_of_table
    everybody = {"public": np.arange(60)}
    monkeypatch.setattr(
        projection, "roles_of_table", lambda *given: real(*given) | everybody
    )
    assert moves(plant)


def test_volunteers_of_each_replicate_have_their_own_components() -> None:
    """Others volunteer, so another matrix; z is centred on their mean."""
    made = projected(clients(draw_curves(60)))
    first, second = (rows["value"] for rows in made.each("basis_rows"))
    assert first.shape == (4, 40)
    assert not np.allclose(np.abs(first), np.abs(second))
    for number, rows in enumerate(made.each("encoded")):
        roles = projection.roles_of_table(rows, PARAMS, number)
        z = rows["z"][roles["public"]]
        np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
        spread = z.std(axis=0, ddof=1)
        assert (spread**2).mean() == pytest.approx(1)
        assert (np.diff(spread) < 0).all()  # they keep their shares of the variance


def test_a_release_publishes_the_components() -> None:
    """The task of a release has the volunteers' matrix, not what stood in for it."""
    curves = draw_curves(60)
    made = {"ingest": clients(curves), "project": projected(clients(curves))}
    options = {"direct.arm": "mean", "direct.intercept": "auto", "epsilon": 1.0}
    params = PARAMS | options | {"protocol": "direct", "message": "report"}
    task = release_task(made, params)
    matrix = made["project"].each("basis_rows")[0]["value"]
    assert np.array_equal(task.encoding.projection.matrix, matrix)
    data = task.encoding.encode(curves)
    assert np.array_equal(data.z, made["project"].each("encoded")[0]["z"])
    # The worst matrix there is: it picks out single values, and epsilon holds.
    worst = replace(task.encoding, projection=fpca.stand_in(GRID, 4, "fpca"))
    assert messages_of("direct")["report"].max_privacy_loss(
        replace(task, encoding=worst)
    ) == pytest.approx(1.0)


def test_a_client_multiplies_its_curve_by_no_components() -> None:
    """No name tells them, orthonormal or not: it says so."""
    found = fpca.principal_projection(draw_curves(20), 3, GRID)
    read = Encoding.from_json(Encoding(found, "none").to_json()).projection
    for given in (found, read, replace(found, matrix=2 * found.matrix)):
        with pytest.raises(UserError, match="no matrix that it cannot make itself"):
            basis.check_projection(given)


@pytest.mark.parametrize(
    ("curves", "size", "said"),
    [
        (draw_curves(4), 4, "4 public curves have at most 3 principal components"),
        (draw_curves(60), 41, "size is 41, but a curve has only 40 grid points"),
        (np.ones((9, 40)), 2, "vary in fewer than 2 directions .0."),
        (np.outer(np.arange(9.0), GRID), 2, "vary in fewer than 2 directions .1."),
        (draw_curves(9)[:, 1:], 2, r"have shape \(9, 39\); they must be \(n, 40\)"),
        (np.full((9, 40), np.nan), 2, "finite"),
    ],
)
def test_what_has_no_components_is_refused(curves: Array, size: int, said: str) -> None:
    """With what was given, and what would be right."""
    with pytest.raises(UserError, match=said):
        fpca.principal_projection(curves, size, GRID)


def labelled(n: int, shape: Array, depth: float) -> tuple[Array, Places]:
    """Return curves of smooth noise, and of class 1 with ``shape`` added."""
    rng = np.random.default_rng(4)
    places = np.arange(n) % 2
    waves = np.cos(np.outer(np.arange(12), np.pi * GRID / 2))
    noise = rng.standard_normal((n, 12)) / (1 + np.arange(12)) @ waves
    return noise + depth * np.outer(2 * places - 1, shape), places


def test_another_basis_is_chosen_where_it_errs_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By its volunteers; without proof the first stays, of much noise another one."""
    few, places = labelled(50, np.ones(40), 1.0)
    name, made = CHOICE.choose(few, places, GRID)
    first = basis.orthonormal(basis.projection("fourier", 11, GRID)).apply(few)
    errors = CHOICE.left_out_errors(np.pad(first, ((0, 0), (0, 1))), places)
    own = CHOICE.left_out_errors(made.apply(few), places, name.startswith("fpca"))
    assert own.mean() < errors.mean() / 2
    assert made.matrix.shape == (12, 40)
    assert made.name == "auto"
    assert np.array_equal(made.gram, np.eye(12))
    curves, _ = labelled(50, np.ones(40), 0.0)
    monkeypatch.setattr(evidence, "CAUTION", 1e6)
    for noise, kept in ((CHOICE.noise, "fourier 11"), (0.02, "fpca 12")):
        assert replace(CHOICE, noise=noise).choose(curves, places, GRID)[0] == kept


def test_a_rare_class_that_nothing_tells_is_left_to_the_majority() -> None:
    """No number is used where the larger class errs least, and curves say nothing."""
    curves, _ = labelled(60, np.ones(40), 0.0)
    name, made = CHOICE.choose(curves, (np.arange(60) % 12 == 0).astype(int), GRID)
    assert name == "none"
    assert not made.matrix.any()


def test_left_out_errors_are_those_of_simulated_noise() -> None:
    """More noise errs more, more classes, too; normal margins err as drawn noise."""
    curves, places = labelled(40, np.sin(GRID), 1.0)
    choice = Choice("fpca", 3, "standard", 0.02)
    coefficients = np.column_stack([curves[:, 3], curves[:, 20], curves[:, 30]])
    found = choice.left_out_errors(coefficients, places)
    several = Choice("fpca", 3, "standard", 0.02, n_classes=3)
    three = several.left_out_errors(coefficients, np.arange(40) % 3)
    assert found.shape == three.shape == (40,)
    less = Choice("fpca", 3, "standard", 1e-4).left_out_errors(coefficients, places)
    assert less.mean() < found.mean() < 0.5 < three.mean()
    t = np.random.default_rng(1).normal(1.5, 0.7, 4000)
    draws = np.random.default_rng(2).standard_normal((4000,))
    assert evidence._chances(t).mean() == pytest.approx((draws > t).mean(), abs=0.02)


def test_a_record_is_as_long_whatever_is_left_out() -> None:
    """Z of those who volunteer has mean square 1 over all numbers."""
    curves, places = labelled(50, np.ones(40), 3.0)
    coefficients = CHOICE.choose(curves, places, GRID)[1].apply(curves)
    centre, scale = CHOICE.constants(coefficients, False)
    z = (coefficients - centre) / scale
    assert (z**2).sum() / (len(z) - 1) == pytest.approx(12)


def test_constant_curves_choose_nothing() -> None:
    """With the reason of the first candidate."""
    with pytest.raises(UserError, match="same for all 20 volunteers"):
        CHOICE.choose(np.ones((20, 40)), np.arange(20) % 2, GRID)
