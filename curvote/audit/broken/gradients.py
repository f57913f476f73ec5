"""Broken twin of the gradient message: a gradient that nothing clips."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from curvote.chain.stage import Columns
from curvote.entropy import Entropy
from curvote.protocols.message import ClientData
from curvote.protocols.sgd.messages import Gradient, task_gradients
from curvote.representation.simplex import class_codes
from curvote.task import Task

# No gradient of a record in [-1, 1]^d is so long.
_FAR = 1e3


class GradientUnclipped(Gradient):
    """Noises which way a gradient goes, and lets it be longer than its bound."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return noised gradients, as much longer as none was clipped."""
        noised, encoder = (
            super().draw(task, data, entropy)["gradient"],
            task_gradients(task),
        )
        of_label = class_codes(data.labels, encoder.n_classes)
        loose = replace(encoder, clip=_FAR).vectors(data.z, of_label)
        length = _FAR / encoder.clip * np.linalg.norm(loose[:, :-1], axis=1)
        return {"gradient": noised * np.maximum(length, 1)[:, None]}
