"""The arms of `direct`: what a report is made of, and the public constant beside z."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from curvote import validate
from curvote.chain.stage import Facts
from curvote.errors import UserError
from curvote.representation.direction import SQUARE, Directions

# The part of a report's squared length that is the label moment's, by arm.
SHARES = {"mean": 1.0, "joint": 0.8, "two": 0.8, "one_of": 0.8}
# Arms with other messages than one round of `PrivUnit`: protocols of their own.
PROTOCOLS = {"two": "direct_two", "one_of": "direct_one_of"}
# s is this times the length of a typical z: beside more numbers a constant must be
# larger to be seen. It has a sixth of u's energy then, little for slopes to lose.
INTERCEPT = 0.45
# A report with a second moment of more numbers would be over 20,000 long.
WIDEST = 198
# The part of the clients who report in the first of two rounds.
FIRST = 0.3
PUBLISHED = ("intercept", "share", "square")


def vectors(
    arm: str, d: int, rescale: str, intercept: float | str, n_classes: int = 2
) -> Directions:
    """Return how records become vectors; ``intercept`` is "auto" or s itself.

    Both constants were chosen on simulated data alone (docs/choosing.md). A second
    moment of more than ``WIDEST`` numbers is a UserError.
    """
    share, square = SHARES[validate.one_of(SHARES, arm=arm)], SQUARE[rescale]
    check_width(d, share)
    s = INTERCEPT * np.sqrt(d * square) if isinstance(intercept, str) else intercept
    return Directions(d, float(s), share, square, n_classes)


def protocol_of(arm: str | None) -> str:
    """Return the protocol whose messages an arm sends."""
    return PROTOCOLS.get(arm or "", "direct")


def check_width(d: int, share: float) -> None:
    """Refuse a second moment of more than ``WIDEST`` numbers."""
    if share < 1 and d > WIDEST:
        raise UserError(
            f"a report would hold a second moment of {d} numbers, {WIDEST} at most;"
            " take arm mean, or fewer numbers."
        )


def to_params(given: Directions) -> dict[str, float]:
    """Return what a task publishes of the vectors."""
    return {name: float(getattr(given, name)) for name in PUBLISHED}


def from_params(d: int, params: Mapping[str, Any], n_classes: int = 2) -> Directions:
    """Return the vectors that a task publishes; UserError: it lacks a constant."""
    missing = [name for name in PUBLISHED if name not in params]
    if missing:
        raise UserError(f"the task states no {', '.join(missing)} of its vectors.")
    named = {name: params[name] for name in PUBLISHED}
    return Directions(d, **named, n_classes=n_classes)


def handed_on(facts: Facts) -> Facts:
    """Return what decoding must know of a round of reports.

    Releases of earlier versions say nothing of their classes: they had two.
    """
    named = {name: facts[name] for name in ("d", "epsilon", "params")}
    return named | {"n_classes": facts.get("n_classes", 2)}


def given(facts: Facts) -> Directions:
    """Return the vectors of a round, from what was handed on."""
    return from_params(facts["d"], facts["params"], facts["n_classes"])
