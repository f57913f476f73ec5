"""The graph of public records: made once, whatever is then learnt on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from curvote.chain.stage import StageContext
from curvote.protocols.labels.packing import unpack_model

if TYPE_CHECKING:
    from curvote.labels.learners.base import Learner

_GRAPH_PARAM = "spectral"
_GRAPH_SIZES = ("anchors", "neighbours")


def needs_graph(learners: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether some learner takes a graph and states none of its own.

    Parameters that are left to their defaults may be left out.
    """
    from curvote.labels.learners.making import make  # scikit-learn: a second

    unfitted = (make(entry["name"], **entry.get("params", {})) for entry in learners)
    return any(map(_takes_graph, unfitted))


def _takes_graph(learner: Learner) -> bool:
    params, usual = learner.get_params(), type(learner)().get_params()
    has_own_graph = any(params.get(name) != usual.get(name) for name in _GRAPH_SIZES)
    return _GRAPH_PARAM in params and params[_GRAPH_PARAM] is None and not has_own_graph


def cell_learner(context: StageContext) -> Learner:
    """Return the learner of a cell, on the stored graph where there is one."""
    from curvote.labels.learners.making import make

    setting = context.params["learner"]
    learner = make(setting["name"], **setting["params"])
    models = context.rows("graph", "graph")["model"]
    if not (len(models) and _takes_graph(learner)):
        return learner
    from sklearn.frozen import FrozenEstimator

    with_graph: Learner = learner.set_params(
        **{_GRAPH_PARAM: FrozenEstimator(unpack_model(models[0]))}
    )
    return with_graph
