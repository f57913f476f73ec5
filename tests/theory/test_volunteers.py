"""What volunteers are worth before anybody is asked: formula and expectations agree."""

from __future__ import annotations

import json

import pytest

from curvote.advise.direct import Signal, expect_direct
from curvote.advise.outlook import expect_alone, expect_joined, make_offer
from curvote.base.errors import UserError
from curvote.systems.direct.system import RECORD_WORTH, volunteer_worth

STRONG = Signal(0.1)


def test_worth_grows_with_volunteers_numbers_and_classes() -> None:
    """1,800 for fifty records of five numbers."""
    assert volunteer_worth(50, 5) == RECORD_WORTH * 6 * 50 == 1800
    assert volunteer_worth(100, 5) == 2 * volunteer_worth(50, 5)
    assert volunteer_worth(50, 5, 5) == 4 * volunteer_worth(50, 5)
    with pytest.raises(UserError):
        volunteer_worth(50, 0)


def test_what_is_worth_the_same_errs_about_alike() -> None:
    """Reports of N epsilon^2 = 6 p n_v and n_v volunteers, within some points."""
    alone = expect_alone(50, 4, STRONG).error
    reports = expect_direct(1500, 4, 1.0, STRONG).error
    assert abs(alone - reports) < 0.04


def test_the_join_goes_from_volunteers_to_reports() -> None:
    """At a small epsilon it is the one, at a large one the other, never far above."""
    alone = expect_alone(50, 4, STRONG).error
    for epsilon, other in (
        (0.05, alone),
        (8.0, expect_direct(3000, 4, 8.0, STRONG).error),
    ):
        assert expect_joined(50, 3000, 4, epsilon, STRONG).error < other + 0.01
    both = expect_joined(50, 3000, 4, 1.0, STRONG).error
    assert both < min(alone, expect_direct(3000, 4, 1.0, STRONG).error)


def test_an_offer_says_which_part_tells_more() -> None:
    """By the formula, at each epsilon; what is worth adds up."""
    told = make_offer(50, 3000, 5, [0.5, 1.0], {"strong": STRONG}).document()
    json.dumps(told)
    assert told["worth"] == 1800
    assert [row["better"] for row in told["rows"]] == ["volunteers", "reports"]
    assert [row["together"] for row in told["rows"]] == [2550, 4800]
