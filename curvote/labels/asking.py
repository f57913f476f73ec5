"""Playing the clients: codes drawn from plain labels, and what each label has spent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from curvote.counted import Counted, Counts, every
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.encoding import encode
from curvote.labels.given import LP_2ST, fitting, plain_labels
from curvote.labels.places import places_of
from curvote.labels.predicted import same_length
from curvote.labels.two_rounds import ENCODER, TwoRounds
from curvote.privacy import Budget
from curvote.random_state import sources
from curvote.validate import FloatArray


class AsksLabels(Counted):
    """A scikit-learn class whose ``fit`` takes `Codes`, or asks plain labels for them.

    ``spent_`` is what a label of all those fits has spent, ``releases_`` and
    ``private_`` are those of `Counted`; all are None where only codes came.
    """

    instead = "Draw codes once, by encode, and give them to PrivateSearchCV."
    spent_: Budget | None = None
    releases_: Counts | None = None
    private_: bool | None = None

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on plain labels y (n,); `private_score` takes codes."""
        if isinstance(y, Codes):
            raise UserError(
                "y holds codes, which are no labels; write private_score(model, X,"
                " codes), or choose by PrivateSearchCV."
            )
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]

    def _sources(self) -> tuple[np.random.Generator, Entropy]:
        """Return what the server draws from, and where the labels' noise comes from."""
        return sources(self.random_state)

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
        self._spend(Budget(codes.epsilon), every(len(X)))
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
        self._spend(Budget(next(made).epsilon), every(len(X)))
        return next(made)
