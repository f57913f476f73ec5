"""Election of a constant classifier by noised labels."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import StageContext
from curvote.protocols.majority.messages import Label
from curvote.protocols.majority.response import response_for
from curvote.protocols.stages.drawn import draw_messages, study_task
from curvote.protocols.study import StudyClients

LABEL_MESSAGE: Final = Label()


def elect_class(noised: NDArray[Any], n_classes: int) -> int:
    """Return the place of the class with most noised labels."""
    return int(response_for(n_classes).counts(noised).argmax())


def majority_error(context: StageContext, clients: StudyClients) -> float:
    """Return the share of test clients that the elected class gets wrong.

    The noise is that of stage privatize of `majority`: the same in every system.
    """
    rows = LABEL_MESSAGE.senders.rows(clients.roles)
    task = study_task(context, LABEL_MESSAGE)
    labels = draw_messages(
        context, LABEL_MESSAGE, task, clients.data_of(rows), LABEL_MESSAGE.stage
    )
    truth = clients.labels[clients.roles["test"]]
    return float(np.mean(truth != elect_class(labels["label"], len(task.classes))))
