"""Scores from codes: right in the mean, honest about their error, and picky."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss

from curvote.base.errors import UserError
from curvote.labels import Codes, Score, encode, private_score
from curvote.systems.labels.method.scoring import (
    decode_unbiased,
    label_noise,
    set_noise,
)

LINEAR = ("accuracy", "brier", "log_loss")
Records = tuple[np.ndarray, np.ndarray]


def records(k: int, n: int, rng: np.random.Generator) -> Records:
    """Return probabilities (n, K) that are right, and labels drawn from them."""
    proba = rng.dirichlet(np.linspace(0.2, 0.6, k), size=n) * 0.99 + 0.01 / k
    labels = (proba.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return proba, labels


def clean(name: str, proba: np.ndarray, y: np.ndarray) -> float:
    """Return the score of the true labels, by scikit-learn or by hand."""
    k, places = proba.shape[1], proba.argmax(axis=1)
    scores = {
        "accuracy": lambda: accuracy_score(y, places),
        "balanced_accuracy": lambda: balanced_accuracy_score(y, places),
        "brier": lambda: ((proba - np.eye(k)[y]) ** 2).sum(axis=1).mean(),
        "log_loss": lambda: log_loss(y, proba, labels=np.arange(k)),
    }
    return float(scores[name]())


@pytest.mark.parametrize("k", [2, 10, 100])
@pytest.mark.parametrize("name", LINEAR)
def test_true_labels_give_the_clean_score(k: int, name: str) -> None:
    """Without noise nothing is estimated: the very number that scikit-learn says."""
    proba, y = records(k, 500, np.random.default_rng(k))
    found = private_score(proba, None, Codes.plain(y, np.arange(k)), name)
    assert found.value == pytest.approx(clean(name, proba, y))


@pytest.mark.parametrize("k", [2, 3, 10])
def test_true_labels_give_the_clean_balanced_accuracy(k: int) -> None:
    """But for 1/n; a class that nobody has is left out, as scikit-learn does."""
    proba, y = records(k, 2000, np.random.default_rng(k))
    for classes in (np.arange(k), np.arange(k + 1)):
        told = np.pad(proba, [(0, 0), (0, len(classes) - k)])
        found = private_score(told, None, Codes.plain(y, classes), "balanced_accuracy")
        true = clean("balanced_accuracy", proba, y)
        assert found.value == pytest.approx(true, abs=2e-3)


@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.5), (10, 1.0), (100, 0.5)])
def test_the_mean_is_right_and_the_interval_covers(k: int, epsilon: float) -> None:
    """Over 100 encodings of other records: 3.5 standard errors; 88 to 100 of 100."""
    rng = np.random.default_rng([k, 1])
    proba, y = records(k, 30_000, rng)
    true = {name: clean(name, proba, y) for name in LINEAR}
    off, covered = [], []
    for seed in range(100):
        proba, y = records(k, 1000, rng)
        codes = encode(y, np.arange(k), epsilon, random_state=seed)
        found = {name: private_score(proba, None, codes, name) for name in LINEAR}
        off.append([found[name].value - clean(name, proba, y) for name in LINEAR])
        covered.append([found[n].low <= true[n] <= found[n].high for n in LINEAR])
    mean, se = np.mean(off, axis=0), np.std(off, axis=0) / 10
    assert (abs(mean) < 3.5 * se).all()
    assert (np.sum(covered, axis=0) >= 88).all()


@pytest.mark.parametrize("k", [2, 10])
def test_balanced_accuracy_is_right_in_the_mean(k: int) -> None:
    """A ratio of estimates, within 1 point; and its interval covers."""
    rng = np.random.default_rng(k)
    off, covered = [], 0
    for seed in range(40):
        proba, y = records(k, 10_000, rng)
        codes = encode(y, np.arange(k), 1.0, random_state=seed)
        found = private_score(proba, None, codes, "balanced_accuracy")
        true = clean("balanced_accuracy", proba, y)
        off.append(found.value - true)
        covered += found.low <= true <= found.high
    assert abs(np.mean(off)) < 0.01
    assert covered >= 34


def test_balanced_accuracy_lets_no_class_outweigh_another() -> None:
    """Always the common class: 1/K, however common it is."""
    y = np.repeat([0, 1, 2, 3], [7000, 1000, 1000, 1000])
    always = np.tile([0.7, 0.1, 0.1, 0.1], (10_000, 1))
    codes = encode(y, epsilon=2.0, random_state=0)
    found = private_score(always, None, codes, "balanced_accuracy")
    assert found.value == pytest.approx(0.25, abs=3 * found.se)
    assert private_score(always, None, codes).value == pytest.approx(0.7, abs=0.05)


def score_often(
    recalls: np.ndarray, shares: np.ndarray, epsilon: float, n: int, scoring: str
) -> np.ndarray:
    """Return (value, low, high) of 400 runs, of a model that knows no shares."""
    k, runs, rng = len(shares), 400, np.random.default_rng(0)
    y = rng.choice(k, size=runs * n, p=shares)
    right = rng.random(len(y)) < recalls[y]
    said = np.where(right, y, (y + rng.integers(1, k, size=len(y))) % k)
    codes = encode(y, np.arange(k), epsilon, random_state=0)
    parts = [slice(start, start + n) for start in range(0, len(y), n)]
    told = [private_score(np.eye(k)[said[p]], None, codes[p], scoring) for p in parts]
    return np.array([(it.value, it.low, it.high) for it in told])


@pytest.mark.parametrize(
    ("k", "epsilon", "n", "accuracy"),
    [(2, 8.0, 30, 0.99), (10, 8.0, 100, 0.99), (3, 5.0, 30, 0.95), (5, 0.5, 30, 0.6)],
)
def test_an_interval_of_few_codes_covers(
    k: int, epsilon: float, n: int, accuracy: float
) -> None:
    """Wald's covers .26 of the first: most runs find every code right, and no width."""
    made = score_often(np.full(k, accuracy), np.full(k, 1 / k), epsilon, n, "accuracy")
    assert np.mean((made[:, 1] <= accuracy) & (accuracy <= made[:, 2])) > 0.92
    assert (made[:, 1] < made[:, 2]).all()


