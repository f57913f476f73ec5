"""The histogram baseline: its cells, its privacy, its law and its stage."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from curvote.advise.mrma import pointwise_utility, total_variation
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.base.privacy import label_budget_share
from curvote.curves.basis import identity
from curvote.curves.encoding import Encoding
from curvote.data.simulation.records import positive_probability
from curvote.mechanisms.exact import GRID_STEP
from curvote.messages.roles import split_roles
from curvote.pipeline.run.results import mean_scores
from curvote.systems.mrma.stages import Histogram, label_agreement, outside_share
from curvote.systems.mrma.system import BASELINE
from tests import plain
from tests.memory import Made, Memory, do, replicates
from tests.noise import SEED

NO_NOISE = 2.0**30
PARAMS = {
    "seed": SEED,
    "clients": {"public": 0, "train": 20, "vote": 30, "test": 25},
    "source.groups": None,
    "replicates": 3,
    "epsilon": NO_NOISE,
    "histogram.bins": 4,
    "published.histogram": None,
}


def clients(d: int = 2) -> Made:
    """Return encoded clients, the same in three replicates."""
    rng = np.random.default_rng(SEED)
    z = rng.uniform(-1, 1, (75, d))
    rows = {"label": rng.integers(0, 2, 75), "z": z, "coefficients": z}
    facts = {"d": d, "encoding": Encoding(identity(d)).to_json()}
    return {"project": Memory.of(facts | {"classes": ["-", "+"]}, encoded=[rows] * 3)}


def messages(histogram: Histogram) -> NDArray[np.float64]:
    """Return what each possible record would send without noise, a row a record."""
    filled = np.eye(histogram.bins**histogram.d)
    if histogram.n_classes == 2:
        return np.concatenate([filled, -filled])
    return np.eye(len(filled) * histogram.n_classes)


# --------------------------------------------------------------------------- cells
def test_an_edge_belongs_to_the_interval_above_and_one_to_the_last():
    """Four intervals of length 1/2; what is outside goes to the nearest."""
    points = [-7, -1, -0.51, -0.5, -1e-9, 0, 0.49, 0.5, 1, 9]
    found = Histogram(1, 4, 1.0).cells(np.array(points)[:, None])
    assert found.tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3, 3]


@pytest.mark.parametrize(("d", "bins"), [(1, 1), (2, 3), (3, 4), (8, 2)])
def test_the_centres_of_all_cells_have_numbers_of_their_own(d: int, bins: int):
    """The cells are disjoint and their numbers are 0 to bins^d - 1."""
    middle = (np.arange(bins) + 0.5) * 2 / bins - 1
    found = Histogram(d, bins, 1.0).cells(np.array(list(product(middle, repeat=d))))
    assert sorted(found.tolist()) == list(range(bins**d))


@pytest.mark.parametrize("z", [[0.1, 0.2], [[0.1]], [[np.nan, 0]]])
def test_points_of_another_shape_are_refused(z: Any):
    """Points must be [n, d] and finite."""
    with pytest.raises(UserError, match="z "):
        Histogram(2, 4, 1.0).cells(z)


@pytest.mark.parametrize(("d", "bins"), [(11, 4), (60, 4), (2, 1025), (1000, 9)])
def test_too_many_numbers_are_refused(d: int, bins: int):
    """The error says how many numbers each client would send."""
    with pytest.raises(UserError, match=rf"each client would send {bins}\^{d} numbers"):
        Histogram(d, bins, 1.0)
    Histogram(10, 4, 1.0)
    Histogram(2, 1024, 1.0)


# ------------------------------------------------------------------------- privacy
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_whole_vector_loses_epsilon_at_most(
    epsilon: float, published: bool, n_classes: int
):
    """Of any two records, at any output; the right form reaches it, to 1e-6."""
    histogram = Histogram(2, 2, epsilon, published, n_classes)
    known, mechanism = messages(histogram), histogram.mechanism
    rng = np.random.default_rng(SEED)
    at = rng.integers(-(2**23), 2**23, (200, known.shape[1])) * GRID_STEP
    outputs = np.concatenate([at, 3 * known])
    worst = max(
        mechanism.log_ratio(one, other, outputs).sum(axis=1).max()
        for one, other in product(known, repeat=2)
    )
    expected = epsilon / 2**3 if published else epsilon
    assert worst == pytest.approx(expected, rel=1e-6)
    assert worst <= expected


@pytest.mark.parametrize("d", [1, 8])
def test_the_published_scale_is_twice_the_stated_one(d: int):
    """Scale 2 * 2^(d+1)/epsilon against 2/epsilon: 2^(d+1) times."""
    right, published = (
        Histogram(d, 4, 3.0, form).mechanism.variance(0) for form in (False, True)
    )
    assert right == pytest.approx(2 * (2 / 3) ** 2, rel=1e-6)
    assert published / right == pytest.approx(4.0 ** (d + 1), rel=1e-6)


# ----------------------------------------------------------------------------- law
def test_without_noise_the_larger_class_of_a_cell_wins():
    """A tie, and a cell that nobody is in, give the first class."""
    z = np.array([[-0.9], [-0.8], [-0.7], [-0.3], [-0.2], [0.2]])
    labels = np.array([1, 1, 0, 1, 0, 0])
    points = np.array([[-0.6], [-0.1], [0.1], [0.7], [-1]])
    histogram = Histogram(1, 4, NO_NOISE)
    found = histogram.classify(z, labels, points, np.random.default_rng(SEED))
    assert found.tolist() == [1, 0, 0, 0, 1]


def test_without_noise_the_largest_of_several_classes_wins():
    """A tie gives the first of those that have equally many."""
    z = np.array([[-0.9], [-0.8], [-0.7], [-0.3], [-0.2], [0.2]])
    labels = np.array([2, 2, 1, 1, 2, 3])
    points = np.array([[-0.6], [-0.1], [0.1]])
    histogram = Histogram(1, 4, NO_NOISE, n_classes=4)
    found = histogram.classify(z, labels, points, np.random.default_rng(SEED))
    assert found.tolist() == [2, 1, 3]
    with pytest.raises(UserError, match="the 4 classes are 0 to 3"):
        histogram.classify(z, labels + 1, points, np.random.default_rng(SEED))


def test_a_cell_of_several_classes_takes_a_number_each():
    """2^20 numbers at most; the error counts them."""
    Histogram(2, 512, 1.0, n_classes=4)
    with pytest.raises(UserError, match=r"would send 5 x 512\^2 numbers"):
        Histogram(2, 512, 1.0, n_classes=5)


def test_several_classes_have_the_law_of_the_releases():
    """Each class wins a cell as often as with noise drawn by every client."""
    rounds, n = 3000, 25
    z, points = np.full((n, 1), -0.9), np.array([[-0.75], [0.75]])
    labels = np.repeat([0, 1, 2], [10, 9, 6])
    histogram = Histogram(1, 2, 1.5, n_classes=3)
    sent = np.zeros((n, 2, 3))
    sent[np.arange(n), 0, labels] = 1
    every = np.broadcast_to(sent, (rounds, n, 2, 3)).reshape(-1, 6)
    noised = histogram.mechanism.randomize(every, SeededEntropy(SEED))
    real = noised.reshape(rounds, n, 2, 3).sum(axis=1).argmax(axis=-1)
    rng = np.random.default_rng(SEED)
    said = [histogram.classify(z, labels, points, rng) for _ in range(rounds)]
    for k in range(3):
        gap = np.abs(np.mean(np.array(said) == k, axis=0) - (real == k).mean(axis=0))
        assert (gap <= 5 * np.sqrt(0.5 / rounds)).all()


@pytest.mark.parametrize(("published", "alike"), [(False, True), (True, False)])
def test_the_shortcut_has_the_law_of_the_releases(published: bool, alike: bool):
    """Each cell elects +1 as often as with noise drawn by every client, cell by cell.

    Five standard errors; with the published noise the difference is seen.
    """
    rounds, n = 3000, 25
    z = np.concatenate([np.full(10, -0.9), np.full(9, -0.2), np.full(6, 0.1)])[:, None]
    labels = np.where(np.arange(n) < 14, 1, 0)
    points = np.array([[-0.75], [-0.25], [0.25], [0.75]])
    right = Histogram(1, 4, 1.5)
    sent = np.zeros((n, 4))
    sent[np.arange(n), right.cells(z)] = 2 * labels - 1
    every = np.broadcast_to(sent, (rounds, n, 4))
    noised = right.mechanism.randomize(every, SeededEntropy(SEED))
    real = (noised.sum(axis=1) > 0).mean(axis=0)
    rng, histogram = np.random.default_rng(SEED), Histogram(1, 4, 1.5, published)
    votes = [histogram.classify(z, labels, points, rng) > 0 for _ in range(rounds)]
    gap = np.abs(np.mean(votes, axis=0) - real)
    assert (gap <= 5 * np.sqrt(0.5 / rounds)).all() == alike


# --------------------------------------------------------------------------- stage
def test_the_stage_scores_both_baselines():
    """All N clients of training and voting count, test clients are judged on z."""
    given = clients()
    made = do(BASELINE, given, PARAMS)
    scores, rows = (
        made.columns("scores", (0,)),
        given["project"].columns("encoded", (0,)),
    )
    roles = split_roles(SEED, 0, 75, PARAMS["clients"], None)
    labels = np.where(rows["label"] == 1, 1.0, -1.0)
    cell = np.floor((rows["z"] + 1) * 2) @ [1, 10]
    known = np.concatenate([roles["train"], roles["vote"]])
    sums = [labels[known][cell[known] == cell[i]].sum() for i in roles["test"]]
    wrong = np.where(np.array(sums) > 0, 1, -1) != labels[roles["test"]]
    assert made.metadata["histogram"] is None
    assert scores["method"].tolist() == ["majority", "histogram"]
    larger = 1 if labels[known].sum() > 0 else -1
    expected = [np.mean(labels[roles["test"]] != larger), np.mean(wrong)]
    np.testing.assert_allclose(scores["value"], expected)


def test_a_replicate_does_not_depend_on_its_block():
    """The noise is that of the replicate's own stream."""
    given, params = clients(), PARAMS | {"epsilon": 1.0}
    together = do(BASELINE, given, params, replicates(3))
    for place in replicates(3):
        alone = do(BASELINE, given, params, [place]).columns("scores", place)
        np.testing.assert_equal(alone, together.columns("scores", place))


