"""What a server accepts from another: anything may arrive, nothing may break it."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvote.systems.federated import stages

HALVES = np.array([0.5, 0.5])


def offer(server: int, *values: float) -> stages.Offer:
    """Return an offer with these coefficients and no intercept."""
    return stages.Offer(server, np.array(values), 0.0, HALVES)


OWN = offer(0, 1.0, -2.0)
GOOD = [offer(k, 1.0 + k, 2.0).to_json() for k in (1, 2, 3)]


def _reasons(dropped: list[stages.DroppedOffer]) -> dict[int | None, str]:
    return {drop.server: drop.reason for drop in dropped}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"coef": [float("nan"), 1.0]}, "not finite"),
        ({"intercept": float("inf")}, "not finite"),
        ({"coef": [10**400, 1]}, "not finite"),
        ({"coef": [1.0, 2.0, 3.0]}, "3 coefficients instead of 2"),
        ({"coef": []}, "0 coefficients"),
        ({"coef": ["1", "2"]}, "no number"),
        ({"coef": [True, 1.0]}, "no number"),
        ({"coef": [[1.0, 2.0]]}, "no number"),
        ({"coef": {"0": 1.0}}, "no number"),
        ({"intercept": None}, "no number"),
        ({"weights": [1.5, -0.5]}, "no distribution"),
        ({"weights": [1e308, 1e308]}, "no distribution"),
        ({"weights": []}, "no distribution"),
        ({"weights": None}, "no number"),
        ({"coef": [0.0, 0.0]}, "zero"),
        ({"coef": [1e9, 0.0]}, "over 1000 times"),
        ({"coef": [1e308, 1e308]}, "over 1000 times"),
        ({"coef": [1e-9, 0.0]}, "below a thousandth"),
        ({"server": 2}, "nothing"),
        ({"server": 99}, "nothing"),
        ({"server": "1"}, "nothing"),
    ],
)
def test_a_bad_offer_is_dropped_with_its_reason(
    changes: dict[str, Any], reason: str
) -> None:
    """The three others are accepted as if it had not come."""
    accepted, dropped = stages.accept_offers([*GOOD[1:], GOOD[0] | changes], OWN, 4)
    assert [each.server for each in accepted] == [0, 2, 3]
    assert reason in _reasons(dropped)[1]
    expected, _ = stages.accept_offers(GOOD[1:], OWN, 4)
    for one, other in zip(accepted, expected, strict=True):
        assert one.to_json() == other.to_json()


@pytest.mark.parametrize("fault", [name for name in stages.FAULTS if name != "silent"])
def test_every_fault_is_caught_after_a_trip_over_the_wire(fault: str) -> None:
    """The faults of a study are such that JSON carries them and a server drops them."""
    offers = [offer(k, 1.0, 1.0 + k) for k in (1, 2, 3)]
    wire = json.dumps(list(stages.apply_faults(offers, {2: fault})))
    accepted, dropped = stages.accept_offers(json.loads(wire), OWN, 4)
    assert [each.server for each in accepted] == [0, 1, 3]
    assert list(_reasons(dropped)) == [2]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
NUMBERS = st.lists(st.floats() | st.integers() | st.booleans(), max_size=3)
OFFERS = st.fixed_dictionaries(
    {"server": st.integers(-1, 4) | ANYTHING},
    optional={
        "coef": NUMBERS | ANYTHING,
        "intercept": st.floats() | ANYTHING,
        "weights": st.just([0.5, 0.5]) | NUMBERS | ANYTHING,
    },
)


@given(st.lists(OFFERS | ANYTHING, max_size=6))
def test_whatever_arrives_the_server_goes_on(received: list[Any]) -> None:
    """No exception; the own offer as it is, the others sound, everybody accounted."""
    accepted, dropped = stages.accept_offers(received, OWN, 4)
    assert accepted[0] is OWN
    lengths = [each.length for each in accepted]
    assert all(len(each.coef) == 2 and 0 < each.length < np.inf for each in accepted)
    assert max(lengths) <= 1e4 * min(lengths) * (1 + 1e-9)
    kept = [each.server for each in accepted]
    assert kept == sorted(set(kept))
    named = {drop.server for drop in dropped} | set(kept)
    assert set(range(4)) <= named
    assert all(drop.reason for drop in dropped)


@pytest.mark.parametrize("own", [1e-9, 1e9])
def test_of_two_servers_neither_takes_over(own: float) -> None:
    """The own offer is kept however odd it is; a foreign one that far off is not."""
    strange = offer(0, own, own)
    accepted, dropped = stages.accept_offers([GOOD[0]], strange, 2)
    assert [each.server for each in accepted] == [0]
    assert "median" in _reasons(dropped)[1]


def test_the_first_word_of_a_server_stands() -> None:
    """A second offer in the same name, the own one included, changes nothing."""
    again = GOOD[0] | {"coef": [5.0, 5.0]}
    accepted, dropped = stages.accept_offers([*GOOD, again, OWN.to_json()], OWN, 4)
    assert accepted[1].coef.tolist() == GOOD[0]["coef"]
    assert [(d.server, d.reason) for d in dropped] == [
        (1, "sent more than one offer"),
        (0, "sent more than one offer"),
    ]


@pytest.mark.parametrize("factor", [1.5, 9.0])
def test_offers_of_usual_length_stay_as_they_are(factor: float) -> None:
    """The average is over unnormalised coefficients, as in the paper."""
    usual = [offer(k, 3.0, 4.0).to_json() for k in range(1, 5)]
    long = offer(5, 3 * factor, 4 * factor)
    accepted, _ = stages.accept_offers([*usual, long.to_json()], offer(0, 3.0, 4.0), 6)
    np.testing.assert_array_equal(accepted[5].coef, long.coef)


@pytest.mark.parametrize("factor", [11.0, 900.0])
def test_a_long_offer_cannot_own_the_average(factor: float) -> None:
    """It is cut to ten times the median length; its decisions are the same."""
    usual = [offer(k, 3.0, 4.0).to_json() for k in range(1, 5)]
    long = stages.Offer(5, factor * np.array([3.0, -4.0]), 1e-3 * factor, HALVES)
    accepted, dropped = stages.accept_offers(
        [*usual, long.to_json()], offer(0, 3.0, 4.0), 6
    )
    assert not dropped
    assert accepted[5].length == pytest.approx(50, rel=1e-9)
    cut = [*accepted[5].coef, accepted[5].intercept]
    np.testing.assert_allclose(
        np.array(cut) * accepted[5].coef[0] ** -1, [1, -4 / 3, 1e-3 / 3]
    )


def test_an_absurd_offer_does_not_move_the_limit() -> None:
    """The median that limits the others is that of the accepted offers."""
    lengths = [1.0, 2.0, 30.0]
    usual = [offer(k + 1, x, 0.0).to_json() for k, x in enumerate(lengths)]
    alone, _ = stages.accept_offers(usual, offer(0, 1.5, 0.0), 5)
    huge = offer(4, 1e9, 0.0).to_json()
    beside, _ = stages.accept_offers([huge, *usual], offer(0, 1.5, 0.0), 5)
    assert [each.to_json() for each in beside] == [each.to_json() for each in alone]
    assert alone[3].length < 30


@given(st.floats(1e-6, 1e6))
def test_the_unit_of_length_does_not_matter(unit: float) -> None:
    """Who is accepted depends on the offers' lengths relative to each other."""
    lengths = [1.0, 0.002, 30.0, 2000.0, 1.5]
    scaled = [offer(k + 1, unit * length, 0.0) for k, length in enumerate(lengths)]
    own = offer(0, unit, 0.0)
    accepted, _ = stages.accept_offers([each.to_json() for each in scaled], own, 6)
    assert [each.server for each in accepted] == [0, 1, 2, 3, 5]
