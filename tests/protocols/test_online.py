"""Votes that keep coming: updating is computing anew, forgetting is a weighted mean."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.learning.online import (
    Arrival,
    Ensemble,
    IncumbentVotes,
    OnlineRule,
    Roster,
    add_arrival,
    add_votes,
    build_ensemble,
    extend_roster,
    has_dropped,
    incumbent_row,
    start_roster,
)
from curvote.learning.votes import (
    average_classifiers,
    averaging_weights,
    estimate_utility,
    reversal_mask,
    reversed_utility,
)

Counts = list[tuple[NDArray[np.int64], NDArray[np.int64]]]
RULE = OnlineRule(keep=0.75, cutoff=0.6, when_none_pass="soft")
EXACT: dict[str, Any] = {"rtol": 0, "atol": 1e-12}


@st.composite
def votes(draw: st.DrawFn, most: int = 40) -> Counts:
    """Draw arrivals of votes (n [B], positive [B]) on 1 to 6 candidates."""
    b, arrivals = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = rng.integers(0, draw(st.integers(1, most)) + 1, (arrivals, b))
    n[:, 0] += 1  # somebody has votes
    return list(zip(n, rng.binomial(n, rng.random(b)), strict=True))


def fresh(b: int, seed: int = 0) -> Roster:
    """Return ``b`` candidates without votes."""
    rng = np.random.default_rng(seed)
    return start_roster(rng.normal(size=(b, 3)), rng.normal(size=b))


def after(arrivals: Counts, rule: OnlineRule = RULE) -> Roster:
    """Return the roster after all arrivals."""
    roster = fresh(len(arrivals[0][0]))
    for n, positive in arrivals:
        roster = add_arrival(roster, n, positive, rule)
    return roster


def batch(roster: Roster, n: Any, positive: Any, rule: OnlineRule) -> dict[str, Any]:
    """Return what the batch functions say of all votes at once."""
    utility = estimate_utility(positive, n, rule.keep)
    flipped = reversal_mask(positive, n)
    worth = reversed_utility(utility.value, flipped)
    how = rule.cutoff, rule.when_none_pass, rule.weights
    weight, none_passed = averaging_weights(worth, *how)
    turned = np.where(flipped, -1, 1) * weight
    coef, intercept = average_classifiers(roster.coef, roster.intercept, turned)
    return {
        "utility": utility.value,
        "standard_error": utility.standard_error,
        "reversed": flipped,
        "weight": weight,
        "none_passed": none_passed,
        "coef": coef,
        "intercept": intercept,
    }


# ------------------------------------------------------------- updating is exact
rules = st.builds(
    OnlineRule,
    keep=st.floats(0.6, 1),
    cutoff=st.sampled_from([0.5, 0.6, 0.9]),
    when_none_pass=st.sampled_from(["soft", "best", "uniform"]),
    weights=st.sampled_from(["excess", "distance"]),
)


@given(votes(), rules)
def test_updating_equals_computing_anew(arrivals: Counts, rule: OnlineRule) -> None:
    """After any arrivals, all that is known equals the batch way's, to 1e-12."""
    arrivals = [(n + 1, positive) for n, positive in arrivals]
    roster = after(arrivals, rule)
    n, positive = (sum(counts) for counts in zip(*arrivals, strict=True))
    found = roster.history[-1].ensemble
    for name, expected in batch(roster, n, positive, rule).items():
        np.testing.assert_allclose(getattr(found, name), expected, **EXACT)
    assert len(roster.history) == len(arrivals)


@given(votes(), st.randoms(use_true_random=False))
def test_neither_order_nor_split_of_the_votes_matters(
    arrivals: Counts, random: Any
) -> None:
    """The same votes, one by one in any order, leave bit for bit the same roster."""
    one_by_one = []
    for n, positive in arrivals:
        for b, (all_, right) in enumerate(zip(n, positive, strict=True)):
            unit = np.arange(len(n)) == b
            one_by_one += [(unit * 1, unit * int(i < right)) for i in range(all_)]
    random.shuffle(one_by_one)
    whole, pieces = fresh(len(arrivals[0][0])), fresh(len(arrivals[0][0]))
    for given_ in arrivals:
        whole = add_votes(whole, *given_)
    for given_ in one_by_one:
        pieces = add_votes(pieces, *given_)
    one, other = build_ensemble(whole, RULE), build_ensemble(pieces, RULE)
    for name in Ensemble.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@given(votes(most=4))