def test_a_histogram_of_too_many_cells_is_left_out_and_explained():
    """The stage goes on with the majority; its facts hold the reason."""
    made = do(BASELINE, clients(d=11), PARAMS)
    assert "each client would send 4^11 numbers" in made.metadata["histogram"]
    assert made.columns("scores", (0,))["method"].tolist() == ["majority"]


SLOPE = 4.0


def rows(root: Path, **changes: Any) -> list[dict[str, Any]]:
    """Return the scores of protocol ``drift`` on uniform records."""
    pipeline = {
        "protocol": "drift",
        "label": "drift",
        "source": {"name": "uniform", "d": 2, "slope": SLOPE},
        "clients": {"train": 5000},
        "project": {"basis": "identity", "rescale": "min_max", "lower": -1, "upper": 1},
        "epsilon": [2, 20],
        "replicates": 20,
        "seed": 3,
    }
    project = plain.write(root, tiny=pipeline | changes)
    return mean_scores(project, plain.run(project, block=20))


def test_the_total_variation_of_reports_is_the_closed_form(tmp_path: Path) -> None:
    """As many reports lie where no record can as the formula says: 5 se."""
    found = [row for row in rows(tmp_path) if row["metric"] == "total_variation"]
    assert len(found) == 2
    for row in found:
        epsilon_z = row["epsilon"] * (1 - label_budget_share("equal", 2))
        assert abs(row["value"] - total_variation(2, epsilon_z)) < 5 * row["se"]


