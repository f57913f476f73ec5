"""Noised numbers: the bins and mechanism that noise them, and how they are read."""

import math
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.checks.mechanism_subject import subject_of
from curvote.labels.regression import noise_targets, squared_error
from curvote.mechanisms import make
from curvote.mechanisms.randomized_response import RROnBins
from curvote.systems.labels.regression.targets import (
    CELLS,
    NoisedTargets,
    bin_params,
    cell_middles,
    estimate_histogram,
    optimal_binning,
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


def loss_of(
    values: np.ndarray, prior: np.ndarray, epsilon: float, edges: tuple[int, ...]
) -> float:
    """The expected squared error of randomized response, answer by answer."""
    k = len(edges) - 1
    keep = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    move = (1 - keep) / max(1, k - 1)
    total = 0.0
    for start, end in pairwise(edges):
        inside = (np.arange(len(values)) >= start) & (np.arange(len(values)) < end)
        joint = prior * np.where(inside, keep, move)
        answer = joint @ values / joint.sum()
        total += float(joint @ (values - answer) ** 2)
    return total


def brute_force(values: np.ndarray, prior: np.ndarray, epsilon: float) -> float:
    """The least loss over all ways of cutting m values into intervals."""
    m = len(values)
    return min(
        loss_of(values, prior, epsilon, (0, *inner, m))
        for k in range(m)
        for inner in combinations(range(1, m), k)
    )


@pytest.mark.parametrize("seed", range(50))
def test_it_equals_brute_force(seed: int) -> None:
    """For random priors of at most 8 values, some of them of weight 0."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 9))
    values = np.sort(rng.normal(size=m))
    prior = rng.dirichlet(np.full(m, 0.7)) * (rng.random(m) < 0.9)
    prior = prior / prior.sum() if prior.any() else np.full(m, 1 / m)
    epsilon = float(rng.choice([0.1, 0.5, 1, 2, 4, 8]))
    found = optimal_binning(values, prior, epsilon)
    assert found.loss == pytest.approx(brute_force(values, prior, epsilon), rel=1e-9)
    edges = (*map(int, found.starts), m)
    stated = loss_of(values, prior, epsilon, edges)
    assert found.loss == pytest.approx(stated, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1, 3, 9])
def test_the_loss_is_that_of_the_mechanism(epsilon: float) -> None:
    """Each client's squared error, by the exact law of what it sends."""
    rng = np.random.default_rng(3)
    values, prior = np.linspace(-0.9, 0.9, 24), rng.dirichlet(np.ones(24))
    found = optimal_binning(values, prior, epsilon)
    starts = found.starts[1:]
    cuts = (values[starts - 1] + values[starts]) / 2
    mechanism = RROnBins(epsilon=epsilon, cuts=cuts, answers=found.answers)
    errors = mechanism.variance(values) + (mechanism.mean(values) - values) ** 2
    assert prior @ errors == pytest.approx(found.loss, rel=1e-9)
    assert prior @ mechanism.mean(values) == pytest.approx(prior @ values, abs=1e-9)


def test_a_richer_budget_never_loses() -> None:
    """Neither in error nor in the number of bins, down to the values themselves."""
    values, prior = np.arange(12.0), np.full(12, 1 / 12)
    found = [
        optimal_binning(values, prior, epsilon)
        for epsilon in (0.01, 0.5, 2, 5, 30, 800)
    ]
    losses = [each.loss for each in found]
    assert losses == sorted(losses, reverse=True)
    counts = [len(each.starts) for each in found]
    assert counts[0] == 2
    assert counts[-1] == 12
    assert counts == sorted(counts)
    assert losses[-1] == pytest.approx(0, abs=1e-12)


def test_a_prior_of_one_value_takes_one_bin() -> None:
    """Its answer is the value, whatever the client holds."""
    found = optimal_binning([1.0, 2.0, 4.0], [0, 3, 0], 1.0)
    assert len(found.starts) == 1
    assert found.answers.tolist() == [2.0]
    assert found.loss == pytest.approx(0)


@pytest.mark.parametrize(
    ("values", "prior", "said"),
    [
        ([1, 1, 2], [1, 1, 1], "increase strictly"),
        ([1, 2], [1, 1, 1], r"shape \(2,\) and prior \(3,\)"),
        ([1, 2], [0, 0], "one above 0"),
        ([1, 2], [1, -1], "no negative"),
        ([1, np.nan], [1, 1], "finite"),
        ([], [], "one weight for each value"),
    ],
)
def test_what_is_no_prior_is_refused(values, prior, said: str) -> None:
    """With what was given."""
    with pytest.raises(UserError, match=said):
        optimal_binning(values, prior, 1.0)


class _CutsByLabel(RROnBins):
    """Broken: bins that are best for the very labels, not for a prior."""

    def _draw(self, values, entropy):
        params = bin_params(np.histogram(values, 8, (-1, 1))[0] + 1e-3, self.epsilon)
        return RROnBins(epsilon=self.epsilon, **params)._draw(values, entropy)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2, 10])
