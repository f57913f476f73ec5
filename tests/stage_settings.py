"""Settings of stages that make classifiers of reports, whatever system they are of."""

from typing import Any, Final

SETTINGS: Final[dict[str, Any]] = {
    "source.groups": None,
    "project.basis": "bspline",
    "project.size": 4,
    "project.order": 4,
    "project.coordinates": "coefficients",
    "project.rescale": "tanh",
    "project.centre": 0.0,
    "project.scale": 1.0,
    "project.judge": "coefficients",
    "privatize.mechanism": "laplace",
    "privatize.params": {},
    "privatize.label_share": "equal",
    "learner.params": {},
    "aggregate.cutoff": 0.8,
    "aggregate.when_none_pass": "soft",
    "aggregate.weights": "excess",
}
