"""Playing the clients: codes drawn from plain labels, and what each label has spent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from curvote.entropy import Entropy, SeededEntropy, SystemEntropy
from curvote.labels.codes import Codes
from curvote.labels.encoding import encode
from curvote.labels.given import LP_2ST, fitting, plain_labels
from curvote.labels.places import places_of
from curvote.labels.predicted import same_length
from curvote.labels.two_rounds import ENCODER, TwoRounds
from curvote.privacy import Budget
from curvote.validate import FloatArray


class AsksLabels:
    """A scikit-learn class whose ``fit`` takes `Codes`, or asks plain labels for them.

    ``spent_`` is what a label of all those fits has spent, ``private_`` False as soon
    as one of them drew known noise; both None where only codes came.
    """

    random_state: int | None
    spent_: Budget | None = None
    private_: bool | None = None

    def _sources(self) -> tuple[np.random.Generator, Entropy]:
        """Return what the server draws from, and where the labels' noise comes from."""
        if self.random_state is None:
            return np.random.default_rng(), SystemEntropy()
        server, noise = np.random.SeedSequence(self.random_state).spawn(2)
        return np.random.default_rng(server), SeededEntropy(noise)

    def _codes(
        self,
        stated: Any,
        X: FloatArray,
        y: Any,
        rng: np.random.Generator,
        entropy: Entropy,
    ) -> Codes:
        """Return the codes given, or drawn from plain labels, as a classifier states.

        Both must be of the ``classes``, ``epsilon`` and ``encoder`` of ``stated``.
        """
        if isinstance(y, Codes):
            same_length(len(X), y)
            return fitting(y, stated.classes, stated.epsilon, stated.encoder)
        labels = plain_labels(y, len(X))
        classes, places = places_of(labels, stated.classes)
        self._refuse(stated, len(X), len(classes))
        if stated.encoder == LP_2ST:
            rounds = TwoRounds(classes[places], classes, stated.epsilon, entropy)
            return self._in_two_rounds(stated, X, rounds, rng)
        codes = encode(labels, stated.classes, stated.epsilon, stated.encoder, entropy)
        self._count(codes)
        return codes

    def _refuse(self, stated: Any, n: int, k: int) -> None:
        """Raise what ``n`` labels of ``k`` classes would be spent in vain for."""

    def _in_two_rounds(
        self, stated: Any, X: FloatArray, rounds: TwoRounds, rng: np.random.Generator
    ) -> Codes:
        stage = clone(stated).set_params(classes=rounds.classes, encoder=ENCODER)

        def prior(
            first: NDArray[np.intp], codes: Codes, second: NDArray[np.intp]
        ) -> FloatArray:
            return np.asarray(stage.fit(X[first], codes).predict_proba(X[second]))

        made = rounds.codes(rng.permutation(len(X)), prior)
        self._count(next(made))
        return next(made)

    def _count(self, codes: Codes) -> None:
        """Add what this fit has spent; a later failure takes nothing back."""
        own = Budget(codes.epsilon)
        self.spent_ = own if self.spent_ is None else self.spent_ + own
        # One fit with known noise is enough to know the label.
        self.private_ = self.private_ is not False and self.random_state is None
