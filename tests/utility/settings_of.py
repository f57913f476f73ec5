"""Small settings that the tests of deployments share: generated people, one model."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from curvote.systems.utility.method.deployment import Setting, make_setting
from curvote.systems.utility.method.profile import Profile, build_profile
from tests.utility import models_of

RECORDS, PUBLIC = 60, 80


@cache
def people(sensitive: tuple[int, ...] = (0, 5)) -> Setting:
    """Return a logistic regression asked about people, with public people beside.

    Age, glucose and body mass index (0, 4, 5) can be sensitive.
    """
    data = models_of.stroke_like(400)
    context, volunteers = slice(0, RECORDS), slice(RECORDS, RECORDS + PUBLIC)
    ends = {0: (0, 100), 4: (50, 300), 5: (12, 60)}
    return make_setting(
        models_of.logistic(),
        data.X[context],
        sensitive=sensitive,
        bounds=[ends[place] for place in sensitive],
        features=data.names,
        labels=data.y[context],
        groups=np.where(np.arange(RECORDS) < 20, "few", "many"),
        public=data.X[volunteers],
        train=(data.X[140:], data.y[140:]),
    )


@cache
def people_known(sensitive: tuple[int, ...] = (0, 5)) -> Profile:
    """Return what is known of `people`."""
    return build_profile(people(sensitive))


def other(**fields: Any) -> tuple[Setting, Profile]:
    """Return `people` with other fields, and what is known of them."""
    given = replace(people(), **fields)
    return given, build_profile(given)
