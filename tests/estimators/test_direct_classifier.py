"""`DirectClassifier`: its arms, its budget, its public constants, its curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from curvote import DirectClassifier, Task
from curvote.base.errors import UserError
from curvote.client.report import DirectionReporter, OneOfReporter
from curvote.curves.direction import Directions, Whitening
from curvote.data.simulation.simulated import generate
from curvote.mechanisms.privunit import OneOf, PrivUnit
from curvote.messages.arms import ARM_PROTOCOLS, LABEL_SHARES, directions_from_params
from curvote.messages.message import message_of
from curvote.systems.direct.system import choose_arm

ARMS = ("auto", *LABEL_SHARES)
SPLINES = {"basis": "bspline", "n_basis": 4}
Data = tuple[np.ndarray, np.ndarray]
every_arm = pytest.mark.parametrize("arm", ARMS)


@pytest.fixture(scope="module")
def curves() -> Data:
    """Return 3,000 simulated curves and their labels."""
    return generate(np.random.default_rng(3), 3000)


def vectors(n: int, d: int = 2) -> Data:
    """Return n feature vectors in [-1, 1]^d and labels 0/1 that depend on them."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (n, d))
    return x, (x[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)


def same(one: DirectClassifier, other: DirectClassifier) -> bool:
    """Say whether two fits are the same classifier, bit by bit."""
    return np.array_equal(one.coef_, other.coef_) and bool(
        (one.intercept_ == other.intercept_).all()
    )


@every_arm
@pytest.mark.parametrize("random_state", [0, None])
@pytest.mark.filterwarnings("ignore:values outside of what is stated")
def test_scikit_learn_finds_nothing_to_complain_about(
    arm: str, random_state: int | None
) -> None:
    """All of its checks for a binary classifier, a handful of rows included."""
    model = DirectClassifier(arm=arm, random_state=random_state)
    results = check_estimator(model, on_fail=None, on_skip=None)
    failed = [r["check_name"] for r in results if r["status"] == "failed"]
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 40


@every_arm
@pytest.mark.parametrize("random_state", [0, None])
def test_two_rows_are_enough(arm: str, random_state: int | None) -> None:
    """Noise decides then, but the numbers are finite."""
    model = DirectClassifier(arm=arm, random_state=random_state)
    model.fit([[0.1, 0.2, 0.3], [-0.1, 0.4, 0.0]], ["a", "b"])
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert model.coef_.shape == (1, 3)


@pytest.mark.parametrize(
    ("n", "epsilon", "arm"),
    [(200, 1, "mean"), (2000, 1, "joint"), (2000, 4, "two")],
)
def test_auto_is_the_arm_of_the_rule(n: int, epsilon: float, arm: str) -> None:
    """By n, d and epsilon; naming that arm changes nothing."""
    x, y = vectors(n)
    auto = DirectClassifier(epsilon=epsilon, random_state=1).fit(x, y)
    named = clone(auto).set_params(arm=arm).fit(x, y)
    rule = choose_arm(n, 2, epsilon)
    assert (auto.arm_, auto.noise_, auto.reason_) == (arm, rule.noise, rule.reason)
    assert rule.arm == arm
    assert same(auto, named)


@every_arm
def test_every_row_reports_once_with_the_whole_budget(
    arm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over all rounds each row is there once, under a mechanism of ``epsilon``."""
    asked: list[tuple[float, int]] = []
    made: list[Directions] = []
    labels: list[float] = []
    kind = OneOfReporter if arm == "one_of" else DirectionReporter
    release = kind.release

    def counted(self: Any, *given: Any, **how: Any) -> Any:
        labels.extend(given[1])
        made.append(self.vectors)
        asked.append((self.mechanism.worst_log_ratio(), len(given[0])))
        return release(self, *given, **how)

    monkeypatch.setattr(kind, "release", counted)
    x, y = vectors(501)
    model = DirectClassifier(arm=arm, epsilon=1.5, random_state=0).fit(x, y)
    given = directions_from_params(2, model.task_.params)
    assert made == [given, given.whitened][: len(asked)]
    assert len(asked) == (2 if arm == "two" else 1)
    assert sum(n for _, n in asked) == 501
    assert np.sum(np.array(labels) == 1) == y.sum()
    assert all(1.5 * (1 - 1e-6) < spent <= 1.5 for spent, _ in asked)
    if arm == "two":
        assert [n for _, n in asked] == [150, 351]


def test_the_second_round_speaks_in_the_coordinates_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows of the first round report z, the others what the whitening makes of it."""
    made = Whitening(np.array([[0.0, 2.0], [4.0, 0.0]]), np.array([8.0, 8.0]))
    sent: list[np.ndarray] = []
    release = DirectionReporter.release

    def kept(self: DirectionReporter, z: np.ndarray, *rest: Any, **how: Any) -> Any:
        sent.append(z)
        return release(self, z, *rest, **how)

    monkeypatch.setattr(DirectionReporter, "release", kept)
    monkeypatch.setattr(
        "curvote.learning.directions.estimate_whitening", lambda *_: made
    )
    x, y = vectors(100)
    DirectClassifier(arm="two", random_state=0).fit(x, y)
    first, second = sent
    back = second[:, ::-1] / [4, 2] + 8
    rows = np.vstack([first, back])
    assert rows[rows[:, 0].argsort()] == pytest.approx(x[x[:, 0].argsort()])


@every_arm
def test_only_a_study_takes_the_short_cut(
    arm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a seed every report is drawn by exact rejection, and differs."""
    x, y = vectors(60)
    system = [DirectClassifier(arm=arm).fit(x, y) for _ in "ab"]
    assert not same(*system)

    def never(*_: Any) -> None:
        raise AssertionError("the short cut was taken")

    monkeypatch.setattr(PrivUnit, "simulate", never)
    monkeypatch.setattr(OneOf, "simulate_reports", never)
    DirectClassifier(arm=arm).fit(x, y)
    with pytest.raises(AssertionError, match="short cut"):
        DirectClassifier(arm=arm, random_state=0).fit(x, y)


@every_arm
def test_a_seed_repeats_and_another_does_not(arm: str, curves: Data) -> None:
    """The same noise for one random_state, other noise for others."""
    x, y = curves[0][:600], curves[1][:600]
    fits = [
        DirectClassifier(arm=arm, random_state=seed, **SPLINES).fit(x, y)
        for seed in (4, 4, 5)
    ]
    assert same(fits[0], fits[1])
    assert not np.isin(fits[0].coef_, fits[2].coef_).any()


@every_arm
def test_it_learns_curves_at_little_budget(arm: str, curves: Data) -> None:
    """At epsilon 1 the error is near Bayes' 10 %; at 0.01 there is nothing to learn."""
    x, y = curves

    def score(epsilon: float, seed: int) -> float:
        model = DirectClassifier(
            arm=arm, epsilon=epsilon, scale=0.7, random_state=seed, **SPLINES
        )
        return model.fit(x[:2500], y[:2500]).score(x[2500:], y[2500:])

    assert np.mean([score(1, seed) for seed in range(8)]) > 0.82
    assert np.mean([score(0.01, seed) for seed in range(8)]) < 0.7


@pytest.mark.parametrize("arm", ["joint", "two"])
def test_correlated_numbers_off_centre_are_no_harm(arm: str) -> None:
    """With many rows and much budget the error is within 2 points of the best line."""
    rng, slope = np.random.default_rng(6), np.array([4.0, -4.0])
    g = rng.normal(size=(20_000, 2))
    y = rng.random(len(g)) < 1 / (1 + np.exp(-g @ slope))
    x = g @ [[1, 0.5], [0, 0.87]] + [0.3, -0.3]
    model = DirectClassifier(arm=arm, epsilon=8, bounds=(-4, 4), random_state=0)
    assert model.fit(x, y).score(x, y) > np.mean((g @ slope > 0) == y) - 0.02


@pytest.mark.parametrize(
    ("given", "taken"),
    [(SPLINES, "standard"), ({}, "min_max"), ({"rescale": "tanh"}, "tanh")],
)
def test_the_rescaling_follows_the_basis(given: dict[str, Any], taken: str) -> None:
    """Unless it is named; z is what is judged."""
    task = DirectClassifier(random_state=0, **given).fit(*vectors(50, 9)).task_
    assert task.encoding.rescale == taken
    assert task.encoding.feature_map == "rescaled"


def test_an_fdatagrid_is_the_array_on_its_grid(curves: Data) -> None:
    """The same fit and predictions, from either form."""
    from skfda import FDataGrid

    x, y = curves[0][:600], curves[1][:600]
    grid = np.linspace(0, 8, x.shape[1])
    model = DirectClassifier(epsilon=4, grid=grid, random_state=2, **SPLINES)
    plain = clone(model).fit(x, y)
    functional = clone(model).set_params(grid=None).fit(FDataGrid(x, grid), y)
    assert same(plain, functional)
    assert np.array_equal(plain.predict(x), functional.predict(FDataGrid(x, grid)))


def test_coordinates_are_orthonormal_unless_asked(curves: Data) -> None:
    """Of the same space, by the public Gram matrix; feature vectors stay themselves."""
    x, y = curves[0][:200], curves[1][:200]
    made = {
        wanted: DirectClassifier(coordinates=wanted, random_state=0, **SPLINES)
        .fit(x, y)
        .task_.encoding.projection
        for wanted in ("orthonormal", "coefficients")
    }
    assert made["orthonormal"].gram == pytest.approx(np.eye(4))
    assert made["coefficients"].gram != pytest.approx(np.eye(4))
    ranks = [np.linalg.matrix_rank(one.matrix) for one in made.values()]
    both = np.vstack([one.matrix for one in made.values()])
    assert [*ranks, np.linalg.matrix_rank(both)] == [4, 4, 4]
    plain = DirectClassifier(random_state=0).fit(*vectors(50)).task_.encoding
    assert np.array_equal(plain.projection.matrix, np.eye(2))


@every_arm
def test_the_task_is_what_a_client_would_be_sent(arm: str) -> None:
    """It goes through JSON, and its message spends epsilon."""
    task = DirectClassifier(arm=arm, epsilon=2, random_state=0).fit(*vectors(300)).task_
    again = Task.from_json(task.to_json())
    assert again.digest() == task.digest()
    assert again.protocol == ARM_PROTOCOLS.get(arm, "direct")
    assert message_of(again).max_privacy_loss(again) == pytest.approx(2)
    assert message_of(again).name == "report"


@every_arm
@pytest.mark.filterwarnings("ignore:values outside of what is stated")
def test_public_constants_are_never_taken_from_the_data(arm: str) -> None:
    """What lies beyond the bounds counts as lying on them; the task stays the same."""
    x, y = vectors(300)
    model = DirectClassifier(arm=arm, bounds=(-1, [1, 2]), random_state=0)
    far = clone(model).fit(3 * x, y)
    near = clone(model).fit(np.clip(3 * x, -1, [1, 2]), y)
    assert same(far, near)
    assert far.task_.digest() == clone(model).fit(x, y).task_.digest()


@every_arm
def test_units_do_not_matter(arm: str) -> None:
    """Data and public constants in another unit give the same classifier."""
    x, y = vectors(400)
    given = {"arm": arm, "rescale": "standard", "random_state": 3}
    metres = DirectClassifier(centre=0.25, scale=[0.5, 2], **given).fit(x, y)
    feet = DirectClassifier(centre=1, scale=[2, 8], **given).fit(4 * x, y)
    assert same(metres, feet)
    assert np.array_equal(metres.predict(x), feet.predict(4 * x))


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"epsilon": 1e-9}, "epsilon"),
        ({"arm": "three"}, "arm"),
        ({"intercept": 0.0}, "intercept"),
        ({"intercept": "none"}, "intercept"),
        ({"coordinates": "polar"}, "coordinates"),
        ({"rescale": "logit"}, "rescale"),
        ({"basis": "fourier", "n_basis": 4}, "odd"),
        ({"basis": "splines"}, "bspline"),
        ({"scale": 0.0, "basis": "bspline"}, "scale"),
        ({"bounds": (1, -1)}, "lower"),
    ],
)
@pytest.mark.filterwarnings("ignore:values outside of what is stated")
def test_a_parameter_out_of_range_is_a_clear_error(
    curves: Data, parameters: dict[str, object], said: str
) -> None:
    """A UserError, which is a ValueError, that names the parameter."""
    x, y = curves[0][:100], curves[1][:100]
    with pytest.raises(UserError, match=said):
        DirectClassifier(**parameters).fit(x, y)
