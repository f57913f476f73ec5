"""The graph of public records: made once, whatever is then learnt on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from curvote.chain.stage import Here
from curvote.protocols.labels.packing import unpacked

if TYPE_CHECKING:
    from curvote.labels.learners.base import Learner

GRAPH = "spectral"
_OWN = ("anchors", "neighbours")


def wanted(learners: Iterable[Mapping[str, Any]]) -> bool:
    """Say whether some learner takes a graph and states none of its own.

    Parameters that are left to their defaults may be left out.
    """
    from curvote.labels.learners.making import make  # scikit-learn: a second

    made = (make(each["name"], **each.get("params", {})) for each in learners)
    return any(map(_takes, made))


def _takes(learner: Learner) -> bool:
    given, usual = learner.get_params(), type(learner)().get_params()
    own = any(given.get(name) != usual.get(name) for name in _OWN)
    return GRAPH in given and given[GRAPH] is None and not own


def learner_of(here: Here) -> Learner:
    """Return the learner of a cell, on the graph that there is."""
    from curvote.labels.learners.making import make

    told = here.params["learner"]
    learner = make(told["name"], **told["params"])
    made = here.rows("graph", "graph")["model"]
    if not (len(made) and _takes(learner)):
        return learner
    from sklearn.frozen import FrozenEstimator

    found: Learner = learner.set_params(**{GRAPH: FrozenEstimator(unpacked(made[0]))})
    return found
