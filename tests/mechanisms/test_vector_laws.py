"""The exact laws of duchi_vector, sampled and joint_box, against enumeration."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms import exact, joint_box, make
from tests.noise import ALPHA, SEED, exp_oracle

TOTAL = 1 << 64


def signs(d: int) -> list[tuple[int, ...]]:
    """Return all sign vectors of length d."""
    return list(product((-1, 1), repeat=d))


def corner_law(mechanism, v, z) -> Fraction:
    """Return P(z | v) of duchi_vector for rounded record v, from its integers."""
    if sum(a * b for a, b in zip(v, z, strict=True)) > 0:
        return Fraction(mechanism.threshold, TOTAL * mechanism.inside)
    return Fraction(TOTAL - mechanism.threshold, TOTAL * mechanism.outside)


def duchi_law(mechanism, x, z) -> Fraction:
    """Return P(z | x), the mixture over the roundings of x."""
    total = Fraction(0)
    for v in signs(len(x)):
        weights = ((1 + a * Fraction(b)) / 2 for a, b in zip(v, x, strict=True))
        total += math.prod(weights) * corner_law(mechanism, v, z)
    return total


def fits(counts: np.ndarray, probabilities: list[Fraction]) -> bool:
    """Say whether counts can come from these probabilities, at ALPHA."""
    expected = np.array([float(p) for p in probabilities]) * counts.sum()
    return stats.chisquare(counts, expected).pvalue > ALPHA


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_duchi_vector_enumerated(d, epsilon):
    """Over all roundings and corners: a law, with the stated worst ratio and mean."""
    mechanism, corners = make("duchi_vector", epsilon=epsilon, d=d), signs(d)
    assert mechanism.inside == sum(sum(z) > 0 for z in corners)
    law = {(v, z): corner_law(mechanism, v, z) for v in corners for z in corners}
    for v in corners:
        assert sum(law[v, z] for z in corners) == 1
        means = [sum(law[v, z] * z[j] for z in corners) for j in range(d)]
        assert [float(m) * mechanism.largest for m in means] == pytest.approx(v)
    ratios = (law[v, z] / law[w, z] for v, w, z in product(corners, repeat=3))
    assert max(ratios) == mechanism.worst_ratio()
    assert mechanism.worst_ratio() <= exp_oracle(Fraction(epsilon))


@pytest.mark.parametrize("d", [1, 3, 9])
def test_duchi_vector_has_the_published_bound(d):
    """For odd d, B is the paper's (e^epsilon + 1)/(e^epsilon - 1) C_d."""
    bound = 2 ** (d - 1) / math.comb(d - 1, (d - 1) // 2) / math.tanh(0.5)
    assert make("duchi_vector", epsilon=1, d=d).largest == pytest.approx(bound)


@pytest.mark.parametrize("d", [2, 4])
def test_published_ties_break_the_claim(d):
    """Ties on both sides, as published for even d, lose ln(1 + e^epsilon); ours not."""
    mechanism = make("duchi_vector", epsilon=1, d=d)
    assert 1 - 1e-12 < mechanism.worst_log_ratio() <= 1
    q, size = 1 / (1 + math.exp(-1)), mechanism.outside
    laws = {"inside": q / size, "tie": 1 / size, "outside": (1 - q) / size}
    assert math.log(laws["tie"] / laws["outside"]) == pytest.approx(1.3132617)
    published = size / math.comb(d - 1, d // 2) / math.tanh(0.5)
    assert mechanism.largest < 0.65 * published


@pytest.mark.parametrize("d", [2, 3])
def test_duchi_vector_draws_and_log_ratio(d):
    """Draws and ``log_ratio`` follow the enumerated law inside the box too."""
    mechanism, n = make("duchi_vector", epsilon=1, d=d), 40_000
    x, x2 = (0.5, -0.25, 0.75)[:d], (-1, 0.125, 0)[:d]
    draws = mechanism.randomize(np.tile(x, (n, 1)), SeededEntropy(SEED)) > 0
    counts = np.bincount(draws @ 2 ** np.arange(d)[::-1], minlength=2**d)
    laws = [[duchi_law(mechanism, value, z) for z in signs(d)] for value in (x, x2)]
    assert fits(counts, laws[0])
    at = np.array(signs(d)) * mechanism.largest
    tiled = (np.tile(value, (2**d, 1)) for value in (x, x2))
    expected = [exact.exact_log(p / q) for p, q in zip(*laws, strict=True)]
    assert mechanism.log_ratio(*tiled, at) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("epsilon", "d", "k"), [(0.1, 5, 1), (4.9, 5, 1), (5, 5, 2)])
def test_sampled_subsets_are_uniform(epsilon, d, k):
    """The k of d coordinates reported are uniform over all subsets; k has its rule."""
    mechanism = make("sampled", epsilon=epsilon, d=d, mechanism="laplace")
    assert mechanism.k == k
    chosen = mechanism._draw_subsets(20_000, SeededEntropy(SEED))
    assert (chosen.sum(axis=1) == k).all()
    _, counts = np.unique(chosen @ 2 ** np.arange(d), return_counts=True)
    assert fits(counts, [Fraction(1, math.comb(d, k))] * math.comb(d, k))


def test_sampled_counts_every_subset_that_fits():
    """Where the scalar mechanism gives 0 itself, ``log_ratio`` sums over subsets."""
    mechanism = make("sampled", epsilon=1, d=3, mechanism="laplace", k=2)
    records = np.array([[0.5, -1, 0.25], [1, 1, -0.5]])

    def likelihood(x, at) -> float:
        given = at / mechanism.scale
        below = mechanism.scalar.cdf(x, given - exact.GRID_STEP)
        each = mechanism.scalar.cdf(x, given) - below
        subsets = [set(s) for s in combinations(range(3), 2)]
        seen = set(np.flatnonzero(at))
        return sum(math.prod(each[list(s)]) for s in subsets if seen <= s)

    for at in np.array([[0, 0.75, 0], [0, 0, 0], [1.5, 0, -3]]):
        ratio = math.log(likelihood(records[0], at) / likelihood(records[1], at))
        loss = mechanism.log_ratio(records[[0]], records[[1]], at[None])
        assert loss == pytest.approx([ratio], abs=1e-6)
        assert mechanism.possible_mask(at[None]).all()
    assert not mechanism.possible_mask(np.array([[0.75, 0.75, 0.75]])).any()


@pytest.mark.parametrize("d", [3, 7, 11])
def test_sampled_knows_its_own_outputs(d):
    """Outputs are recognised although times d/k and back is not exact in floats."""
    mechanism = make("sampled", epsilon=8, d=d)
    draws = mechanism.randomize(np.full((2000, d), 0.3), SeededEntropy(SEED))
    assert mechanism.possible_mask(draws).all()
    draws[draws != 0] *= 1 + 2.0**-50
    assert not mechanism.possible_mask(draws).any()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"mechanism": "pm_01"}, "takes values in"),
        ({"mechanism": "sw_01"}, "takes values in"),
        ({"mechanism": "lapalce"}, "Did you mean 'laplace'"),
        ({"mechanism": "privunit"}, "privunit"),
        ({"k": 0}, "k is 0"),
        ({"k": 4}, "at most d, which is 3"),
    ],
)
def test_sampled_refuses(params, message):
    """A mechanism for other values, or a k that is no number of coordinates."""
    with pytest.raises(UserError, match=message):
        make("sampled", epsilon=1, d=3, **params)


