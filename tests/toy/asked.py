"""What is asked of a party: a task about places as they are, at the party's level."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from curvote.chain.axis import PipelineSettings
from curvote.chain.stage import Metadata
from curvote.curves.basis import Projection
from curvote.curves.encoding import Encoding
from curvote.toy.messages import MESSAGES
from curvote.toy.tables import CLASSES
from curvote.wire.task import Task

_ONTO = Projection(np.eye(2), np.eye(2), (0.0, 1.0), "identity", 2, 1)
_BOUNDS = {"lower": np.full(2, -1.0), "upper": np.ones(2)}
PLACES = Encoding(_ONTO, "min_max", _BOUNDS)


def task(message: str, epsilon: float) -> Task:
    """Return the task of one party."""
    stated = Task(PLACES, CLASSES, epsilon, protocol="toy", asks=message)
    return MESSAGES[message].nominal_task(stated)


def asked(
    settings: PipelineSettings, read: Callable[[str], Metadata]
) -> Iterator[Task]:
    """Yield the task of each level and party."""
    for level in settings.levels.values():
        for name, message in MESSAGES.items():
            yield task(name, getattr(level, message.party))
