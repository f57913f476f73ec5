"""Audit of private labels: the message about one label as a subject, and its twins."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from curvote.base.entropy import Entropy, SeededEntropy
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns
from curvote.checks import examples, mechanism_checks, residuals
from curvote.checks.mechanism_subject import REJECTING, subject_of
from curvote.checks.subject import Finding, OddInput, RecordSubject
from curvote.checks.word_checks import thresholds
from curvote.mechanisms.alibi import Alibi
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.factory import make
from curvote.mechanisms.frequency_oracles import UnarySymmetric
from curvote.mechanisms.randomized_response import RRWithPrior
from curvote.messages.message import ClientData, message_of
from curvote.systems.labels import messages
from curvote.systems.labels.messages import CODE, PRIOR, Task

# Codes that are compared for each prior; the error rate of their law.
CODES, PATH_SEED, PATH_ALPHA = 3000, 3, 1e-9
MOST_LABELS = 4


@dataclass(frozen=True, eq=False)
class LabelSubject(RecordSubject):
    """The message about one public record; an input is its label.

    Neighbours share all that is public of the record, such as its prior. ``prior``
    (K,) is that of the labels that are tried first; other clients have others.
    """

    task: Task
    prior: FloatArray

    @property
    def mechanism(self) -> LabelMechanism:
        """Return the mechanism that hides the label of a record of that prior."""
        data = _with_shared_prior(self._client_data([0.0]))
        mechanism: LabelMechanism = self.message.noise(self.task, data)
        return mechanism

    @property
    def said(self) -> Mapping[str, Any]:
        """Return the parameters, and the law of the bits that tell two labels apart."""
        return {**self.params, **mechanism_checks.pair_details(self.mechanism)}

    @property
    def deciding(self) -> tuple[int, ...]:
        """Return the thresholds of the mechanism."""
        return thresholds(self.mechanism)

    @property
    def rejects(self) -> bool:
        """Return whether candidates are drawn until a set has the right size."""
        return isinstance(self.mechanism, REJECTING)

    def own_checks(self) -> list[Finding]:
        """Check the channel by brute force, both bits, and that the code is all."""
        sent_columns = self.draw(self._client_data([0.0]), 1, SeededEntropy(0))
        beside = ", ".join(name for name in sent_columns if name != CODE)
        return [
            mechanism_checks.check_channel(self.mechanism),
            mechanism_checks.check_pair(self.mechanism),
            Finding("fields", f"{beside} is sent beside the code" if beside else None),
            Finding("path", self._compare_with_mechanism()),
        ]

    def _compare_with_mechanism(self) -> str | None:
        """Compare codes with the named mechanism's, word for word, and with its law.

        The mechanism is built anew, of what is public alone. Priors tie, also where two
        numbers of likely labels are as good: there the least nudge by a label shows.
        """
        rng, k = np.random.default_rng(PATH_SEED), len(self.prior)
        # e^eps/(e^eps + k - 1) times 1 + (k - 1) e^-eps is 1 for every k.
        edge = np.where(np.arange(k) == 0, 1.0, math.exp(-self.task.epsilon))
        halves = np.repeat([2.0, 1.0], k)[k // 2 :][:k]
        for prior in (edge, edge[::-1], np.ones(k), halves):
            labels, priors = rng.integers(k, size=CODES), np.tile(prior, (CODES, 1))
            data = self._client_data(labels, priors)
            params = {"n_classes": k, **self.task.params}
            if self.task.encoder == RRWithPrior.name:
                params[PRIOR] = prior
            mechanism = make(self.task.encoder, epsilon=self.task.epsilon, **params)
            expected = mechanism.randomize(data.labels, SeededEntropy(PATH_SEED))
            codes = np.asarray(self.send(data, SeededEntropy(PATH_SEED))[CODE])
            if codes.shape != expected.shape or (codes != expected).any():
                return "the code is not what the task's mechanism makes of the label"
            residual = residuals.output_residuals(mechanism, data.labels, codes, rng)
            if residual is not None:
                why = residuals.uniformity_gap(residual, PATH_ALPHA)
                if why:
                    return why
        return None

    def _client_data(self, labels: Any, priors: FloatArray | None = None) -> ClientData:
        places = np.asarray(labels, dtype=np.float64)
        shape = (places.size, len(self.prior))
        prior_rows = np.broadcast_to(self.prior, shape) if priors is None else priors
        nothing = np.empty((places.size, 0))
        return ClientData(nothing, nothing, places, None, {PRIOR: prior_rows})

    def inputs(self, rng: np.random.Generator) -> list[ClientData]:
        """Return the first labels of a record."""
        few = min(len(self.task.classes), MOST_LABELS)
        return [self._client_data([label]) for label in range(few)]

    def many(self, n: int, rng: np.random.Generator) -> ClientData:
        """Return labels of records whose priors are one of three."""
        k = len(self.prior)
        priors = np.array([self.prior, self.prior[::-1], np.ones(k)])
        labels = rng.integers(k, size=n)
        return self._client_data(labels, priors[rng.integers(3, size=n)])

    def places(self, many: ClientData) -> FloatArray:
        """Return the labels."""
        return many.labels[:, None]

    def view(self, outputs: Columns) -> FloatArray:
        """Return codes as numbers or bits, and what was sent beside them."""
        codes = subject_of(self.mechanism, "").view(np.asarray(outputs[CODE]))
        rest = {name: values for name, values in outputs.items() if name != CODE}
        return np.hstack([codes, super().view(rest)]) if rest else codes

    def residuals(
        self, many: ClientData, outputs: Columns, rng: np.random.Generator
    ) -> FloatArray | None:
        """Return codes with the labels taken out, one prior after the other."""
        kinds, which = np.unique(many.public[PRIOR], axis=0, return_inverse=True)
        parts = [np.flatnonzero(which == kind) for kind in range(len(kinds))]
        codes, results = np.asarray(outputs[CODE]), []
        for part in parts:
            data = many.subset(part)
            mechanism = self.message.noise(self.task, _with_shared_prior(data))
            out = residuals.output_residuals(mechanism, data.labels, codes[part], rng)
            results.append(out)
        present = [values for values in results if values is not None]
        if len(present) < len(results):
            return None
        together = np.empty((len(many.labels), present[0].shape[1]))
        for part, values in zip(parts, present, strict=True):
            together[part] = values
        return together

    def shown(self, x: ClientData) -> FloatArray | None:
        """Return nothing: a code has not the form of its label."""
        return None

    def odd_inputs(self) -> list[OddInput]:
        """Return labels that are none of the classes."""
        good, k = self._client_data([1.0]), len(self.task.classes)
        odd = [
            OddInput(f"a label of {label:g}", replace(good, labels=np.array([label])))
            for label in (np.nan, np.inf, -1.0, 0.5, float(k))
        ]
        return [*odd, OddInput("a column of labels", replace(good, labels=np.eye(1)))]


def _with_shared_prior(data: ClientData) -> ClientData:
    """Return the clients' data with the one prior that all of them have, (K,)."""
    return replace(data, public={PRIOR: data.public[PRIOR][0]})


