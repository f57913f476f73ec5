"""Noised labels as they are read: decoded, their variance, squared errors."""

from __future__ import annotations

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.labels.regression import noise_targets, squared_error
from curvote.systems.labels.regression.targets import (
    CELLS,
    NoisedTargets,
    estimate_histogram,
    randomizer_name,
    report_labels,
    to_unit_interval,
)

BOUNDS = (20.0, 120.0)


@pytest.fixture(scope="module")
def labels() -> np.ndarray:
    """Return 20,000 labels, few beyond the bounds."""
    made = np.random.default_rng(0).normal(55, 17, 20_000)
    return np.clip(made, *BOUNDS)


@pytest.fixture(scope="module")
def shares(labels: np.ndarray) -> np.ndarray:
    """Return the true shares of 100 cells of the bounds."""
    return np.histogram(labels, 100, BOUNDS)[0]


def drawn(labels, randomizer: str, epsilon: float, seed: int, shares) -> NoisedTargets:
    """Return what clients with these labels release."""
    prior = shares if randomizer == "rr_on_bins" else None
    return noise_targets(labels, BOUNDS, epsilon, randomizer, seed, prior=prior)


@pytest.mark.parametrize("randomizer", ["piecewise", "hybrid"])
@pytest.mark.parametrize("epsilon", [0.8, 3])
def test_decoded_labels_are_unbiased(randomizer: str, epsilon: float) -> None:
    """At each label, with exactly the variance that is stated."""
    for y in (20.0, 41.0, 120.0):
        targets = noise_targets(np.full(40_000, y), BOUNDS, epsilon, randomizer, 1)
        (variance,) = targets.variance([y])
        decoded = targets.decode()
        assert abs(decoded.mean() - y) < 4 * np.sqrt(variance / 40_000)
        assert decoded.var() == pytest.approx(variance, rel=0.05)


def test_bins_are_read_with_the_mean_and_slope_of_the_labels(labels, shares) -> None:
    """A regression on them is as steep as on the labels; on the answers it is not."""
    targets = drawn(labels, "rr_on_bins", 1.0, 2, shares)
    decoded, off = targets.decode(), labels - labels.mean()
    se = decoded.std() / np.sqrt(len(labels))
    assert abs(decoded.mean() - labels.mean()) < 4 * se
    assert off @ decoded / (off @ off) == pytest.approx(1, abs=4 * se / labels.std())
    assert off @ targets.values / (off @ to_unit_interval(labels, BOUNDS)) < 0.5
    assert decoded.var() == pytest.approx(
        targets.variance(labels).mean() + (decoded.var() - _noise(targets, labels)),
        rel=0.05,
    )


def _noise(targets: NoisedTargets, labels: np.ndarray) -> float:
    """Return the mean variance that the draws have about their own means."""
    again = [
        noise_targets(
            labels, BOUNDS, targets.epsilon, "rr_on_bins", seed, prior=targets.prior
        ).decode()
        for seed in range(30, 40)
    ]
    return float(np.var(again, axis=0, ddof=1).mean())


@pytest.mark.parametrize(
    ("randomizer", "epsilon"),
    [("piecewise", 0.4), ("piecewise", 2.0), ("hybrid", 1.0), ("rr_on_bins", 1.0)],
)
def test_the_squared_error_is_unbiased(
    randomizer: str, epsilon: float, labels, shares
) -> None:
    """Over 200 draws of records and noise; intervals hold it as often as they say."""
    rng = np.random.default_rng(5)
    told = 55 + 0.4 * (labels - 55) + rng.normal(0, 5, len(labels))
    found = []
    for seed in range(200):
        some = rng.choice(len(labels), 2000)
        targets = drawn(labels[some], randomizer, epsilon, seed, shares)
        found.append(squared_error(told[some], None, targets))
    true = float(np.mean((told - labels) ** 2))
    values = np.array([score.value for score in found])
    assert abs(values.mean() - true) < 3 * values.std() / np.sqrt(200)
    assert sum(score.low <= true <= score.high for score in found) in range(180, 199)


