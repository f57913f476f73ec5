"""Measurements: rows of figures with intervals, and what is recommended of them."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.learning.intervals import binomial_interval
from curvote.systems.utility.method import measurement
from curvote.systems.utility.method.deployment import Deployment
from curvote.systems.utility.method.measurement import mean_agreement_interval
from curvote.systems.utility.method.scan import list_deployments, measure
from tests.utility.settings_of import people, people_known

SETTING, KNOWN = people(), people_known()
FLOOR = Deployment("withhold", 0.0, (0.0, 0.0))
KEYS = (
    "mechanism split read epsilon delta agreement lower upper worst under_target bound"
    " claimed accuracy balanced_accuracy group evidence queries"
)


def made(level, lower=None, upper=None, evidence="exact", right=None):
    """Return figures that are made up: ``level`` of every record, or one of each."""
    each = np.full(SETTING.n, level) if np.ndim(level) == 0 else level
    half = 0.05 if evidence == "draws" else 0.0
    return measurement.Measurement(
        each,
        each - half if lower is None else lower,
        each + half if upper is None else upper,
        None if right is None else np.full(len(each), right),
        evidence,
        np.ones(len(each), dtype=np.int64),
        confidence=0.95 if evidence == "draws" else None,
    )


def test_a_row_has_exactly_the_keys_of_the_command():
    """In their order; the split by name, null for a vector mechanism."""
    deployment = Deployment("pm_01", 2.0, (0.75, 0.25))
    found = asdict(
        measurement.make_row(SETTING, deployment, measure(SETTING, KNOWN, deployment))
    )
    assert " ".join(found) == KEYS
    assert found["split"] == {"age": 0.75, "bmi": 0.25}
    joint = Deployment("joint_box", 2.0)
    figures = measure(SETTING, KNOWN, joint)
    found = asdict(measurement.make_row(SETTING, joint, figures, target=0.8))
    assert found["split"] is None
    assert found["bound"] <= found["agreement"] == found["lower"] == found["upper"]
    assert 0 <= found["worst"] <= found["agreement"]
    assert 0 < found["under_target"] <= 1


def test_groups_are_rows_that_average_to_all():
    """Every record is in one group."""
    deployment = Deployment("pm_01", 2.0, (1.0, 0.0))
    figures = measure(SETTING, KNOWN, deployment)
    every, few, many = measurement.make_rows(SETTING, deployment, figures)
    assert (every.group, few.group, many.group) == (None, "few", "many")
    n = len(SETTING.records)
    assert every.agreement == pytest.approx(
        (20 * few.agreement + (n - 20) * many.agreement) / n
    )
    assert few.worst >= every.worst == min(few.worst, many.worst)


def test_balanced_accuracy_is_the_mean_over_labels():
    """And accuracy the mean over records."""
    deployment = Deployment("withhold", 0.0, (0.0, 0.0))
    found = measurement.make_row(
        SETTING, deployment, measure(SETTING, KNOWN, deployment)
    )
    right = KNOWN.withheld == SETTING.labels
    assert found.accuracy == pytest.approx(right.mean())
    each = [right[SETTING.labels == label].mean() for label in (0, 1)]
    assert found.balanced_accuracy == pytest.approx(np.mean(each))


def test_a_bracket_is_averaged():
    """The mean lies between the means of the ends."""
    middle = np.array([0.2, 0.8])
    found = mean_agreement_interval(
        made(middle, middle - 0.1, middle + 0.1, "bracket"), sample=False
    )
    assert found == pytest.approx((0.4, 0.6))


def covered(seed, sample):
    """Say whether intervals of drawn records cover the truth of these, or of all."""
    rng = np.random.default_rng(seed)
    true = rng.beta(2, 1, 50)
    counts = rng.binomial(100, true)
    low, high = binomial_interval(counts, 100, 0.95)
    figures = made(counts / 100, low, high, "draws")
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
        mean_agreement_interval(made(rng.beta(2, 1, 50)), sample=False)
        for _ in range(100)
    ]
    assert np.mean([low <= 2 / 3 <= high for low, high in hits]) < 0.1
    wide = [
        mean_agreement_interval(made(rng.beta(2, 1, 200)), sample=True)
        for _ in range(100)
    ]
    assert np.mean([low <= 2 / 3 <= high for low, high in wide]) >= 0.95
    assert mean_agreement_interval(made(np.array([0.5])), sample=True) == (0.0, 1.0)


def sorted_sample(seed):
    """Say whether the interval of a file sorted by its values holds the truth."""
    values = np.sort(np.random.default_rng(seed).uniform(size=150) < 0.3)
    down, up = mean_agreement_interval(made(values.astype(float)), sample=True)
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
    figures = replace(made(shares, shares, shares, "draws"), queries=asked)
    ends = [
        mean_agreement_interval(replace(figures, draw_count=m), sample=False)
        for m in (50, 1000)
    ]
    few, many = (high - low for low, high in ends)
    assert few == pytest.approx(many * np.sqrt(20), rel=0.1)


def sent(epsilon, level, name="pm_01", **how):
    """Return a deployment and its figures."""
    return Deployment(name, float(epsilon), (0.5, 0.5)), made(level, **how)


def asked(scan, **wanted):
    """Return the recommendation of `people` among made-up figures."""
    return measurement.recommend(SETTING, KNOWN, scan, **wanted)


def test_the_least_total_is_found_where_agreement_is_not_monotone():
    """Bisection between 1 and 8 would look at 4 first, and end at 6 or 8."""
    scan = [(FLOOR, made(0.5)), sent(1, 0.6), sent(2, 0.85), sent(4, 0.7), sent(8, 0.9)]
    found = asked(scan, target=0.8)
    assert found.row.epsilon == 2.0
    assert found.row.agreement == pytest.approx(0.85)
    assert "total epsilon 2" in found.reason


def test_nothing_is_sent_where_a_floor_is_as_good():
    """A floor costs nothing, so what equals it is not bought either."""
    scan = [(FLOOR, made(0.8)), sent(2, 0.8), sent(1, 0.75)]
    found = asked(scan, epsilon=2)
    assert (found.row.mechanism, found.row.epsilon) == ("withhold", 0.0)
    assert found.reason.startswith("Send nothing")
    assert asked(scan, target=0.79).row.epsilon == 0.0
    assert asked([(FLOOR, made(0.79)), *scan[1:]], epsilon=2).row.epsilon == 2.0


def test_of_floors_the_best_on_all_records_is_taken():
    """One that is lucky on the half that chooses is not."""
    first, _ = measurement.split_halves(SETTING, KNOWN, 0)
    decoded = replace(FLOOR, read="decode")
    scan = [(FLOOR, made(0.8)), (decoded, made(np.where(first, 0.81, 0.7)))]
    assert asked([*scan, sent(1, 0.6)], epsilon=1).row.read == "raw"
    found = asked([scan[1], sent(1, 0.6)], epsilon=1)
    assert found.row.agreement == pytest.approx(np.where(first, 0.81, 0.7).mean())
    assert f"all {SETTING.n} records" in found.reason


def test_luck_on_one_half_is_not_recommended():
    """A twin that chose and showed on all records would report .9 and buy it."""
    first, second = measurement.split_halves(SETTING, KNOWN, 0)
    lucky = np.where(first, 0.95, 0.3)
    floor = (FLOOR, made(0.6))
    assert lucky.mean() > 0.6
    found = asked([floor, sent(2, lucky)], epsilon=2)
    assert found.row.epsilon == 0.0
    found = asked([floor, sent(2, lucky), sent(4, 0.9)], target=0.85)
    assert found.row.epsilon == 4.0
    spread = np.where(first, 0.95, 0.7)
    assert asked([floor, sent(2, spread)], epsilon=2).row.agreement == pytest.approx(
        0.7
    )
    assert second.sum() == SETTING.n // 2


def test_halves_are_alike_in_what_the_floors_do():
    """Floors do alike on both, whatever the seed; and the seed decides who is where."""
    right = KNOWN.withheld == KNOWN.clean
    seen = [measurement.split_halves(SETTING, KNOWN, seed) for seed in range(20)]
    for first, second in seen:
        assert np.all(first ^ second)
        assert abs(right[first].mean() - right[second].mean()) < 0.2
    gaps = [abs(right[a].mean() - right[b].mean()) for a, b in seen]
    rng = np.random.default_rng(0)
    plain = [
        abs(right[order[:30]].mean() - right[order[30:]].mean())
        for order in (rng.permutation(SETTING.n) for _ in range(200))
    ]
    assert np.mean(gaps) < 0.7 * np.mean(plain)
    assert not np.array_equal(seen[0][0], seen[1][0])


def test_no_total_reaches_what_is_too_much():
    """All keys are there, and null."""
    found = asked([(FLOOR, made(0.5)), sent(8, 0.9)], target=0.95)
    told = found.as_json()
    assert found.row is None
    assert told["epsilon"] is None
    assert "No total epsilon up to 8" in told["reason"]
    assert set(told) == {*asked([(FLOOR, made(0.5))], epsilon=1).as_json()}


def test_answers_by_randomised_response_need_clients_that_run_the_model():
    """It is the best by far, and recommended only where it can be done."""
    scan = [(FLOOR, made(0.5)), sent(2, 0.7), (Deployment("output", 2.0), made(0.9))]
    assert asked(scan, epsilon=2).row.mechanism == "pm_01"
    able = replace(SETTING, client_side=True)
    assert measurement.recommend(able, KNOWN, scan, epsilon=2).row.mechanism == "output"


def test_a_share_of_records_is_another_target_than_the_average():
    """Nine of ten at .8 are not an average of .8."""
    order = np.argsort(np.random.default_rng(0).random(SETTING.n))
    uneven = np.where(order < SETTING.n // 4, 0.2, 1.0)
    scan = [(FLOOR, made(0.5)), sent(1, uneven), sent(4, 0.81)]
    assert asked(scan, target=0.75).row.epsilon == 1.0
    assert asked(scan, target=0.8, share=0.9).row.epsilon == 4.0


def test_drawn_records_count_where_they_are_sure_to_be():
    """A drawn record has reached .8 where its interval lies above."""
    scan = [
        (FLOOR, made(0.5)),
        sent(1, 0.82, evidence="draws"),
        sent(2, 0.9, evidence="draws"),
    ]
    found = asked(scan, target=0.8, share=0.9)
    assert found.row.epsilon == 2.0


def test_accuracy_is_a_metric_of_its_own():
    """The best for the label may agree less."""
    scan = [
        (FLOOR, made(0.5, right=0.5)),
        sent(2, 0.9, right=0.6),
        sent(2, 0.7, name="sw_01", right=0.8),
    ]
    assert asked(scan, epsilon=2).row.mechanism == "pm_01"
    assert asked(scan, epsilon=2, metric="accuracy").row.mechanism == "sw_01"


@pytest.mark.parametrize(
    ("wanted", "match"),
    [
        ({}, "one of target and epsilon"),
        ({"target": 0.8, "epsilon": 1}, "one of target and epsilon"),
        ({"target": 1.0}, "target"),
        ({"target": float("nan")}, "target"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": 1, "metric": "utility"}, "metric"),
        ({"target": 0.8, "share": 0}, "share"),
    ],
)
def test_what_is_no_wish_is_refused(wanted, match):
    """One message."""
    with pytest.raises(UserError, match=match):
        asked([(FLOOR, made(0.5)), sent(1, 0.7)], **wanted)


def test_one_record_is_no_population():
    """A single client must not choose by its own figure."""
    alone = replace(SETTING, records=SETTING.records[:1])
    with pytest.raises(UserError, match="population"):
        measurement.recommend(alone, KNOWN, [(FLOOR, made(0.5))], epsilon=1)
    with pytest.raises(UserError, match="floors"):
        asked([sent(1, 0.7)], epsilon=1)


def test_real_figures_never_fall_behind_a_floor():
    """Over totals, what is recommended agrees at least as often as every floor."""
    listed = list_deployments(SETTING, [0.5, 6.0], ["pm_01", "joint_box"])
    scan = [(each, measure(SETTING, KNOWN, each)) for each in listed]
    best = max(m.agreement.mean() for d, m in scan if d.free)
    for epsilon in (0.5, 6.0):
        found = measurement.recommend(SETTING, KNOWN, scan, epsilon=epsilon)
        every = dict(zip(map(repr, listed), (m for _, m in scan), strict=True))
        assert every[repr(found.deployment)].agreement.mean() >= best - 0.005
