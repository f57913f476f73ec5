"""Recommendations: by figures that are made up, so that the right one is known."""

from dataclasses import replace

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.systems.utility.method.deployment import Deployment
from curvote.systems.utility.method.measurement import (
    Measurement,
    recommend,
    split_halves,
)
from curvote.systems.utility.method.scan import list_deployments, measure
from tests.utility.settings_of import people, people_known

SETTING, KNOWN = people(), people_known()
FLOOR = Deployment("withhold", 0.0, (0.0, 0.0))


def made(level, evidence="exact", right=None):
    """Return figures of records that agree ``level`` each, or an array of them."""
    each = np.broadcast_to(np.asarray(level, dtype=float), (SETTING.n,)).copy()
    half = 0.05 if evidence == "draws" else 0.0
    return Measurement(
        each,
        each - half,
        each + half,
        each if right is None else np.full(SETTING.n, right),
        evidence,
        np.ones(SETTING.n, dtype=np.int64),
        confidence=0.95 if evidence == "draws" else None,
    )


def sent(epsilon, level, name="pm_01", **how):
    """Return a deployment and its figures."""
    return Deployment(name, float(epsilon), (0.5, 0.5)), made(level, **how)


def asked(scan, **wanted):
    """Return the recommendation of `people` among made-up figures."""
    return recommend(SETTING, KNOWN, scan, **wanted)


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
    first, _ = split_halves(SETTING, KNOWN, 0)
    decoded = replace(FLOOR, read="decode")
    scan = [(FLOOR, made(0.8)), (decoded, made(np.where(first, 0.81, 0.7)))]
    assert asked([*scan, sent(1, 0.6)], epsilon=1).row.read == "raw"
    found = asked([scan[1], sent(1, 0.6)], epsilon=1)
    assert found.row.agreement == pytest.approx(np.where(first, 0.81, 0.7).mean())
    assert f"all {SETTING.n} records" in found.reason


def test_luck_on_one_half_is_not_recommended():
    """A twin that chose and showed on all records would report .9 and buy it."""
    first, second = split_halves(SETTING, KNOWN, 0)
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
    seen = [split_halves(SETTING, KNOWN, seed) for seed in range(20)]
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
    assert recommend(able, KNOWN, scan, epsilon=2).row.mechanism == "output"


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
        recommend(alone, KNOWN, [(FLOOR, made(0.5))], epsilon=1)
    with pytest.raises(UserError, match="floors"):
        asked([sent(1, 0.7)], epsilon=1)


def test_real_figures_never_fall_behind_a_floor():
    """Over totals, what is recommended agrees at least as often as every floor."""
    listed = list_deployments(SETTING, [0.5, 6.0], ["pm_01", "joint_box"])
    scan = [(each, measure(SETTING, KNOWN, each)) for each in listed]
    best = max(m.agreement.mean() for d, m in scan if d.free)
    for epsilon in (0.5, 6.0):
        found = recommend(SETTING, KNOWN, scan, epsilon=epsilon)
        every = dict(zip(map(repr, listed), (m for _, m in scan), strict=True))
        assert every[repr(found.deployment)].agreement.mean() >= best - 0.005
