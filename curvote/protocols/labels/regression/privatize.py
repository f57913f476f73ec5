"""Stage privatize of a study: each client who trains releases one noised number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Rows, StageContext
from curvote.entropy import Entropy
from curvote.labels.regression.prior import report_labels
from curvote.labels.regression.targets import NoisedTargets, to_unit_interval
from curvote.protocols.labels.messages import record_names
from curvote.protocols.labels.regression import asked
from curvote.protocols.roles import roles_of_table

Array = NDArray[np.float64]
Draw = Callable[[Array, Entropy], Array]


def one(context: StageContext) -> Rows:
    """Return the tables ``shape_numbers``, ``numbers`` and ``held_numbers``.

    Three parts of the clients, in the random order of their role: nobody is in two.
    """
    clients = context.rows("ingest", "clients")
    training_rows = roles_of_table(clients, context.params, context.number)["train"]
    labels = to_unit_interval(
        clients["target"][training_rows], asked.public_bounds(context)
    )
    names, (holdout_end, prior_end) = (
        record_names(clients)[training_rows],
        _part_ends(len(training_rows), context),
    )
    epsilon = context.params["epsilon"]
    shapes = _draw_part(
        context,
        labels[holdout_end:prior_end],
        "shape",
        lambda y, noise: report_labels(y, epsilon, noise),
    )
    draw_training = _draw_by(asked.training_template(context, shapes))
    draw_holdout = _draw_by(asked.holdout_template(context))
    return {
        "shape_numbers": {"value": shapes},
        "numbers": {
            "record": names[prior_end:],
            "value": _draw_part(context, labels[prior_end:], "learn", draw_training),
        },
        "held_numbers": {
            "record": names[:holdout_end],
            "value": _draw_part(context, labels[:holdout_end], "held", draw_holdout),
        },
    }


def _part_ends(n: int, context: StageContext) -> tuple[int, int]:
    """Return the ends of the parts that send for the score and the histogram."""
    holdout_end = round(context.params["labels_regression.holdout"] * n)
    prior_count = round(context.params["labels_regression.share"] * (n - holdout_end))
    return holdout_end, holdout_end + prior_count * asked.needs_histogram(context)


def _draw_by(targets: NoisedTargets) -> Draw:
    return targets.mechanism.randomize


def _draw_part(context: StageContext, labels: Array, purpose: str, draw: Draw) -> Array:
    """Return the values that one part of the clients sends, by its own streams."""
    values = np.empty(len(labels))
    for rows, noise in context.noise(len(labels)):
        values[rows] = draw(labels[rows], noise.stream_for(purpose))
    return values