@pytest.mark.parametrize(("k", "epsilon", "n"), [(5, 2.0, 600), (10, 5.0, 300)])
def test_balanced_accuracy_needs_no_shares_of_the_model(
    k: int, epsilon: float, n: int
) -> None:
    """Within 2.5 standard errors, though the model thinks all classes as common."""
    shares, recalls = np.geomspace(1, 0.25, k), np.linspace(0.9, 0.6, k)
    made = score_often(recalls, shares / shares.sum(), epsilon, n, "balanced_accuracy")
    off = made[:, 0] - recalls.mean()
    assert abs(off.mean()) < 2.5 * off.std() / 20
    assert (
        np.mean((made[:, 1] <= recalls.mean()) & (recalls.mean() <= made[:, 2])) > 0.92
    )


@pytest.mark.parametrize("encoder", ["vector", "oue", "rr", "subset", "hadamard"])
@pytest.mark.parametrize("k", [2, 5])
def test_noise_of_a_label_is_that_of_its_estimates(encoder: str, k: int) -> None:
    """At the label's own number, and in the mean at the others."""
    y = np.arange(40_000) % k
    codes = encode(y, epsilon=1.0, encoder=encoder, random_state=0)
    hits, made = y[:, None] == np.arange(k), decode_unbiased(codes)
    told = label_noise(codes, float((made**2).sum(axis=1).mean()))
    # 40,000 draws of a variance.
    assert told == pytest.approx((made[hits].var(), made[~hits].var()), rel=0.05)


