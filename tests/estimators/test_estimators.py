"""The classifiers of curves: their arms, budget, public constants, and curves."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from curvote import DirectClassifier, MRMAClassifier, Task
from curvote.base.errors import UserError
from curvote.client.report import DirectionReporter, OneOfReporter
from curvote.curves.columns import grid_names
from curvote.curves.curve_classifier import CurveClassifier
from curvote.curves.direction import Directions, Whitening
from curvote.curves.encoding import Linear
from curvote.data.simulation.simulated import generate
from curvote.mechanisms.privunit import OneOf, PrivUnit
from curvote.messages.arms import ARM_PROTOCOLS, LABEL_SHARES, directions_from_params
from curvote.messages.message import message_of
from curvote.systems.direct.system import METHODS, choose_protocol

MRMA_SPLINES = {"basis": "bspline", "n_basis": 4, "judge": "coefficients"}


@pytest.fixture(scope="module")
def curves() -> tuple[np.ndarray, np.ndarray]:
    """Return 3,000 simulated curves and their labels."""
    return generate(np.random.default_rng(3), 3000)


def test_it_learns_from_noised_reports(curves: tuple[np.ndarray, np.ndarray]) -> None:
    """At epsilon 5 the error is near Bayes' 10 %, never the 50 % of guessing."""
    x, y = curves
    model = MRMAClassifier(epsilon=5, random_state=1, **MRMA_SPLINES).fit(
        x[:2500], y[:2500]
    )
    assert model.score(x[2500:], y[2500:]) > 0.85
    assert model.utility_.shape == model.weight_.shape == (25,)
    assert model.weight_.sum() == pytest.approx(1)


def test_with_hardly_any_budget_it_guesses(
    curves: tuple[np.ndarray, np.ndarray],
) -> None:
    """The test above could fail: at epsilon 0.01 there is nothing to learn from."""
    x, y = curves
    scores = [
        MRMAClassifier(epsilon=0.01, random_state=seed, **MRMA_SPLINES)
        .fit(x[:2500], y[:2500])
        .score(x[2500:], y[2500:])
        for seed in range(8)
    ]
    assert np.mean(scores) < 0.7


def test_a_finished_classifier_reads_columns_by_name() -> None:
    """Shuffled columns give the same labels; a missing one is an error."""
    x, y = generate(np.random.default_rng(5), 400, points=20)
    grid = np.linspace(0, 1, 20)
    fitted = MRMAClassifier(epsilon=5, random_state=0, **MRMA_SPLINES).fit(x, y)
    line = Linear(fitted.coef_[0], fitted.intercept_[0], "coefficients")
    names = grid_names(grid)
    model = CurveClassifier.of(fitted.task_.encoding, names, line, ("no", "yes"))
    frame = pd.DataFrame(x, columns=names)
    expected = np.where(fitted.predict(x) == 1, "yes", "no")
    assert np.array_equal(model.predict(x), expected)
    assert np.array_equal(model.predict(frame[frame.columns[::-1]]), expected)
    with pytest.raises(UserError, match="1 columns are missing"):
        model.predict(frame.drop(columns="1"))
    frame.iloc[2, 1:] = np.nan
    with pytest.raises(UserError, match="curve 2 has one value"):
        model.predict(frame)


ARMS = ("auto", *LABEL_SHARES)
SPLINES = {"basis": "bspline", "n_basis": 4}
Data = tuple[np.ndarray, np.ndarray]
every_arm = pytest.mark.parametrize("arm", ARMS)


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
def test_two_rows_are_enough(arm: str, random_state: int | None) -> None:
    """Noise decides then, but the numbers are finite."""
    model = DirectClassifier(arm=arm, random_state=random_state)
    model.fit([[0.1, 0.2, 0.3], [-0.1, 0.4, 0.0]], ["a", "b"])
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert model.coef_.shape == (1, 3)