def test_a_tie_keeps_the_candidate_however_it_came_about(arrivals: Counts) -> None:
    """As many votes for as against, over any arrivals, is no reason to reverse."""
    mirrored = arrivals + [(n, n - positive) for n, positive in arrivals]
    assert not after(mirrored).history[-1].ensemble.reversed.any()


def test_a_candidate_without_votes_counts_for_nothing() -> None:
    """New candidates wait for their first votes; the others stand as they stood."""
    before = after([(np.array([9, 4]), np.array([8, 1]))])
    more = extend_roster(before, np.full((2, 3), 7.0), [7.0, 7.0])
    old, new = build_ensemble(before, RULE), build_ensemble(more, RULE)
    np.testing.assert_array_equal(new.weight, [*old.weight, 0, 0])
    np.testing.assert_allclose(new.coef, old.coef, **EXACT)
    np.testing.assert_array_equal(new.utility[2:], [0.5, 0.5])
    assert (new.standard_error[2:] == 0.5 / (2 * RULE.keep - 1)).all()
    np.testing.assert_array_equal(more.birth, [0, 0, 1, 1])
    voted = add_arrival(more, [0, 0, 6, 0], [0, 0, 6, 0], RULE)
    assert voted.history[-1].added == 2
    assert voted.history[-1].ensemble.weight[2] > old.weight.min()


# ------------------------------------------------------------------- forgetting
@given(votes(), st.floats(0.05, 1))
def test_forgetting_is_a_weighted_mean(arrivals: Counts, memory: float) -> None:
    """A vote of age k counts memory^k, in the estimate and in its standard error."""
    arrivals = [(n + 1, positive) for n, positive in arrivals]
    rule = OnlineRule(keep=0.75, cutoff=0.6, when_none_pass="soft", memory=memory)
    found = after(arrivals, rule).history[-1].ensemble
    fade = memory ** np.arange(len(arrivals))[::-1][:, None]
    n, positive = (np.array(counts) for counts in zip(*arrivals, strict=True))
    share = (fade * positive).sum(axis=0) / (fade * n).sum(axis=0)
    np.testing.assert_allclose(found.utility, (share - 0.25) / 0.5, **EXACT)
    spread = share * (1 - share) * (fade**2 * n).sum(axis=0)
    error = np.sqrt(np.maximum(spread, 0)) / (fade * n).sum(axis=0) / 0.5
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-9, atol=1e-7)


def test_the_standard_error_of_faded_votes_is_the_spread_of_the_estimate() -> None:
    """20,000 repetitions spread as the mean stated error says (5 standard errors)."""
    rng = np.random.default_rng(5)
    b, n, right = 20_000, 60, 0.65
    roster = start_roster(np.ones((b, 1)), np.zeros(b))
    for _ in range(4):
        roster = add_votes(roster, np.full(b, n), rng.binomial(n, right, b), 0.5)
    found = build_ensemble(roster, RULE)
    spread, stated = found.utility.std(), np.sqrt((found.standard_error**2).mean())
    assert abs(spread / stated - 1) < 5 / np.sqrt(2 * b) + 0.01
    assert abs(found.utility.mean() - 0.8) < 5 * spread / np.sqrt(b)


# ------------------------------------------------------------- has utility dropped
def seen(*readings: tuple[int, int], added: int = 0) -> list[Arrival]:
    """Return a history in which candidates came first and again in row ``added``."""
    nothing = fresh(1)
    found = build_ensemble(add_votes(nothing, [1], [1]), RULE)
    return [
        Arrival(1, int(t in (0, added)), IncumbentVotes(*reading), found)
        for t, reading in enumerate(readings)
    ]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_false_alarms_are_as_rare_as_stated(share: float) -> None:
    """Over all arrivals together, also where the incumbent did worse before."""
    rng, alarms = np.random.default_rng(2), 0
    for _ in range(200):
        rates = np.linspace(share - 0.15, share, 12)
        readings = [(40, int(k)) for k in rng.binomial(40, rates)]
        history = seen((0, 0), *readings)
        alarms += any(has_dropped(history[:t], 0.1) for t in range(2, 14))
    assert alarms / 200 <= 0.1


