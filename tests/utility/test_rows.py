"""Rows: the figures of a deployment over all records and groups, with intervals."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from curvote.systems.utility.method import measurement
from curvote.systems.utility.method.deployment import Deployment
from curvote.systems.utility.method.measurement import (
    Measurement,
    make_row,
    make_rows,
    mean_agreement_interval,
)
from curvote.systems.utility.method.scan import measure
from tests.utility.settings_of import people, people_known

SETTING, KNOWN = people(), people_known()
KEYS = [
    "mechanism",
    "split",
    "read",
    "epsilon",
    "delta",
    "agreement",
    "lower",
    "upper",
    "worst",
    "under_target",
    "bound",
    "claimed",
    "accuracy",
    "balanced_accuracy",
    "group",
    "evidence",
    "queries",
]


def of(agreement, lower=None, upper=None, evidence="exact"):
    """Return figures of made-up records."""
    return Measurement(
        agreement,
        agreement if lower is None else lower,
        agreement if upper is None else upper,
        None,
        evidence,
        np.ones(len(agreement), dtype=np.int64),
        confidence=0.95 if evidence == "draws" else None,
    )


def test_a_row_has_exactly_the_keys_of_the_command():
    """In their order; the split by name, null for a vector mechanism."""
    deployment = Deployment("pm_01", 2.0, (0.75, 0.25))
    found = asdict(make_row(SETTING, deployment, measure(SETTING, KNOWN, deployment)))
    assert list(found) == KEYS
    assert found["split"] == {"age": 0.75, "bmi": 0.25}
    joint = Deployment("joint_box", 2.0)
    figures = measure(SETTING, KNOWN, joint)
    found = asdict(make_row(SETTING, joint, figures, target=0.8))
    assert found["split"] is None
    assert found["bound"] <= found["agreement"] == found["lower"] == found["upper"]
    assert 0 <= found["worst"] <= found["agreement"]
    assert 0 < found["under_target"] <= 1


def test_groups_are_rows_that_average_to_all():
    """Every record is in one group."""
    deployment = Deployment("pm_01", 2.0, (1.0, 0.0))
    figures = measure(SETTING, KNOWN, deployment)
    every, few, many = make_rows(SETTING, deployment, figures)
    assert (every.group, few.group, many.group) == (None, "few", "many")
    n = len(SETTING.records)
    assert every.agreement == pytest.approx(
        (20 * few.agreement + (n - 20) * many.agreement) / n
    )
    assert few.worst >= every.worst == min(few.worst, many.worst)


def test_balanced_accuracy_is_the_mean_over_labels():
    """And accuracy the mean over records."""
    deployment = Deployment("withhold", 0.0, (0.0, 0.0))
    found = make_row(SETTING, deployment, measure(SETTING, KNOWN, deployment))
    right = KNOWN.withheld == SETTING.labels
    assert found.accuracy == pytest.approx(right.mean())
    each = [right[SETTING.labels == label].mean() for label in (0, 1)]
    assert found.balanced_accuracy == pytest.approx(np.mean(each))


def test_a_bracket_is_averaged():
    """The mean lies between the means of the ends."""
    middle = np.array([0.2, 0.8])
    found = mean_agreement_interval(
        of(middle, middle - 0.1, middle + 0.1, "bracket"), sample=False
    )
    assert found == pytest.approx((0.4, 0.6))


def covered(seed, sample):
    """Say whether intervals of drawn records cover the truth of these, or of all."""
    from curvote.systems.utility.method.intervals import binomial_interval

    rng = np.random.default_rng(seed)
    true = rng.beta(2, 1, 50)
    counts = rng.binomial(100, true)
    low, high = binomial_interval(counts, 100, 0.95)
    figures = of(counts / 100, low, high, "draws")
    down, up = mean_agreement_interval(figures, sample=sample)
    return down <= (2 / 3 if sample else true.mean()) <= up


@pytest.mark.parametrize("sample", [False, True])
def test_drawn_averages_cover_and_a_sample_has_the_wider_interval(sample):
    """Of these records, and of the population that they are drawn from."""
    assert np.mean([covered(seed, sample) for seed in range(200)]) >= 0.92


def test_an_interval_of_these_records_is_none_of_a_population():
    """The twin that leaves the sampling of records out covers far too rarely."""
    rng = np.random.default_rng(0)
    hits = [
        mean_agreement_interval(of(rng.beta(2, 1, 50)), sample=False)
        for _ in range(100)
    ]
    assert np.mean([low <= 2 / 3 <= high for low, high in hits]) < 0.1
    wide = [
        mean_agreement_interval(of(rng.beta(2, 1, 200)), sample=True)
        for _ in range(100)
    ]
    assert np.mean([low <= 2 / 3 <= high for low, high in wide]) >= 0.95
    assert mean_agreement_interval(of(np.array([0.5])), sample=True) == (0.0, 1.0)


def sorted_sample(seed):
    """Say whether the interval of a file sorted by its values holds the truth."""
    values = np.sort(np.random.default_rng(seed).uniform(size=150) < 0.3)
    down, up = mean_agreement_interval(of(values.astype(float)), sample=True)
    return down <= 0.3 <= up


def test_a_sorted_file_is_a_sample_like_any_other(monkeypatch):
    """Where records keep the file's order, as in the twin, too few intervals hold."""
    seeds = range(100)
    assert np.mean([sorted_sample(seed) for seed in seeds]) >= 0.93
    monkeypatch.setattr(measurement, "random_permutation", lambda n, _: np.arange(n))
    assert np.mean([sorted_sample(seed) for seed in seeds]) < 0.8


def test_an_interval_counts_draws_and_not_what_the_model_was_asked():
    """Decoding asks at 1,000 public records once, whatever the number of draws."""
    shares = np.full(20, 0.7)
    asked = np.full(20, 1000, dtype=np.int64)
    figures = replace(of(shares, shares, shares, "draws"), queries=asked)
    ends = [
        mean_agreement_interval(replace(figures, draw_count=m), sample=False)
        for m in (50, 1000)
    ]
    few, many = (high - low for low, high in ends)
    assert few == pytest.approx(many * np.sqrt(20), rel=0.1)
