"""A record as one unit vector: its length, what its mean says, how it is noised."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.client.report import DirectionReporter
from curvote.curves.direction import Directions, Whitening, second_moment_matrix
from tests.noise import ALPHA, SEED, Replay

SHARES = (1.0, 0.7, 0.6, 0.01)
RNG = np.random.default_rng(SEED)


def records(d: int, n: int, seed: int = SEED) -> tuple[np.ndarray, np.ndarray]:
    """Return z (n, d), off centre, and labels that depend on it."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d)) * rng.uniform(0.2, 3, d) + rng.normal(size=d)
    labels = np.where(z[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    return z, labels


def as_matrices(vectors: Directions, reports: np.ndarray) -> np.ndarray:
    """Return the second moment that each row says, (n, p, p)."""
    found = [vectors.moments(row) for row in reports]
    return np.array([second_moment_matrix(one.diagonal, one.off) for one in found])


def mean_is(draws: np.ndarray, truth: np.ndarray, reach: float) -> bool:
    """Say whether the mean of ``draws``, within +-``reach``, can be ``truth``.

    Hoeffding's bound at ALPHA, shared among the coordinates.
    """
    n, size = draws.shape
    gap = reach * math.sqrt(2 * math.log(2 * size / ALPHA) / n)
    return bool((np.abs(draws.mean(axis=0) - truth) <= gap).all())


@given(
    d=st.integers(1, 12),
    share=st.floats(0.001, 1),
    intercept=st.floats(1e-3, 1e3),
    size=st.floats(1e-6, 1e6),
    seed=st.integers(0, 99),
)
def test_every_record_becomes_a_vector_of_length_1(d, share, intercept, size, seed):
    """Whatever z is, so its length betrays nothing; `size` is the vector's width."""
    z, labels = records(d, 5, seed)
    z[0] = 0
    given = Directions(d, intercept, share)
    found = given.vectors(size * z, labels)
    assert found.shape == (5, given.size)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_second_part_keeps_the_distances_of_the_matrices(d: int) -> None:
    """Inner products of second parts are those of u u' - I/p, but for one factor."""
    z, labels = records(d, 6)
    given = Directions(d, 0.5, 0.7)
    second = given.vectors(z, labels)[:, given.p :] * given.second_scale
    u = given.units(z)
    matrices = u[:, :, None] * u[:, None, :] - np.eye(given.p) / given.p
    flat = matrices.reshape(len(z), -1)
    assert second @ second.T == pytest.approx(flat @ flat.T, abs=1e-12)


@pytest.mark.parametrize("share", SHARES[1:])
def test_second_moments_are_read_back(share: float) -> None:
    """`second_moment_matrix` inverts each client's embedding, hence their mean's."""
    z, labels = records(4, 7)
    given = Directions(4, 0.8, share)
    u = given.units(z)
    found = as_matrices(given, given.vectors(z, labels))
    assert found == pytest.approx(u[:, :, None] * u[:, None, :], abs=1e-12)
    assert np.trace(found, axis1=1, axis2=2) == pytest.approx(1)


@pytest.mark.parametrize("share", SHARES)
def test_the_mean_of_vectors_is_the_clients_moments(share: float) -> None:
    """E[y u] and, where it is reported, E[u u'], whichever part each has."""
    z, labels = records(3, 40)
    given = Directions(3, 0.6, share)
    u = given.units(z)
    found = given.moments(given.vectors(z, labels).mean(axis=0))
    assert found.label[0] == pytest.approx(labels @ u / 40, abs=1e-12)
    if share == 1:
        assert found.diagonal.size == found.off.size == 0
    else:
        second = second_moment_matrix(found.diagonal, found.off)
        assert second == pytest.approx(u.T @ u / 40, abs=1e-12)


def test_whitening_moves_the_centre_to_0_and_then_turns() -> None:
    """``matrix`` times z - ``centre``, row by row."""
    made = Whitening(RNG.normal(size=(3, 3)), RNG.normal(size=3))
    z = RNG.normal(size=(4, 3))
    expected = [made.matrix @ (row - made.centre) for row in z]
    assert made.apply(z) == pytest.approx(np.array(expected))


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"d": 0}, "d is 0"),
        ({"intercept": 0.0}, "intercept"),
        ({"intercept": math.nan}, "intercept"),
        ({"share": 0.0}, "share"),
        ({"share": 1.1}, "share"),
        ({"share": math.nan}, "share"),
    ],
)
def test_directions_out_of_range_are_refused(parameters, said):
    """A UserError that names the parameter."""
    with pytest.raises(UserError, match=said):
        Directions(**{"d": 2, "intercept": 1.0, **parameters})