@pytest.mark.parametrize("at", [0.5, -1.5])
def test_labels_agree_as_proposition_2_says(tmp_path: Path, at: float) -> None:
    """Inside and beyond the records' range: 5 se and the bin's width."""
    source = {"name": "uniform", "d": 1, "slope": SLOPE}
    every = rows(tmp_path, source=source, drift={"at": at})
    found = [row for row in every if row["metric"] == "agreement"]
    assert len(found) == 2
    for row in found:
        half = row["epsilon"] / 2
        keep = np.exp(half) / (1 + np.exp(half))
        law = pointwise_utility(
            lambda z: positive_probability(z, SLOPE), at, half, keep
        )
        assert abs(float(law) - row["value"]) < 5 * row["se"] + 0.002


def test_a_report_in_the_cube_may_be_a_record_and_no_other() -> None:
    """Two of four reports lie outside, where no record can be."""
    z = np.array([[0.0, 0.9], [1.0, -1.0], [1.1, 0.0], [0.0, -7.0]])
    assert outside_share({"z": z}) == pytest.approx(0.5)


def test_where_no_report_is_near_nothing_is_said() -> None:
    """An empty neighbourhood gives no row, not a number out of nothing."""
    reports = {"z": np.array([[5.0]]), "label": np.array([1])}
    assert label_agreement(reports, SLOPE, 0.0) == {}
    assert label_agreement(reports, SLOPE, -3.0) == {}
    assert set(label_agreement(reports, SLOPE, 3.0)) == {"agreement"}
