"""Privacy amplification by shuffling: what an outsider learns at most.

An outsider sees only the shuffled table and trusts the intake (or the project that drew
the messages) to have shuffled it. Whoever sees messages come in, the server for one, is
no outsider: for them a client's own epsilon stands.
"""

from __future__ import annotations

from dataclasses import dataclass

from curvote.base.accounting import shuffled_epsilon
from curvote.base.privacy import Budget
from curvote.messages.message import Message, ShuffledLaw
from curvote.wire.task import AnyTask

OUTSIDER = (
    "somebody who sees only the shuffled table and trusts the intake to have"
    " shuffled it"
)
MAX_DELTA = 1e-6


@dataclass(frozen=True)
class ShuffledGuarantee:
    """Central guarantee (``epsilon``, ``delta``) in a ``crowd`` of messages.

    Replace-one. Delta is 10^-6, or a tenth of 1/crowd where that is less.
    """

    crowd: int
    epsilon: float
    delta: float

    @classmethod
    def from_local(
        cls, local: Budget, crowd: int, law: ShuffledLaw | None = None
    ) -> ShuffledGuarantee | None:
        """Return the guarantee of messages that cost ``local``, if it is known.

        ``law`` is that of the message, None where nothing but its cost is known. None:
        a crowd below 2 (what is not shuffled), or a local delta above 0 and no law, or
        one by which the crowd hides nothing.
        """
        delta = min(MAX_DELTA, 1 / (10 * max(crowd, 1)))
        if crowd < 2 or (local.delta and law is None):
            return None
        if law is None or not local.delta:
            least = shuffled_epsilon(local.epsilon, crowd, delta)
        else:
            least = local.epsilon
        epsilon = least if law is None else law.epsilon(crowd, delta, least)
        if local.delta > delta and epsilon >= local.epsilon:
            return None
        return cls(crowd, epsilon, delta)

    def __str__(self) -> str:
        return f"{self.epsilon:.3g} (delta {self.delta:.1g})"


def crowd_size(message: Message, n: int, candidates: int = 1) -> int:
    """Return among how many of ``n`` messages each one hides.

    Who is asked about which of the ``candidates`` is no secret (the seed that deals
    them is public), so a vote hides only among the votes on the same one.
    """
    return n // candidates if message.shuffled else 0


def task_crowd_size(message: Message, task: AnyTask, n: int) -> int:
    """Return among how many messages of a task's round each one hides."""
    return crowd_size(message, n, len(task.candidates.coef) if task.candidates else 1)
