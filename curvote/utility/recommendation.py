"""What to send, if anything: chosen on one half of the records, shown on the other.

A recommendation speaks of a population. A client must never choose epsilon, or whether
to take part, by the figure of its own record: the figure depends on the record, so the
choice would tell about it, outside of any epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from curvote.utility.deployments.deployment import Deployment
from curvote.utility.known import Known
from curvote.utility.measured import Measured
from curvote.utility.rows import Row
from curvote.utility.setting import Setting

Metric = Literal["agreement", "accuracy"]
Scan = Sequence[tuple[Deployment, Measured]]


@dataclass(frozen=True)
class Recommendation:
    """A deployment, its figures on records that it was not chosen by, and why.

    ``deployment`` and ``row`` are None where no total epsilon reaches the target.
    ``confidence`` is that of the row's interval where evidence is drawn, else None.
    """

    deployment: Deployment | None
    row: Row | None
    reason: str
    confidence: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the row's keys, all None where there is none, and ``reason``."""
        empty = dict.fromkeys(Row.__dataclass_fields__)
        return {
            **(empty if self.row is None else asdict(self.row)),
            "reason": self.reason,
        }


def recommend(
    setting: Setting,
    known: Known,
    scan: Scan,
    *,
    target: float | None = None,
    epsilon: float | None = None,
    metric: Metric = "agreement",
    share: float | None = None,
    sample: bool = False,
    seed: int = 0,
) -> Recommendation:
    """Return the least total epsilon that reaches ``target``, or the best at most so.

    ``scan`` holds deployments, floors among them, with what they do to each record.
    One of ``target`` (strictly between 0 and 1) and ``epsilon`` is given. A target is
    for the mean of ``metric``, or with ``share`` for at least that share of records,
    each by itself. It must be reached on both halves; no total is skipped, since
    agreement need not grow with epsilon. What a floor beats on either half is not
    recommended. Randomised response on the answer is, where clients can run the model.
    """
    raise NotImplementedError
