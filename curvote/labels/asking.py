"""Codes drawn from plain labels in memory, and the budget that each label has spent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from curvote.counted import Counts, ReleaseCounter, one_release_each
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.encoding import encode
from curvote.labels.given import LP_2ST, check_labels, matching_codes
from curvote.labels.places import places_of
from curvote.labels.predicted import check_same_length
from curvote.labels.two_rounds import ROUNDS_ENCODER, TwoRounds
from curvote.privacy import Budget
from curvote.random_state import random_sources
from curvote.validate import FloatArray


class CodeCollector(ReleaseCounter):
    """A scikit-learn class whose ``fit`` takes `Codes`, or draws them from labels.

    ``spent_`` is what a label of all those fits has spent, ``releases_`` and
    ``private_`` are those of `ReleaseCounter`; all are None where only codes came.
    """

    alternative = "Draw codes once, by encode, and give them to PrivateSearchCV."
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

    def _random_sources(self) -> tuple[np.random.Generator, Entropy]:
        """Return the server's generator, and the source of the labels' noise."""
        return random_sources(self.random_state)

    def _collect_codes(
        self,
        model: Any,
        X: FloatArray,
        y: Any,
        rng: np.random.Generator,
        entropy: Entropy,
    ) -> Codes:
        """Return the given codes, or codes drawn from plain labels.

        Both must be of the ``classes``, ``epsilon`` and ``encoder`` of ``model``.
        """
        if isinstance(y, Codes):
            check_same_length(len(X), y)
            return matching_codes(y, model.classes, model.epsilon, model.encoder)
        labels = check_labels(y, len(X))
        classes, places = places_of(labels, model.classes)
        self._refuse_few_labels(model, len(X), len(classes))
        if model.encoder == LP_2ST:
            rounds = TwoRounds(classes[places], classes, model.epsilon, entropy)
            return self._collect_in_two_rounds(model, X, rounds, rng)
        codes = encode(labels, model.classes, model.epsilon, model.encoder, entropy)
        self._record_spending(Budget(codes.epsilon), one_release_each(len(X)))
        return codes

    def _refuse_few_labels(self, model: Any, n: int, k: int) -> None:
        """Refuse ``n`` labels of ``k`` classes that would be spent in vain."""

    def _collect_in_two_rounds(
        self, model: Any, X: FloatArray, rounds: TwoRounds, rng: np.random.Generator
    ) -> Codes:
        first_model = clone(model).set_params(
            classes=rounds.classes, encoder=ROUNDS_ENCODER
        )

        def learn_prior(
            first: NDArray[np.intp], codes: Codes, second: NDArray[np.intp]
        ) -> FloatArray:
            return np.asarray(first_model.fit(X[first], codes).predict_proba(X[second]))

        batches = rounds.codes(rng.permutation(len(X)), learn_prior)
        self._record_spending(Budget(next(batches).epsilon), one_release_each(len(X)))
        return next(batches)
