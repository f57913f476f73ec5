"""Measurements of deployments: per record, as intervals, and as rows of a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.utility.engines.base import Answers, Evidence
from curvote.utility.setting import Places
from curvote.validate import FloatArray


@dataclass(frozen=True)
class Measurement:
    """Agreement of each record, (n,), between ``lower`` and ``upper``.

    ``right`` (n,) is the probability that the answer is the label, None without labels;
    ``bound`` and ``claimed`` (n,) are the box bound and the figure of the published
    procedure, None where there is none. ``queries`` (n,) counts answers of the model.
    ``confidence`` is that of each interval, where evidence is drawn; ``draw_count`` is
    how many plain draws stand behind each record's share, 0 if none do.
    """

    agreement: FloatArray
    lower: FloatArray
    upper: FloatArray
    right: FloatArray | None
    evidence: Evidence
    queries: NDArray[np.int64]
    bound: FloatArray | None = None
    claimed: FloatArray | None = None
    confidence: float | None = None
    draw_count: int = 0

    def of(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Measurement:
        """Return some of the records."""
        return Measurement(
            self.agreement[which],
            self.lower[which],
            self.upper[which],
            None if self.right is None else self.right[which],
            self.evidence,
            self.queries[which],
            None if self.bound is None else self.bound[which],
            None if self.claimed is None else self.claimed[which],
            self.confidence,
            self.draw_count,
        )


def measure_agreement(
    answers: Answers, clean: Places, labels: Places | None, confidence: float
) -> Measurement:
    """Return agreement with ``clean`` and accuracy from the shares of all classes."""
    rows = np.arange(len(clean))
    return Measurement(
        answers.share[rows, clean],
        answers.lower[rows, clean],
        answers.upper[rows, clean],
        None if labels is None else answers.share[rows, labels],
        answers.evidence,
        answers.queries,
        confidence=confidence if answers.evidence == "draws" else None,
        draw_count=answers.draw_count,
    )


def exact_answers(shares: FloatArray, queries: int) -> Answers:
    """Return exact shares (n, K) as answers, at so many queries a record."""
    query_counts = np.full(len(shares), queries, dtype=np.int64)
    return Answers(shares, shares, shares, "exact", query_counts)


def fixed_answers(places: Places, n_classes: int) -> Answers:
    """Return the answers of records that are answered without chance."""
    return exact_answers(np.eye(n_classes)[places], 1)
