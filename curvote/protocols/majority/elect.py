"""The election of a constant classifier: one noised label from every client."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Here
from curvote.protocols.majority.messages import Label
from curvote.protocols.majority.response import response
from curvote.protocols.stages.drawn import asked, noised
from curvote.protocols.study import Clients

LABEL: Final = Label()


def elected(noised: NDArray[Any], n_classes: int) -> int:
    """Return the place of the class that most noised labels name, the first of ties."""
    return int(response(n_classes).counts(noised).argmax())


def wrong(here: Here, clients: Clients) -> float:
    """Return how often the class that everybody elects is wrong for the test clients.

    The noise is that of stage privatize of `majority`: the same in every system.
    """
    rows = LABEL.senders.rows(clients.roles)
    task = asked(here, LABEL)
    sent = noised(here, LABEL, task, clients.known(rows), LABEL.stage)
    truth = clients.labels[clients.roles["test"]]
    return float(np.mean(truth != elected(sent["label"], len(task.classes))))
