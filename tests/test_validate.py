"""Numbers of any kind are checked: what is no finite number is a UserError."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.privacy import ZCDP, Budget, label_budget_share

HUGE = [10**400, -(10**400), 10**5000]


@pytest.mark.parametrize("value", HUGE, ids=["big", "negative", "endless"])
@pytest.mark.parametrize(
    "check",
    [
        lambda value: validate.positive(epsilon=value),
        lambda value: validate.fraction(share=value),
        lambda value: validate.at_least(1, count=value),
        lambda value: validate.one_of(("a", "b"), name=value),
        lambda value: validate.finite(values=[0.5, value]),
        Budget,
        lambda value: Budget(1.0, value),
        lambda value: Budget(1.0).part(value),
        lambda value: Budget(1.0).split(value),
        lambda value: Budget(1.0).each(value),
        ZCDP,
        lambda value: label_budget_share(value, 4),
    ],
)
def test_a_number_that_no_float_holds_is_refused(
    check: Callable[[Any], object], value: int
) -> None:
    """Python's whole numbers have no end; nor has the error's message."""
    with pytest.raises(UserError) as refused:
        check(value)
    assert len(str(refused.value)) < 200


def test_what_an_error_shows_is_plain_and_short() -> None:
    """No control characters for a terminal, no half surrogates, no megabytes."""
    assert validate.format_value("a\x1b[31m\ud800") == r"'a\x1b[31m\ud800'"
    assert len(validate.format_value("x" * 10**6)) < 70
    assert validate.format_value(10**5000) == "too large to be shown"
    assert validate.format_value(0.5) == "0.5"


@pytest.mark.parametrize("value", [1, 1.0, np.int64(1), np.float32(1)])
def test_whole_numbers_of_every_kind_pass(value: Any) -> None:
    """Of Python and NumPy, written as integers or not; a boolean is none."""
    assert validate.at_least(1, count=value) == 1
    assert validate.positive(epsilon=value) == 1.0
    with pytest.raises(UserError):
        validate.at_least(1, count=True)


def test_where_nothing_is_known_nothing_is_listed() -> None:
    """A hint without names would end in `Known: .`."""
    with pytest.raises(UserError, match=r"^name is 'x'\.$"):
        validate.one_of((), name="x")
