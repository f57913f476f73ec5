"""Audit of private labels: the message about one label as a subject."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from curvote.base.entropy import SeededEntropy
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns
from curvote.checks import examples, mechanism_subject, residuals
from curvote.checks.subject import Findings, OddInput, Rng, SentSubject
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.factory import make
from curvote.mechanisms.randomized_response import RRWithPrior
from curvote.messages.message import ClientData, message_of
from curvote.systems.labels.messages import CODE, PRIOR, Task

# Codes that are compared for each prior; the error rate of their law.
CODES, PATH_SEED, PATH_ALPHA = 3000, 3, 1e-9
MOST_LABELS = 4


@dataclass(frozen=True, eq=False)
class LabelSubject(SentSubject):
    """The message about one public record; an input is its label.

    Neighbours share all that is public of the record, such as its prior. ``prior``
    (K,) is that of the labels that are tried first; other clients have others.
    """

    task: Task
    prior: FloatArray

    @property
    def stands_for(self) -> str:
        """The message, also where a word is hidden with the label."""
        if not getattr(self.task, "words", None):
            return super().stands_for
        example = examples.task_named(examples.WORDED, self.task.epsilon)
        return examples.WORDED if example.digest() == self.task.digest() else ""

    @property
    def mechanism(self) -> LabelMechanism:
        """Return the mechanism that hides the label of a record of that prior."""
        data = _with_shared_prior(self._client_data([0.0]))
        mechanism: LabelMechanism = self.message.noise(self.task, data)
        return mechanism

    def own_checks(self) -> Findings:
        """Check the channel by brute force, both bits, and that the code is all."""
        sent_columns = self.draw(self._client_data([0.0]), 1, SeededEntropy(0))
        beside = ", ".join(name for name in sent_columns if name != CODE)
        return {
            "channel": next(mechanism_subject.channel_faults(self.mechanism), None),
            "pair": next(mechanism_subject.pair_faults(self.mechanism), None),
            "fields": f"{beside} is sent beside the code" if beside else None,
            "path": self._compare_with_mechanism(),
        }

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

    def inputs(self, rng: Rng) -> list[ClientData]:
        """Return the first labels of a record."""
        few = min(len(self.prior), MOST_LABELS)
        return [self._client_data([label]) for label in range(few)]

    def many(self, n: int, rng: Rng) -> ClientData:
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
        of_codes = mechanism_subject.subject_of(self.mechanism, "")
        codes = of_codes.view(np.asarray(outputs[CODE]))
        rest = {name: values for name, values in outputs.items() if name != CODE}
        return np.hstack([codes, super().view(rest)]) if rest else codes

    def residuals(
        self, many: ClientData, outputs: Columns, rng: Rng
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

    def odd_inputs(self) -> list[OddInput]:
        """Return labels that are none of the classes."""
        good, k = self._client_data([1.0]), len(self.prior)
        odd = [
            OddInput(f"a label of {label:g}", replace(good, labels=np.array([label])))
            for label in (np.nan, np.inf, -1.0, 0.5, float(k))
        ]
        return [*odd, OddInput("a column of labels", replace(good, labels=np.eye(1)))]


def _with_shared_prior(data: ClientData) -> ClientData:
    """Return the clients' data with the one prior that all of them have, (K,)."""
    return replace(data, public={PRIOR: data.public[PRIOR][0]})


def label_subject(task: Any) -> LabelSubject:
    """Return the subject of a task that asks for the code of a label or a word."""
    message, k = message_of(task), task.label_count
    params = {"n_classes": k, "mechanism": task.mechanism, **task.params}
    name = examples.message_name(task.protocol, message.name, k)
    if getattr(task, "words", None):
        n_words = math.prod(map(len, task.words.values()))
        name = f"{name.partition('@')[0]}@{k // n_words}x{n_words}"
    prior = np.array(examples.example_params(task.epsilon, k)[PRIOR])
    return LabelSubject(task, message, name, params, Budget(task.epsilon), prior)
