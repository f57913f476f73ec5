"""Twins of label encoders, and of messages that hold more than one code."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from curvote.chain.stage import Columns
from curvote.entropy import Entropy
from curvote.labels.task import Task
from curvote.mechanisms.alibi import Alibi
from curvote.mechanisms.unary import UnarySymmetric
from curvote.protocols.labels.messages import (
    CODE,
    PRIOR,
    CodeMessage,
    FirstCodeMessage,
    LikelyCodeMessage,
)
from curvote.protocols.message import ClientData


class AlibiHalfScale(Alibi):
    """Noise of scale 1/epsilon: takes 1 for the sensitivity of a one-hot label."""

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=epsilon, n_classes=n_classes)
        self.noise = Alibi(epsilon=2 * epsilon, n_classes=n_classes).noise

    def worst_log_ratio(self) -> float:
        """Return the loss of one of the two numbers that differ."""
        return super().worst_log_ratio() / 2


class OneBitCounted(UnarySymmetric):
    """Flips bits at the full epsilon each, and counts one of the two that differ."""

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=2 * epsilon, n_classes=n_classes)
        self.epsilon = epsilon

    def worst_ratio(self) -> Fraction:
        """Return the ratio of one bit."""
        return self.p / self.q


class CodeEachEpoch(CodeMessage):
    """Noises the label anew for each of two passes over the data."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the codes of both passes."""
        first = super().draw(task, data, entropy)
        return {**first, "second": super().draw(task, data, entropy)[CODE]}


class NudgedPrior(LikelyCodeMessage):
    """Takes the label for likelier by 1e-9: seen where priors tie, and nowhere else."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return codes drawn by priors that the labels have touched."""
        is_label = data.labels[:, None] == np.arange(len(task.classes))
        nudged = data.public[PRIOR] + 1e-9 * is_label
        return super().draw(task, replace(data, public={PRIOR: nudged}), entropy)


class PriorFromLabels(LikelyCodeMessage):
    """Takes the label itself for likely: its prior is five times any other label's."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return codes drawn by priors that the labels themselves made."""
        places = np.arange(len(task.classes))
        priors = 1 + 4.0 * (data.labels[:, None] == places)
        return super().draw(task, replace(data, public={PRIOR: priors}), entropy)


class BothRounds(LikelyCodeMessage):
    """Asks the first round's clients again: each round is within epsilon, not both."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the code of the second round, and that of the first beside it."""
        first = FirstCodeMessage().draw(replace(task, encoder="k_rr"), data, entropy)
        return {**super().draw(task, data, entropy), "first": first[CODE]}


class LabelInFeatures(CodeMessage):
    """Noises the label, and leaves it among the features that are published."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the codes, and the features: among them one that tells the label."""
        features = np.column_stack([data.coefficients, data.labels])
        return {**super().draw(task, data, entropy), "features": features}
