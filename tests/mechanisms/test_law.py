"""Output laws: every mechanism's against its draws, and what laws promise."""

import math

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.mechanisms import base as laws
from curvote.mechanisms import make, names
from curvote.mechanisms.base import (
    LabelMechanism,
    Law,
    Mechanism,
    atomic_law,
    continuous_law,
    product_law,
)
from tests.noise import SEED, build

DRAWS = 20_000


def inputs(mechanism: Mechanism) -> np.ndarray:
    """Three records across the domain that the mechanism accepts, its ends included."""
    low, high = mechanism.domain
    shares = (0, 1, 1) if mechanism.name == "binary_rr" else (0, 0.7, 1)
    d = getattr(mechanism, "d", 1)
    columns = low + (high - low) * np.tile(np.array(shares)[:, None], (1, d))
    columns[1, -1] = high if mechanism.name == "binary_rr" else low
    return mechanism.to_inputs(columns)


def drawn(mechanism: Mechanism, x: np.ndarray, number: int = DRAWS) -> np.ndarray:
    """Outputs of ``simulate`` for each input, (n, number, d)."""
    some = mechanism.simulate(np.repeat(x, number, axis=0), SeededEntropy(SEED))
    return np.asarray(some, dtype=np.float64).reshape(len(x), number, -1)


