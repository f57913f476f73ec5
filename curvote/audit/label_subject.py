"""What leaves the owner of a label, whole: the code of one record's label."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.audit import examples, interior, pair, residuals
from curvote.audit.answers import thresholds
from curvote.audit.channel import check as channel_check
from curvote.audit.mechanism_subject import REJECTING, subject_of
from curvote.audit.row import Finding
from curvote.audit.sent_subject import SentSubject
from curvote.audit.subject import OddInput
from curvote.chain.stage import Columns
from curvote.entropy import Entropy, SeededEntropy
from curvote.labels.task import Task
from curvote.mechanisms import make
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.rr_with_prior import RRWithPrior
from curvote.privacy import Budget
from curvote.protocols.message import Known, message_of
from curvote.validate import FloatArray

PRIOR, CODE = "prior", "code"
# Codes that are compared for each prior; the error rate of their law.
CODES, PATH_SEED, PATH_ALPHA = 3000, 3, 1e-9
MOST_LABELS = 4


@dataclass(frozen=True, eq=False)
class LabelSubject(SentSubject):
    """The message about one public record: n = 1; an input is its label.

    Neighbours share all that is public of the record, such as its prior. ``prior``
    (K,) is that of the labels that are tried first; other clients have others.
    """

    task: Task
    prior: FloatArray

    @property
    def stands_for(self) -> str:
        """The message, where it is that of the small task in ``examples``."""
        protocol, asks = self.task.protocol, self.message.name
        few = self.task.epsilon, len(self.task.classes)
        same = examples.task(protocol, asks, *few).digest() == self.task.digest()
        return examples.name_of(protocol, asks, few[1]) if same else ""

    @property
    def mechanism(self) -> LabelMechanism:
        """What hides the label of a record of that prior."""
        found: LabelMechanism = self.message.noise(
            self.task, _shared(self._known([0.0]))
        )
        return found

    @property
    def said(self) -> Mapping[str, Any]:
        """The parameters, and the law of the two bits that tell two labels apart."""
        return {**self.params, **pair.words(self.mechanism)}

    @property
    def deciding(self) -> tuple[int, ...]:
        """The thresholds of the mechanism."""
        return thresholds(self.mechanism)

    @property
    def rejects(self) -> bool:
        """Whether candidates are drawn until a set has the right size."""
        return isinstance(self.mechanism, REJECTING)

    def own_checks(self) -> list[Finding]:
        """Check the channel by brute force, both bits, and that the code is all."""
        sent = self.draw(self._known([0.0]), 1, SeededEntropy(0))
        beside = ", ".join(name for name in sent if name != CODE)
        return [
            channel_check(self.mechanism),
            pair.check(self.mechanism),
            Finding("fields", f"{beside} is sent beside the code" if beside else None),
            Finding("path", self._path()),
        ]

    def _path(self) -> str | None:
        """Compare codes with the named mechanism's, word for word, and with its law.

        The mechanism is built anew, of what is public alone. Priors tie, also where two
        numbers of likely labels are as good: there the least nudge by a label shows.
        """
        rng, k = np.random.default_rng(PATH_SEED), len(self.prior)
        # e^eps/(e^eps + k - 1) times 1 + (k - 1) e^-eps is 1 for every k.
        edge = np.where(np.arange(k) == 0, 1.0, math.exp(-self.task.epsilon))
        for prior in (
            edge,
            edge[::-1],
            np.ones(k),
            np.repeat([2.0, 1.0], k)[k // 2 :][:k],
        ):
            known = self._known(rng.integers(k, size=CODES), np.tile(prior, (CODES, 1)))
            given = {"n_classes": k, **self.task.params}
            if self.task.encoder == RRWithPrior.name:
                given[PRIOR] = prior
            mechanism = make(self.task.encoder, epsilon=self.task.epsilon, **given)
            own = mechanism.randomize(known.labels, SeededEntropy(PATH_SEED))
            sent = np.asarray(self.send(known, SeededEntropy(PATH_SEED))[CODE])
            if sent.shape != own.shape or (sent != own).any():
                return "the code is not what the task's mechanism makes of the label"
            found = residuals.of(mechanism, known.labels, sent, rng)
            if found is not None and (why := interior.excess(found, PATH_ALPHA)):
                return why
        return None

    def _known(self, labels: Any, priors: FloatArray | None = None) -> Known:
        places = np.asarray(labels, dtype=np.float64)
        shape = (places.size, len(self.prior))
        given = np.broadcast_to(self.prior, shape) if priors is None else priors
        nothing = np.empty((places.size, 0))
        return Known(nothing, nothing, places, None, {PRIOR: given})

    def inputs(self, rng: np.random.Generator) -> list[Known]:
        """Return the first labels of a record."""
        few = min(len(self.task.classes), MOST_LABELS)
        return [self._known([label]) for label in range(few)]

    def draw(self, x: Known, n: int, entropy: Entropy) -> Columns:
        """Return the messages of ``n`` clients that all know ``x``."""
        return self.send(_times(x, n), entropy)

    def send(self, many: Known, entropy: Entropy) -> Columns:
        """Return the messages of clients who know ``many``, a row each."""
        sent: Columns = self.message.draw(self.task, many, entropy)
        return sent

    def many(self, n: int, rng: np.random.Generator) -> Known:
        """Return labels of records whose priors are one of three."""
        k = len(self.prior)
        priors = np.array([self.prior, self.prior[::-1], np.ones(k)])
        return self._known(rng.integers(k, size=n), priors[rng.integers(3, size=n)])

    def part(self, many: Known, rows: slice) -> Known:
        """Return some of these clients."""
        return many.of(rows)

    def places(self, many: Known) -> FloatArray:
        """Return the labels."""
        return many.labels[:, None]

    def view(self, outputs: Columns) -> FloatArray:
        """Return codes as numbers or bits, and what was sent beside them."""
        own = subject_of(self.mechanism, "").view(np.asarray(outputs[CODE]))
        rest = {name: values for name, values in outputs.items() if name != CODE}
        return np.hstack([own, super().view(rest)]) if rest else own

    def residuals(
        self, many: Known, outputs: Columns, rng: np.random.Generator
    ) -> FloatArray | None:
        """Return codes with the labels taken out, one prior after the other."""
        kinds, which = np.unique(many.public[PRIOR], axis=0, return_inverse=True)
        parts = [np.flatnonzero(which == kind) for kind in range(len(kinds))]
        found = [self._residuals(many.of(part), outputs, part, rng) for part in parts]
        given = [one for one in found if one is not None]
        if len(given) < len(found):
            return None
        out = np.empty((len(many.labels), given[0].shape[1]))
        for part, one in zip(parts, given, strict=True):
            out[part] = one
        return out

    def _residuals(
        self,
        known: Known,
        outputs: Columns,
        rows: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> FloatArray | None:
        mechanism = self.message.noise(self.task, _shared(known))
        codes = np.asarray(outputs[CODE])[rows]
        return residuals.of(mechanism, known.labels, codes, rng)

    def shown(self, x: Known) -> FloatArray | None:
        """Return nothing: a code has not the form of its label."""
        return None

    def log_ratio(self, x: Known, x2: Known, outputs: Columns) -> FloatArray:
        """Return the declared loss of each message."""
        n = len(outputs[CODE])
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = _times(x, n), _times(x2, n)
            found: FloatArray = self.message.log_ratio(self.task, one, other, outputs)
        return found

    def odd_inputs(self) -> list[OddInput]:
        """Return labels that are none of the classes."""
        good, k = self._known([1.0]), len(self.task.classes)
        bad = [np.nan, np.inf, -1.0, 0.5, float(k)]
        odd = [
            OddInput(f"a label of {one:g}", replace(good, labels=np.array([one])))
            for one in bad
        ]
        return [*odd, OddInput("a column of labels", replace(good, labels=np.eye(1)))]


def _shared(known: Known) -> Known:
    """Return what is known with the prior that all of them have, (K,)."""
    return replace(known, public={PRIOR: known.public[PRIOR][0]})


def _times(x: Known, n: int) -> Known:
    """Return ``n`` clients who know what one knows."""
    return x.of(np.zeros(n, dtype=np.int64))


def of_label(task: Task) -> LabelSubject:
    """Return the message that asks for the code of a label as a subject."""
    message, k = message_of(task), len(task.classes)
    params = {"n_classes": k, "mechanism": task.mechanism, **task.params}
    name = examples.name_of(task.protocol, message.name, k)
    prior = np.array(examples.params(task.epsilon, k)[PRIOR])
    return LabelSubject(task, message, name, params, Budget(task.epsilon), prior)