@pytest.mark.parametrize(
    ("n", "epsilon", "arm"),
    [(10, 0.5, "majority"), (200, 1, "votes"), (600, 1, "mean"), (2000, 4, "joint")],
)
def test_auto_is_the_arm_of_the_rule(n: int, epsilon: float, arm: str) -> None:
    """By n, d and epsilon, as of protocol `auto`; naming that arm changes nothing."""
    x, y = vectors(n)
    auto = DirectClassifier(epsilon=epsilon, random_state=1).fit(x, y)
    named = clone(auto).set_params(arm=arm).fit(x, y)
    rule = choose_protocol(n, 2, epsilon)
    assert (auto.arm_, auto.noise_, auto.reason_) == (arm, rule.noise, rule.reason)
    assert rule.method == arm
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
    system = [DirectClassifier(arm=arm, epsilon=4).fit(x, y) for _ in "ab"]
    assert not same(*system)

    def never(*_: Any) -> None:
        raise AssertionError("the short cut was taken")

    monkeypatch.setattr(PrivUnit, "simulate", never)
    monkeypatch.setattr(OneOf, "simulate_reports", never)
    DirectClassifier(arm=arm, epsilon=4).fit(x, y)
    with pytest.raises(AssertionError, match="short cut"):
        DirectClassifier(arm=arm, epsilon=4, random_state=0).fit(x, y)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("arm", METHODS)
def test_stated_shares_are_read_with_reports_alone(arm: str, n_classes: int) -> None:
    """Every arm's classifier changes with them, a bit or a label does not."""
    rng = np.random.default_rng(1)
    y = np.arange(400) % n_classes
    x = np.clip(0.2 * rng.standard_normal((400, 3)) + 0.1 * y[:, None], -1, 1)
    models = [
        DirectClassifier(arm=arm, balance=balance, random_state=1).fit(x, y)
        for balance in (None, [1 / n_classes] * n_classes)
    ]
    assert same(*models) == (arm in {"votes", "majority"})
    assert models[0].coef_.shape == ((1, 3) if n_classes == 2 else (n_classes, 3))
    with pytest.raises(UserError, match="balance is"):
        DirectClassifier(arm=arm, balance=[0.9]).fit(x, y)


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
@pytest.mark.filterwarnings("ignore:values beyond what is stated")
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


CLASS_ARMS = ("auto", "mean", "joint", *ARM_PROTOCOLS)
WORDS = np.array(["aa", "ao", "dcl", "iy", "sh"])


def words(n: int, seed: int = 0) -> Data:
    """Return n records of four numbers and the word of their class, one of five."""
    rng = np.random.default_rng(seed)
    places = rng.integers(len(WORDS), size=n)
    means = np.random.default_rng(9).uniform(-0.6, 0.6, (len(WORDS), 4))
    x = means[places] + 0.2 * rng.standard_normal((n, 4))
    return np.clip(x, -1, 1), WORDS[places]


@pytest.mark.parametrize("arm", CLASS_ARMS)
def test_it_names_classes_in_their_own_words(arm: str) -> None:
    """At much budget most of five words are right; a line stands for each."""
    x, y = words(8_000)
    model = DirectClassifier(arm=arm, epsilon=5, random_state=1).fit(x, y)
    assert model.classes_.tolist() == WORDS.tolist()
    assert model.coef_.shape == (5, 4)
    assert model.decision_function(x[:7]).shape == (7, 5)
    assert model.score(*words(2_000, seed=3)) > 0.75
    assert clone(model).fit(x, y).coef_.tolist() == model.coef_.tolist()


@pytest.mark.parametrize("arm", CLASS_ARMS)
def test_a_real_release_of_few_rows_names_some_class(arm: str) -> None:
    """By exact rejection, from the operating system's randomness."""
    x, y = words(40)
    model = DirectClassifier(arm=arm, epsilon=1).fit(x, y)
    assert set(model.predict(x)) <= set(WORDS)
    assert model.private_
    assert model.spent_.epsilon == 1


def test_numbers_may_name_classes() -> None:
    """Three of them, not in steps of one."""
    x, y = words(3_000)
    numbers = np.searchsorted(WORDS, y) % 3 * 7 - 4
    model = DirectClassifier(epsilon=4, random_state=0).fit(x, numbers)
    assert set(model.predict(x)) <= {-4, 3, 10}


def test_no_probability_is_claimed() -> None:
    """`predict_proba` is absent, and says why to whoever asks."""
    model = DirectClassifier(random_state=0).fit(*words(200))
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="calibrated"):
        _ = model.predict_proba


def test_voting_classifiers_still_tell_two_apart() -> None:
    """`MRMAClassifier` refuses more, in scikit-learn's words."""
    with pytest.raises(ValueError, match="Only binary classification"):
        MRMAClassifier().fit(*words(300))
