"""Registry of the engines, in the order in which they are tried.

The first that does not refuse a model reads it. The last refuses none.
"""

ENGINES = {
    "linear": "curvote.utility.engines.linear:Linear",
    "trees": "curvote.utility.engines.trees.engine:Trees",
    "branched_trees": "curvote.utility.engines.branched_trees:BranchedTrees",
    "closed_form": "curvote.utility.engines.closed_form:ClosedForm",
    "network": "curvote.utility.engines.network:Network",
    "black_box": "curvote.utility.engines.black_box:BlackBox",
}
