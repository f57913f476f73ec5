"""Small settings that the tests of deployments share: generated people, one model."""

from dataclasses import replace
from functools import cache

import numpy as np

from curvote.systems.utility.method.deployment import make_setting
from curvote.systems.utility.method.profile import build_profile
from tests.utility import models_of

RECORDS, PUBLIC = 60, 80


@cache
def people(sensitive=(0, 5)):
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
def people_known(sensitive=(0, 5)):
    """Return what is known of `people`."""
    return build_profile(people(sensitive))


def other(**fields):
    """Return `people` with other fields, and what is known of them."""
    given = replace(people(), **fields)
    return given, build_profile(given)
