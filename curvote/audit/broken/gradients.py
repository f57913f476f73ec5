"""A twin of the message of `sgd`: a gradient that nothing clips."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from curvote.chain.stage import Columns
from curvote.entropy import Entropy
from curvote.protocols.message import Known
from curvote.protocols.sgd.messages import Gradient, gradients
from curvote.representation.simplex import codes
from curvote.task import Task

# No gradient of a record in [-1, 1]^d is so long.
_FAR = 1e3


class GradientUnclipped(Gradient):
    """Noises which way a gradient goes, and lets it be longer than its bound."""

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return noised gradients, as much longer as none was clipped."""
        sent, given = super().draw(task, known, entropy)["gradient"], gradients(task)
        of_label = codes(known.labels, given.n_classes)
        loose = replace(given, clip=_FAR).vectors(known.z, of_label)
        length = _FAR / given.clip * np.linalg.norm(loose[:, :-1], axis=1)
        return {"gradient": sent * np.maximum(length, 1)[:, None]}