@pytest.mark.parametrize("encoder", ["vector", "oue", "rr", "subset", "hadamard"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_noise_of_several_classes_is_that_of_their_sum(encoder: str, size: int) -> None:
    """As when a label counts with any of its private words; of six classes."""
    y = np.arange(40_000) % 6
    codes = encode(y, epsilon=1.0, encoder=encoder, random_state=0)
    made, inside = decode_unbiased(codes), y < size
    told = set_noise(codes, float((made**2).sum(axis=1).mean()), size)
    total = made[:, :size].sum(axis=1)
    seen = total[inside].var(), total[~inside].var()
    assert told == pytest.approx(seen, rel=0.06)


def test_the_interval_of_several_classes_covers_as_that_of_one() -> None:
    """30 records, right in .95: most runs find every code right, and no width."""
    rng, held = np.random.default_rng(0), 0
    proba = np.full((30, 6), 1 / 6)
    for _ in range(400):
        right, words = rng.random(30) < 0.95, rng.integers(3, size=30)
        y = words + 3 * (~right)
        table = np.repeat([[1.0, 0.0]], 30, axis=0).repeat(3, axis=1)
        codes = encode(y, np.arange(6), epsilon=6.0, random_state=rng)
        score = private_score(proba, None, codes, lambda X, p, t=table: t)
        held += score.low <= 0.95 <= score.high
    assert held / 400 > 0.92


@pytest.mark.parametrize("encoder", ["vector", "oue", "rr", "subset", "hadamard"])
def test_rows_of_decoded_codes_sum_to_one_and_lose_no_mean(encoder: str) -> None:
    """A constant score is that constant, whatever the noise: it is the same in it."""
    y = np.arange(6000) % 5
    codes = encode(y, epsilon=1.0, encoder=encoder, random_state=1)
    made = decode_unbiased(codes)
    assert made.sum(axis=1) == pytest.approx(np.ones(6000))
    error = (made - np.eye(5)[y]).mean(axis=0)
    assert (abs(error) < 4 * made.std(axis=0) / np.sqrt(6000)).all()
    assert made.var() <= codes.decode().var() * (1 + 1e-9)


def test_two_classes_of_vector_lose_half_of_the_noise() -> None:
    """Both of a code's bits speak of the label; decoding alone hears one."""
    codes = encode(np.arange(20_000) % 2, epsilon=0.5, encoder="vector", random_state=0)
    assert decode_unbiased(codes).var() < 0.6 * codes.decode().var()


def test_a_function_is_scored_as_accuracy_is() -> None:
    """(X, proba) -> what each class would score; X is what the caller gave."""
    proba, y = records(4, 300, np.random.default_rng(0))
    codes, X = encode(y, np.arange(4), random_state=0), np.arange(300)

    def hits(given: Any, told: np.ndarray) -> np.ndarray:
        assert given is X
        return told == told.max(axis=1, keepdims=True)

    assert (
        private_score(proba, X, codes, hits)[:2] == private_score(proba, X, codes)[:2]
    )


def test_a_model_is_scored_as_its_probabilities_are() -> None:
    """Any classifier with classes; they may stand in another order than by name."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = LogisticRegression().fit(X, y)
    codes = encode(y, ["no", "yes"], random_state=0)
    found = private_score(model, X, codes, "brier")
    assert found == private_score(model.predict_proba(X), X, codes, "brier")
    assert isinstance(found, Score)
    assert found.low < found.value < found.high
    other = encode(y, ["yes", "no"], random_state=0)
    with pytest.raises(UserError, match="codes are of the classes yes, no; the model"):
        private_score(model, X, other)


def test_a_biased_code_gives_no_score() -> None:
    """But those of clients whose prior says nothing do: that is `k_rr`."""
    y = np.arange(300) % 3
    prior = np.tile([0.8, 0.1, 0.1], (300, 1))
    prior[:200] = 1 / 3
    codes = encode(y, None, 1.0, "rr_with_prior", 0, prior=prior)
    proba = np.full((300, 3), 1 / 3)
    with pytest.raises(UserError, match="rr_with_prior, which is biased"):
        private_score(proba, None, codes, "brier")
    first = private_score(proba[:200], None, codes[:200], "brier")
    assert first.value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("proba", "given", "said"),
    [
        (np.full((9, 3), 1 / 3), {}, "X has 9 records, and there are 10 codes"),
        (np.full((10, 2), 1 / 2), {}, r"shape \(10, 2\); codes of 3"),
        (np.full((10, 3), np.nan), {}, "model holds 30 values that are NaN"),
        (np.full((10, 3), 1 / 3), {"scoring": "acuracy"}, "Did you mean 'accuracy'"),
        (np.full((10, 3), 1 / 3), {"scoring": lambda _, p: p[:, 0]}, r"shape \(10,\)"),
    ],
)
def test_what_is_refused_is_said(
    proba: np.ndarray, given: dict[str, Any], said: str
) -> None:
    """A UserError that names both sides."""
    codes = encode(np.arange(10) % 3, random_state=0)
    with pytest.raises(UserError, match=said):
        private_score(proba, None, codes, **given)


def test_one_code_has_no_error() -> None:
    """Neither has none."""
    codes = encode([0, 1], random_state=0)
    with pytest.raises(UserError, match="1 codes have no standard error"):
        private_score(np.full((1, 2), 0.5), None, codes[:1])


def test_a_regression_is_scored_by_the_same_name() -> None:
    """Noised targets in place of codes: the mean squared error."""
    from curvote.labels.regression import noise_targets

    y = np.linspace(-1, 1, 4000)
    targets = noise_targets(y, (-1, 1), 2.0, "hybrid", random_state=0)
    found = private_score(np.zeros(4000), None, targets)
    assert found.low < np.mean(y**2) < found.high
