"""Theory's word before anything is released: variances, drift, and a planner."""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = [
    "ExcessBound",
    "Expectation",
    "Lies",
    "Outlook",
    "Plan",
    "Prediction",
    "Signal",
    "UtilityPrior",
    "bound_excess",
    "expect_direct",
    "expect_votes",
    "look_ahead",
    "predict",
    "prior_from_weak",
    "recommend",
    "strengths",
]

if TYPE_CHECKING:
    from curvote.advise.direct import (
        Expectation,
        Lies,
        Signal,
        expect_direct,
        strengths,
    )
    from curvote.advise.outlook import Outlook, expect_votes, look_ahead
    from curvote.advise.planner import (
        ExcessBound,
        Plan,
        Prediction,
        bound_excess,
        predict,
        prior_from_weak,
        recommend,
    )
    from curvote.advise.prior import UtilityPrior
else:
    __getattr__ = exports(
        __name__,
        {
            "ExcessBound": "curvote.advise.planner",
            "Expectation": "curvote.advise.direct",
            "Lies": "curvote.advise.direct",
            "Outlook": "curvote.advise.outlook",
            "Plan": "curvote.advise.planner",
            "Prediction": "curvote.advise.planner",
            "Signal": "curvote.advise.direct",
            "UtilityPrior": "curvote.advise.prior",
            "bound_excess": "curvote.advise.planner",
            "expect_direct": "curvote.advise.direct",
            "expect_votes": "curvote.advise.outlook",
            "look_ahead": "curvote.advise.outlook",
            "predict": "curvote.advise.planner",
            "prior_from_weak": "curvote.advise.planner",
            "recommend": "curvote.advise.planner",
            "strengths": "curvote.advise.direct",
        },
    )