def test_sampled_is_unbiased_only_if_the_scalar_is():
    """The claim is the scalar mechanism's."""
    claims = [
        make("sampled", epsilon=1, d=3, mechanism=scalar).unbiased
        for scalar in ("laplace", "binary_rr", "square_wave")
    ]
    assert claims == [True, False, False]


@pytest.mark.parametrize("epsilon", [0.1, 1, 2])
@pytest.mark.parametrize("d", [1, 3, 20])
def test_joint_box_counts(epsilon, d):
    """The cube has the stated share, and the exact ratio never exceeds e^epsilon."""
    mechanism = make("joint_box", epsilon=epsilon, d=d)
    assert mechanism.inside + mechanism.outside == joint_box.POINTS**d
    share = mechanism.inside / joint_box.POINTS**d
    assert share == pytest.approx(1 / (1 + math.exp(epsilon / 2)), rel=1e-4)
    assert mechanism.worst_ratio() <= exp_oracle(Fraction(epsilon))


@pytest.mark.parametrize("x", [(0, 0), (1, 1), (-0.5, 1)])
def test_joint_box_enumerated(x, monkeypatch):
    """On a grid of 5 x 5 points the draws, mean and variance are the exact ones."""
    for module in (exact, joint_box):
        monkeypatch.setattr(module, "GRID_ONE", 2)
    monkeypatch.setattr(joint_box, "POINTS", 5)
    mechanism, record = make("joint_box", epsilon=1, d=2), np.array([x])
    points = np.array(list(product(np.arange(-2, 3) / 2, repeat=2)))
    middle = np.clip(record, -0.5, 0.5)
    near = (np.abs(points - middle) <= 0.5).all(axis=1)
    assert near.sum() == mechanism.inside == 9
    inside = Fraction(mechanism.threshold, TOTAL)
    law = [inside / 9 if hit else (1 - inside) / 16 for hit in near]
    draws = mechanism.randomize(np.tile(x, (40_000, 1)), SeededEntropy(SEED))
    assert fits(np.bincount(((draws + 1) * 2).astype(int) @ [5, 1], minlength=25), law)
    weights = np.array([float(p) for p in law])
    mean = weights @ points
    assert mechanism.mean(record)[0] == pytest.approx(mean)
    variance = weights @ (points - mean) ** 2
    assert mechanism.variance(record)[0] == pytest.approx(variance)


def test_joint_box_marginal():
    """One coordinate is uniform in the shifted cube's side, or everywhere."""
    mechanism = make("joint_box", epsilon=2, d=2)
    draws = mechanism.randomize(np.full((40_000, 2), 0.9), SeededEntropy(SEED))[:, 0]
    width, weight = mechanism.side / exact.GRID_ONE, mechanism._cube_weight
    cube, box = stats.uniform(1 - width, width), stats.uniform(-1, 2)
    result = stats.kstest(
        draws, lambda y: weight * cube.cdf(y) + (1 - weight) * box.cdf(y)
    )
    assert result.pvalue > ALPHA