def test_the_worst_ratio_is_that_of_k_rr(epsilon: float) -> None:
    """As a fraction; the law's largest ratio, and never above e^epsilon."""
    prior = np.random.default_rng(1).dirichlet(np.ones(30))
    mechanism = make("rr_on_bins", epsilon=epsilon, **bin_params(prior, epsilon))
    told = make("k_rr", epsilon=epsilon, n_classes=mechanism.k)
    assert isinstance(mechanism.worst_ratio(), Fraction)
    assert mechanism.worst_ratio() == told.worst_ratio()
    law = mechanism.probabilities(cell_middles(30))
    assert np.log(law.max() / law.min()) <= epsilon + 1e-12


def test_a_value_on_a_cut_is_of_the_upper_bin() -> None:
    """And the ends belong to the outer bins."""
    mechanism = RROnBins(epsilon=1.0, cuts=[-0.5, 0.25], answers=[-0.7, 0, 0.5])
    assert mechanism.bins([-1, -0.5, 0.2, 0.25, 1]).tolist() == [0, 1, 1, 2, 2]


def test_draws_follow_the_law() -> None:
    """Each answer as often as stated, within 5 standard errors."""
    mechanism = RROnBins(epsilon=1.0)
    drawn = mechanism.randomize(np.full(50_000, 0.1), SeededEntropy(3))
    law = mechanism.probabilities(0.1)
    shares = (drawn[:, None] == mechanism.outputs).mean(axis=0)
    assert (np.abs(shares - law) < 5 * np.sqrt(law / 50_000)).all()


def test_one_bin_says_nothing() -> None:
    """The answer is constant and the loss 0."""
    mechanism = RROnBins(epsilon=1.0, cuts=[], answers=[0.3])
    assert mechanism.worst_log_ratio() == 0
    drawn = mechanism.randomize(np.linspace(-1, 1, 9), SeededEntropy(0))
    assert set(drawn.tolist()) == {0.3}


def test_bins_made_from_the_labels_are_caught() -> None:
    """The answer of a label tells where it lies, however it is randomized."""
    broken, honest = _CutsByLabel(epsilon=1.0), RROnBins(epsilon=1.0)
    outputs = broken.randomize(np.full(50, 0.8), SeededEntropy(0))
    assert not broken.possible_mask(outputs).all()
    twin, shipped = (subject_of(each, "rr_on_bins") for each in (broken, honest))
    x = np.array(0.8)
    for subject, passes in ((twin, False), (shipped, True)):
        drawn = subject.draw(x, 4000, SeededEntropy(1))
        assert (subject.law_gap(x, drawn, 1e-6) is None) == passes


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"cuts": [0.2, 0.1]}, "cuts must be one row"),
        ({"cuts": [0.0, 1.0]}, "strictly between -1 and 1"),
        ({"cuts": [0.0]}, "one bin more"),
        ({"answers": [0, 0, 1]}, "answers must be one row"),
        ({"answers": [0, np.nan, 1]}, "finite"),
    ],
)
def test_bins_that_are_none_are_refused(params, said: str) -> None:
    """With what is wrong."""
    with pytest.raises(UserError, match=said):
        RROnBins(epsilon=1.0, **params)


def test_the_bins_of_a_prior_are_its_optimal_ones() -> None:
    """Cuts between cells, answers as the program gives them."""
    prior = np.random.default_rng(0).dirichlet(np.ones(10))
    found = optimal_binning(cell_middles(10), prior, 2.0)
    mechanism = make("rr_on_bins", epsilon=2.0, **bin_params(prior, 2.0))
    assert np.array_equal(mechanism.outputs, found.answers)
    starts = np.flatnonzero(np.diff(mechanism.bins(cell_middles(10)), prepend=-1))
    assert np.array_equal(starts, found.starts)
