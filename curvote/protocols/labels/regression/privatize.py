"""Stage privatize of a study: each client who trains releases one noised number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Here, Rows
from curvote.entropy import Entropy
from curvote.labels.regression.prior import reported
from curvote.labels.regression.targets import NoisedTargets, scaled
from curvote.protocols.labels.messages import names_of
from curvote.protocols.labels.regression import asked
from curvote.protocols.roles import played

Array = NDArray[np.float64]
Draw = Callable[[Array, Entropy], Array]


def one(here: Here) -> Rows:
    """Return the tables ``shape_numbers``, ``numbers`` and ``held_numbers``.

    Three parts of the clients, in the random order of their role: nobody is in two.
    """
    clients = here.rows("ingest", "clients")
    mine = played(clients, here.params, here.number)["train"]
    labels = scaled(clients["target"][mine], asked.bounds_of(here))
    names, (held, first) = names_of(clients)[mine], _ends(len(mine), here)
    epsilon = here.params["epsilon"]
    shapes = _drawn(
        here, labels[held:first], "shape", lambda y, noise: reported(y, epsilon, noise)
    )
    learnt = _by(asked.learnt(here, shapes))
    scored = _by(asked.held(here))
    return {
        "shape_numbers": {"value": shapes},
        "numbers": {
            "record": names[first:],
            "value": _drawn(here, labels[first:], "learn", learnt),
        },
        "held_numbers": {
            "record": names[:held],
            "value": _drawn(here, labels[:held], "held", scored),
        },
    }


def _ends(n: int, here: Here) -> tuple[int, int]:
    """Return where those end who send for the score, and for the histogram."""
    held = round(here.params["labels_regression.holdout"] * n)
    asked_first = round(here.params["labels_regression.share"] * (n - held))
    return held, held + asked_first * asked.on_bins(here)


def _by(targets: NoisedTargets) -> Draw:
    return targets.mechanism.randomize


def _drawn(here: Here, labels: Array, purpose: str, draw: Draw) -> Array:
    """Return what one part of the clients sends, by streams of its own."""
    made = np.empty(len(labels))
    for rows, noise in here.noise(len(labels)):
        made[rows] = draw(labels[rows], noise.of(purpose))
    return made