def test_a_drop_is_seen() -> None:
    """400 votes of which 40 instead of 70 percent are right are rarely overlooked."""
    rng = np.random.default_rng(1)
    pairs = rng.binomial(400, [0.7, 0.4], (200, 2))
    assert all(has_dropped(seen((0, 0), (400, i), (400, j))) for i, j in pairs)
    assert not any(has_dropped(seen((0, 0), (400, j), (400, i))) for i, j in pairs)


def test_what_was_read_before_candidates_were_added_is_no_measure() -> None:
    """The first reading after an addition starts anew; so does the very first one."""
    high, low = (400, 300), (400, 150)
    assert not has_dropped(seen((0, 0)))
    assert not has_dropped(seen((0, 0), low))
    assert has_dropped(seen((0, 0), high, low))
    assert not has_dropped(seen((0, 0), high, low, added=2))
    assert not has_dropped(seen((0, 0), high, low, low, added=2))
    assert has_dropped(seen((0, 0), low, low, high, low, added=2))


def test_the_incumbent_stays_in_office_until_candidates_are_added() -> None:
    """All readings that are compared judge one classifier."""
    assert [incumbent_row(seen(*[(0, 0)] * t)) for t in (1, 2, 5)] == [0, 0, 0]
    assert [incumbent_row(seen(*[(0, 0)] * t, added=2)) for t in (2, 3, 5)] == [0, 2, 2]


def test_the_incumbents_accuracy_is_that_of_any_classifier() -> None:
    """Equation (8) for its votes; without votes, 1/2 with the error of one vote."""
    expected = estimate_utility([30], [40], 0.75)
    found = IncumbentVotes(40, 30).accuracy(0.75)
    assert found == (expected.value[0], expected.standard_error[0])
    assert IncumbentVotes().accuracy(0.75) == (0.5, 1.0)


# --------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("n", "positive", "message"),
    [
        ([3, 3], [1, 4], "candidate 1 has 4 positive of 3"),
        ([3, 3], [1, -1], "candidate 1 has -1"),
        ([3, 0.5], [1, 0], "must be whole"),
        ([3], [1], "one number for each candidate"),
        ([3, np.nan], [1, 0], "NaN"),
    ],
)
def test_impossible_votes_are_refused(n: Any, positive: Any, message: str) -> None:
    """Counts are whole, within 0..n, and there is one for each candidate."""
    with pytest.raises(UserError, match=message):
        add_votes(fresh(2), n, positive)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory": 0.0}, "memory is 0"),
        ({"memory": np.nan}, "memory is nan"),
        ({"memory": 1.1}, "memory is 1.1"),
        ({"keep": 0.5}, "keep is 0.5"),
        ({"error": 0.0}, "error is 0"),
        ({"when_none_pass": "softly"}, "Did you mean 'soft'"),
        ({"weights": "distances"}, "Did you mean 'distance'"),
    ],
)
def test_impossible_rules_are_refused(change: Any, message: str) -> None:
    """Each setting says what it may be."""
    with pytest.raises(UserError, match=message):
        OnlineRule(**{"keep": 0.75, "cutoff": 0.6, "when_none_pass": "soft"} | change)


def test_candidates_of_another_kind_are_refused() -> None:
    """One d for all, one intercept each, some candidate, and some vote."""
    with pytest.raises(UserError, match="coef has 2 columns"):
        extend_roster(fresh(2), np.ones((1, 2)), [0.0])
    with pytest.raises(UserError, match="not empty"):
        start_roster(np.ones((0, 2)), [])
    with pytest.raises(UserError, match="no candidate has a vote"):
        build_ensemble(fresh(2), RULE)
    with pytest.raises(UserError, match="4 of 3 votes"):
        IncumbentVotes(3, 4)