def boxes(draws: np.ndarray, number: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Boxes (n, d) between two draws of the same input, which take no further part."""
    ends = draws[:, : 2 * number].reshape(len(draws), number, 2, -1)
    lows, highs = ends.min(axis=2), ends.max(axis=2)
    return [(lows[:, i], highs[:, i]) for i in range(number)]


def deviation(probability: np.ndarray, seen: np.ndarray, number: int) -> float:
    """The largest distance in standard errors, one draw more or less allowed."""
    error = np.sqrt(probability * (1 - probability) / number) + 1 / number
    return float((np.abs(seen - probability) / error).max())


def follows(mechanism: Mechanism, scale: float = 1.0) -> bool:
    """Say whether the law has the draws' shares in boxes; ``scale`` spoils draws."""
    x = inputs(mechanism)
    law, draws = mechanism.law(x), drawn(mechanism, x) * scale
    if law is None:
        return False
    rest, worst = draws[:, 40:], 0.0
    for low, high in boxes(draws, 20):
        inside = (rest >= low[:, None]) & (rest <= high[:, None])
        seen = inside.all(axis=2).mean(axis=1)
        worst = max(worst, deviation(law.box(low, high), seen, rest.shape[1]))
    return worst < 4.5


def stated(epsilon: float) -> list[str]:
    """The mechanisms that state a law."""
    built = [build(name, epsilon) for name in names()]
    return [m.name for m in built if m.law(inputs(m)) is not None]


@pytest.mark.parametrize("epsilon", [0.5, 4])
@pytest.mark.parametrize("name", stated(1))
def test_law_follows_draws(name, epsilon):
    """In boxes between draws, for inputs inside the domain and at its ends."""
    assert follows(build(name, epsilon))


def test_spoilt_draws_are_noticed():
    """The comparison fails where draws are a tenth too wide."""
    assert not follows(build("laplace", 1), scale=1.1)
    assert not follows(build("joint_box", 4), scale=1.1)


@pytest.mark.parametrize("epsilon", [60, 400])
@pytest.mark.parametrize("name", stated(1))
def test_law_of_huge_epsilon(name, epsilon):
    """Where a window is one point, the law's jump is at the outputs themselves."""
    mechanism = build(name, epsilon)
    x = inputs(mechanism)
    law, draws = mechanism.law(x), drawn(mechanism, x, 200)
    seen = np.zeros(len(x))
    for point in np.unique(draws, axis=1).transpose(1, 0, 2):
        hit = (draws == point[:, None]).all(axis=2).mean(axis=1)
        chance = law.box(point, point)
        assert (np.abs(hit - chance) <= 4.5 * np.sqrt(0.25 / 200)).all()
        seen += chance
    assert law.weights.sum(axis=1) == pytest.approx(1)


def is_spherical(draws: np.ndarray) -> bool:
    """Whether all have the same length, and their sums many values."""
    length = np.linalg.norm(draws, axis=-1)
    return np.allclose(length, length[0]) and len(np.unique(draws.sum(axis=1))) > 100


@pytest.mark.parametrize("name", sorted(set(names()) - set(stated(1))))
def test_none_is_said_where_there_is_no_mixture(name):
    """A code of many numbers; or a sphere, which is no mixture of boxes."""
    mechanism = build(name, 1)
    x = inputs(mechanism)
    if isinstance(mechanism, LabelMechanism):
        assert np.ndim(mechanism.simulate(x, SeededEntropy(SEED))) == 2
    else:
        assert is_spherical(drawn(mechanism, x, 200)[0])
    assert mechanism.law(x) is None


@pytest.mark.parametrize(
    ("name", "params", "terms"),
    [
        ("sampled", {"d": 14, "k": 3}, 364),
        ("sampled", {"d": 24, "k": 8}, None),
        ("duchi_vector", {"d": 12}, 4096),
        ("duchi_vector", {"d": 13}, None),
        ("joint_box", {"d": 49}, 2),
    ],
)
def test_terms_are_counted(name, params, terms):
    """More products than ``MOST_TERMS`` are not written out."""
    law = make(name, epsilon=2, **params).law(np.zeros((2, params["d"])))
    assert (law and len(law.terms)) == terms
    assert laws.MAX_TERMS == 4096


def some_laws() -> list[Law]:
    """Laws with atoms, without, and with both, for five inputs."""
    x = np.linspace(-1, 1, 5)
    made = [make(name, epsilon=1) for name in ("laplace", "exponential", "hybrid")]
    uneven = atomic_law(
        np.sort(np.random.default_rng(0).normal(size=(5, 3))), [[0.2, 0.5, 0.3]] * 5
    )
    return [m.law(x).terms[0][0] for m in made] + [uneven]


PLACES = np.concatenate([np.linspace(-4, 4, 41), [-math.inf, math.inf]])
PLACES.sort()


@pytest.mark.parametrize("law", some_laws())
def test_law_is_a_law(law):
    """Distribution functions rise from 0 to 1; below is never more than up to."""
    upto, below = law.cdf(PLACES), law.below(PLACES)
    assert upto.shape == below.shape == (5, len(PLACES))
    assert upto[:, 0] == pytest.approx(0)
    assert upto[:, -1] == pytest.approx(1)
    assert (np.diff(upto) >= -1e-15).all()
    assert (below <= upto + 1e-15).all()
    assert (upto[:, :-1] <= below[:, 1:] + 1e-15).all()
    wide = np.broadcast_to(PLACES, (5, len(PLACES)))
    assert np.array_equal(law.cdf(wide), upto)
    parts = zip(PLACES[1:], PLACES[1:], strict=True)
    whole = law.between([-math.inf], [math.inf])
    assert whole == pytest.approx(1)
    assert all((law.between([a], [b]) <= whole).all() for a, b in parts)


@pytest.mark.parametrize("law", some_laws())
def test_clipped_edges_take_the_outside_mass(law):
    """Nothing is beyond the edges, and nothing inside has moved."""
    low, high = -0.6, 0.8
    clipped = law.clipped(low, high)
    at = np.array([low, high])
    edges = clipped.between(at, at)
    assert edges[:, :1] == pytest.approx(law.cdf([low]))
    assert edges[:, 1:] == pytest.approx(1 - law.below([high]))
    inside = PLACES[np.abs(PLACES - 0.1) < 0.7]
    assert clipped.cdf(inside) == pytest.approx(law.cdf(inside), abs=1e-14)
    assert clipped.below([low]) == pytest.approx(0)
    assert clipped.cdf([high]) == pytest.approx(1)
    assert clipped.clipped(-1, 1) is clipped


@pytest.mark.parametrize("law", some_laws())
def test_moving_and_clipping_commute(law):
    """Clipping before or after a power of two changes nothing, and slices neither."""
    first = law.clipped(-0.5, 0.75).scaled(4.0, 2.0)
    then = law.scaled(4.0, 2.0).clipped(0.0, 5.0)
    at = np.sort(np.append(4 * PLACES[1:-1] + 2, [0, 5]))
    assert first.cdf(at) == pytest.approx(then.cdf(at), abs=1e-14)
    assert first.below(at) == pytest.approx(then.below(at), abs=1e-14)
    for which in (slice(1, 3), np.array([4, 0])):
        assert np.array_equal(then.select(which).cdf(at), then.cdf(at)[which])


def misplaced(law: Law, seen: Law, scale: float, shift: float) -> int:
    """How many outputs of a mechanism are on another side of where they land."""
    outputs = np.random.default_rng(1).integers(0, 1 << 20, 2000) / (1 << 20)
    landed = shift + scale * outputs
    return int(
        np.count_nonzero(seen.cdf(landed) != law.cdf(outputs))
        + np.count_nonzero(seen.below(landed) != law.below(outputs))
    )


@pytest.mark.parametrize(("scale", "shift"), [(47.3, 11.9), (0.3, -1e3), (1e6, 7e-3)])
def test_mapped_law_is_exact_to_the_last_bit(scale, shift):
    """An output stays on its side of a threshold that is where it lands."""
    law = make("pm_01", epsilon=3).law(np.array([0.3])).terms[0][0]
    assert misplaced(law, law.scaled(scale, shift), scale, shift) == 0


def test_plain_quotient_misplaces_outputs():
    """What was subtracted is rounded: hundreds of outputs change sides."""
    scale, shift = 47.3, 11.9
    law = make("pm_01", epsilon=3).law(np.array([0.3])).terms[0][0]
    naive = continuous_law(law.inputs, lambda x, at: law.rest(x, (at - shift) / scale))
    assert misplaced(law, naive, scale, shift) > 100


def test_last_place_is_the_last():
    """The next float would land beyond the place asked for."""
    rng = np.random.default_rng(2)
    for scale, shift in ((0.7, 3.0), (1e-3, -5e4), (33.0, 0.0)):
        at = np.append(shift + scale * rng.normal(size=(1, 500)), [[shift, 0]], axis=1)
        last = laws._largest_preimage(at, scale, shift)
        assert (shift + scale * last <= at).all()
        assert (shift + scale * np.nextafter(last, math.inf) > at).all()


def test_hybrid_has_atoms_and_a_rest():
    """The two corners of ``duchi`` are atoms with its share, above epsilon .61."""
    mechanism = make("hybrid", epsilon=2)
    law = mechanism.law(np.array([0.0])).terms[0][0]
    at = mechanism.duchi.outputs
    assert law.between(at, at)[0] == pytest.approx(mechanism.shares[1] / 2)
    small = make("hybrid", epsilon=0.5).law(np.array([0.5])).terms[0][0]
    assert small.masses.sum() == pytest.approx(1)


def test_gaussian_law_is_that_of_the_integers():
    """Where sigma is its least, 16 steps, against the summed probabilities."""
    noise = make("gaussian", epsilon=1e14, d=1, delta=0.5).noise.law
    k = np.arange(-800, 801)
    weights = np.exp(-noise.rate * k.astype(float) ** 2)
    assert noise.sigma < 17
    exact = np.cumsum(weights) / weights.sum()
    assert np.abs(noise.cdf(k) - exact).max() < 2e-8
    assert np.abs(noise.cdf(k + 0.5) - exact).max() < 2e-8


def test_record_mechanism_holds_at_a_huge_total():
    """At a total of 392 the cube holds the record; the loss stays within epsilon."""
    for epsilon, d in ((170, 16), (200, 16), (392, 32), (1000, 49)):
        mechanism = make("joint_box", epsilon=epsilon, d=d)
        assert mechanism.worst_log_ratio() <= epsilon
        assert mechanism._cube_weight > 1 - 1e-9


def test_terms_share_their_laws():
    """A mixture asks each law once: 364 subsets of 14 coordinates have 15 laws."""
    law = make("sampled", epsilon=1, d=14, k=3).law(np.zeros((2, 14)))
    assert len({id(each) for term in law.terms for each in term}) == 15
    low, high = np.full((2, 14), -0.5), np.full((2, 14), 0.5)
    one = make("hybrid", epsilon=1 / 3).law(np.zeros(2)).terms[0][0]
    one = one.scaled(14 / 3, 0.0).between([-0.5], [0.5])[0, 0]
    assert law.box(low, high) == pytest.approx(one**3)
    assert np.array_equal(
        law.select(slice(0, 1)).box(low[:1], high[:1]), law.box(low, high)[:1]
    )


def test_product_of_laws_is_independent():
    """A box of two coordinates has the product of their shares."""
    law = make("laplace", epsilon=1).law(np.zeros(3)).terms[0][0]
    both = product_law(law, law)
    side = law.between([-0.3], [0.4])[:, 0]
    low, high = np.full((3, 2), -0.3), np.full((3, 2), 0.4)
    assert both.box(low, high) == pytest.approx(side**2)