def label_subject(task: Task) -> LabelSubject:
    """Return the subject of a task that asks for the code of a label."""
    message, k = message_of(task), len(task.classes)
    params = {"n_classes": k, "mechanism": task.mechanism, **task.params}
    name = examples.message_name(task.protocol, message.name, k)
    prior = np.array(examples.example_params(task.epsilon, k)[PRIOR])
    return LabelSubject(task, message, name, params, Budget(task.epsilon), prior)


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


class CodeEachEpoch(messages.CodeMessage):
    """Noises the label anew for each of two passes over the data."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the codes of both passes."""
        first = super().draw(task, data, entropy)
        return {**first, "second": super().draw(task, data, entropy)[CODE]}


class NudgedPrior(messages.LikelyCodeMessage):
    """Takes the label for likelier by 1e-9: seen where priors tie, and nowhere else."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return codes drawn by priors that the labels have touched."""
        is_label = data.labels[:, None] == np.arange(len(task.classes))
        nudged = data.public[PRIOR] + 1e-9 * is_label
        return super().draw(task, replace(data, public={PRIOR: nudged}), entropy)


class PriorFromLabels(messages.LikelyCodeMessage):
    """Takes the label itself for likely: its prior is five times any other label's."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return codes drawn by priors that the labels themselves made."""
        places = np.arange(len(task.classes))
        priors = 1 + 4.0 * (data.labels[:, None] == places)
        return super().draw(task, replace(data, public={PRIOR: priors}), entropy)


class BothRounds(messages.LikelyCodeMessage):
    """Asks the first round's clients again: each round is within epsilon, not both."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the code of the second round, and that of the first beside it."""
        first = messages.FIRST_ROUND.draw(replace(task, encoder="k_rr"), data, entropy)
        return {**super().draw(task, data, entropy), "first": first[CODE]}


class LabelInFeatures(messages.CodeMessage):
    """Noises the label, and leaves it among the features that are published."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the codes, and the features: among them one that tells the label."""
        features = np.column_stack([data.coefficients, data.labels])
        return {**super().draw(task, data, entropy), "features": features}