@pytest.mark.parametrize("study", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_reports_are_unbiased(share: float, study: bool) -> None:
    """The mean of many reports of one record is its vector, by either sampler."""
    n, z, labels = 40_000, np.array([[1.0, -2.0]]), np.array([-1.0])
    reporter = DirectionReporter.build(Directions(2, 0.7, share), 4)
    truth = reporter.vectors.vectors(z, labels)[0]
    own = np.repeat(z, n, axis=0), np.repeat(labels, n)
    draws = reporter.release(*own, SeededEntropy(SEED), study=study)
    reach = 1 / reporter.mechanism.m
    assert mean_is(draws, truth, reach)
    assert not mean_is(0.8 * draws, truth, reach)
    assert not mean_is(draws, -truth, reach)


def test_with_much_budget_the_moments_are_the_clients() -> None:
    """Each moment of 100,000 reports at epsilon 40 lies near the one without noise."""
    z, labels = records(3, 100_000)
    reporter = DirectionReporter.build(Directions(3, 0.6, 0.6), 40)
    given, u = reporter.vectors, reporter.vectors.units(z)
    found = reporter.release(z, labels, SeededEntropy(SEED), study=True).mean(axis=0)
    moments = given.moments(found)
    second = second_moment_matrix(moments.diagonal, moments.off)
    assert moments.label[0] == pytest.approx(labels @ u / len(z), abs=0.01)
    assert second == pytest.approx(u.T @ u / len(z), abs=0.01)
    another = Directions(3, 0.6, 0.7).moments(found)
    assert another.label[0] != pytest.approx(labels @ u / len(z), abs=0.01)


@pytest.mark.parametrize(
    ("z", "labels", "said"),
    [
        ([[1.0, 2.0]], [0.0], "-1 or \\+1"),
        ([[1.0, 2.0]], [math.nan], "NaN"),
        ([[1.0, math.nan]], [1.0], "NaN"),
        ([[1.0, math.inf]], [1.0], "infinite"),
        ([[1.0, 2.0, 3.0]], [1.0], r"shape \(1, 3\)"),
        ([1.0, 2.0], [1.0, 1.0], r"shape \(2,\)"),
        ([[1.0, 2.0]], [1.0, -1.0], "2 labels for 1 records"),
        ([[1.0, 2.0]], [[1.0, 1.0]], "labels"),
    ],
)
@pytest.mark.parametrize("study", [False, True])
def test_what_is_no_record_draws_nothing(z, labels, said, study):
    """The check comes before the first word of entropy, for all records at once."""
    reporter = DirectionReporter.build(Directions(2, 1.0, 0.7), 1)
    with pytest.raises(UserError, match=said):
        reporter.release(np.array(z), np.array(labels), Replay(), study=study)


def test_only_a_reports_length_and_width_are_possible() -> None:
    """What no honest client sends is refused, one report at a time."""
    reporter = DirectionReporter.build(Directions(2, 1.0, 0.7), 1)
    honest = reporter.release(*records(2, 5), SeededEntropy(SEED))
    assert reporter.possible(honest).all()
    longer = honest * np.array([[1], [1.001], [0.999], [0], [math.nan]])
    assert reporter.possible(longer).tolist() == [True] + [False] * 4
    assert not reporter.possible(honest[:, :-1]).any()
    assert not reporter.possible(np.hstack([honest, np.zeros((5, 1))])).any()
    assert not reporter.possible(honest[0]).any()


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_the_loss_of_a_whole_record_is_within_the_budget(epsilon, share):
    """Feature and label together; a reporter of twice the budget gives itself away."""
    given = Directions(2, 0.5, share)
    z, labels = records(2, 200)
    one, other = (z, labels), (-z, -labels[::-1])

    def worst(reporter: DirectionReporter) -> float:
        at = reporter.release(*one, SeededEntropy(SEED), study=True)
        return float(np.abs(reporter.log_ratio(one, other, at)).max())

    honest = worst(DirectionReporter.build(given, epsilon))
    assert 0.999 * epsilon < honest <= epsilon
    assert worst(DirectionReporter.build(given, 2 * epsilon)) > 1.9 * epsilon


@pytest.mark.parametrize("share", [1.0, 0.7])
def test_the_loss_is_that_of_the_law(share: float) -> None:
    """The mean of e^-loss over a record's own reports is 1, as for any two laws.

    Hoeffding's bound at ALPHA: a loss of another size is told apart.
    """
    n, epsilon = 200_000, 1
    reporter = DirectionReporter.build(Directions(2, 1.0, share), epsilon)
    one, other = (
        (np.full((n, 2), value), np.full(n, label))
        for value, label in ((0.3, 1.0), (-0.5, -1.0))
    )
    at = reporter.release(*one, SeededEntropy(SEED))
    loss = reporter.log_ratio(one, other, at)
    gap = 2 * math.sinh(epsilon) * math.sqrt(math.log(2 / ALPHA) / (2 * n))
    assert abs(np.exp(-loss).mean() - 1) < gap
    assert abs(np.exp(-0.7 * loss).mean() - 1) > gap
    assert abs(np.exp(-1.3 * loss).mean() - 1) > gap


@pytest.mark.parametrize(
    ("matrix", "centre"),
    [
        (np.eye(3), np.zeros(2)),
        (np.ones((2, 3)), np.zeros(2)),
        (np.eye(2), np.array([0, np.nan])),
        (np.eye(2), np.zeros((2, 1))),
    ],
)
def test_what_is_no_whitening_is_refused(matrix, centre):
    """A client takes it from a task that anybody may have written."""
    with pytest.raises(UserError, match=r"must be \(d, d\) and \(d,\)|must be finite"):
        Whitening(matrix, centre)


@pytest.mark.parametrize("z", [np.zeros((1, 3)), np.zeros(2), np.full((1, 2), np.inf)])
def test_whitening_refuses_records_of_other_shapes(z: np.ndarray) -> None:
    """And values that are not finite, before anything is computed from them."""
    with pytest.raises(UserError, match=r"numbers|must be finite"):
        Whitening(np.eye(2), np.zeros(2)).apply(z)
