"""What ``as_published`` means: the definitions that match MRMA's printed tables.

They exist to check those tables; each is stated beside the right one where it is used.
"""

from __future__ import annotations

from typing import Any

from curvote.representation.basis import IDENTITY

Values = dict[str, Any]

# The printed rows of table A.1 that only an inconsistent slope explains.
METHOD_I = ("logistic",)


def spelled(values: Values) -> Values:
    """Return a configuration in which ``as_published`` is spelled out.

    Utility clipped to [0, 1] and classifiers weighted by its distance from 1/2; scores
    as the tables define them; twice the noise that is stated for the histogram; and a
    slope from coefficients without the inverse Gram matrix, judged on raw curves.
    """
    if not values.get("as_published"):
        return values
    aggregate = values.get("aggregate", {}) | {"weights": "distance"}
    own = {"aggregate": aggregate, "report": {"definitions": "published"}}
    return values | own | {"published": {"histogram": True}, "project": _judged(values)}


def _judged(values: Values) -> Values:
    """Return the representation as the paper judged it (its section 5.2): raw curves.

    Method I takes the fitted numbers b for the slope's coefficients, so it judges
    b'Gc = sum_k b_k <x, phi_k> where b'c was fitted.
    """
    project: Values = values["project"]
    learner = (values["learner"] or {}).get("name")
    if project["basis"] == IDENTITY or learner is None:
        return project
    inconsistent = learner in METHOD_I
    return project | {"judge": "inner_products" if inconsistent else "coefficients"}
