"""Definitions of ``as_published``, which match MRMA's printed tables.

They exist to check those tables; each is stated beside the right one where it is used.
"""

from __future__ import annotations

from typing import Any

from curvote.representation.basis import IDENTITY

Values = dict[str, Any]

# The printed rows of table A.1 that only an inconsistent slope explains.
INCONSISTENT_LEARNERS = ("logistic",)


def expand_published(values: Values) -> Values:
    """Return a configuration with ``as_published`` written out.

    Utility clipped to [0, 1] and classifiers weighted by its distance from 1/2; scores
    as the tables define them; twice the noise that is stated for the histogram; and a
    slope from coefficients without the inverse Gram matrix, judged on raw curves.
    """
    if not values.get("as_published"):
        return values
    aggregate = values.get("aggregate", {}) | {"weights": "distance"}
    overrides = {"aggregate": aggregate, "report": {"definitions": "published"}}
    return (
        values
        | overrides
        | {"published": {"histogram": True}, "project": _published_projection(values)}
    )


def _published_projection(values: Values) -> Values:
    """Return the representation by which the paper judged: raw curves.

    Method I takes the fitted numbers b for the slope's coefficients, so it judges
    b'Gc = sum_k b_k <x, phi_k> where b'c was fitted.
    """
    project: Values = values["project"]
    learner = (values["learner"] or {}).get("name")
    if project["basis"] == IDENTITY or learner is None:
        return project
    inconsistent = learner in INCONSISTENT_LEARNERS
    return project | {"judge": "inner_products" if inconsistent else "coefficients"}