def test_the_noise_is_what_a_plain_mean_would_be_off_by(labels) -> None:
    """The twin that leaves the noise in is far beyond its interval."""
    targets = noise_targets(labels, BOUNDS, 1.0, "piecewise", 7)
    told = np.full(len(labels), 55.0)
    score = squared_error(told, None, targets)
    assert score.low <= np.mean((told - labels) ** 2) <= score.high
    assert np.mean((told - targets.decode()) ** 2) > score.high


def test_two_outputs_say_nothing_of_squares(labels) -> None:
    """The hybrid below epsilon .61 is refused, and says what to take."""
    targets = noise_targets(labels[:50], BOUNDS, 0.5, "hybrid", 0)
    assert len(np.unique(targets.values)) == 2
    with pytest.raises(UserError, match="noised by piecewise"):
        squared_error(np.zeros(50), None, targets)


def test_a_noised_histogram_finds_the_law(labels) -> None:
    """Nearer to the truth than the uniform law, the nearer the larger the budget."""
    true = np.histogram(labels, CELLS, BOUNDS)[0] / len(labels)
    off = []
    for epsilon in (0.5, 1, 3, 12):
        sent = report_labels(
            to_unit_interval(labels, BOUNDS), epsilon, SeededEntropy(4)
        )
        found = estimate_histogram(sent, epsilon)
        assert found.sum() == pytest.approx(1)
        assert (found >= 0).all()
        off.append(float(np.abs(np.cumsum(found - true)).max()))
    assert off[0] < 0.2
    assert off[1] < 0.1
    assert off[3] < 0.02


def test_rows_and_sizes(labels, shares) -> None:
    """Some rows are targets again, with all that is public."""
    targets = drawn(labels, "rr_on_bins", 1.0, 3, shares)
    some = targets[:10]
    assert (len(targets), len(some)) == (20_000, 10)
    assert np.array_equal(some.decode(), targets.decode()[:10])
    assert targets.nbytes == 8 * 20_000
    assert targets.mechanism.possible_mask(targets.values).all()


@pytest.mark.parametrize(
    ("epsilon", "name"),
    [(0.01, "rr_on_bins"), (2.8, "rr_on_bins"), (3.0, "piecewise"), (9, "piecewise")],
)
def test_auto_looks_at_epsilon(epsilon: float, name: str) -> None:
    """Bins where noise drowns a label, the unbiased mechanism elsewhere."""
    assert randomizer_name("auto", epsilon) == name


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"epsilon": 0}, "epsilon is 0"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
        ({"bounds": (1, 1)}, "bounds is"),
        ({"bounds": (2, 1)}, "lower one first"),
        ({"bounds": (0, np.inf)}, "finite"),
        ({"bounds": (-1e308, 1e308)}, "width_of_bounds"),
        ({"y": [1.0, np.nan]}, "y holds 1 values"),
        ({"y": [[1.0]]}, "one label a client"),
        ({"y": ["a"]}, "give numbers"),
        ({"randomizer": "piecwise"}, "Did you mean 'piecewise'"),
        ({"randomizer": "rr_on_bins"}, "needs a prior"),
        ({"randomizer": "rr_on_bins", "prior": [1.0]}, "two or more equal"),
        ({"randomizer": "rr_on_bins", "prior": [1.0, -1]}, "no negative"),
    ],
)
def test_bad_input_is_refused(given, said: str) -> None:
    """By name, with the value and the rule."""
    usual = {"y": [1.0, 2.0], "bounds": (0.0, 3.0), "epsilon": 1.0}
    with pytest.raises(UserError, match=said):
        noise_targets(**(usual | given))


def test_other_lengths_are_refused() -> None:
    """Predictions of another number of records."""
    targets = noise_targets([1.0, 2.0], (0, 3), 1.0, "piecewise", 0)
    with pytest.raises(UserError, match=r"shape \(3,\); there are 2"):
        squared_error(np.zeros(3), None, targets)
