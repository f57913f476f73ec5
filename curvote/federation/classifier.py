"""The classifiers of many servers as one model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from curvote.curve_classifier import CurveClassifier
from curvote.errors import UserError
from curvote.named_columns import chosen

SERVER = "server"


class ServersClassifier(ClassifierMixin, BaseEstimator):
    """The finished classifiers of all servers, each for its own clients.

    ``predict`` takes a DataFrame with the columns of a curve and one more, ``server``:
    the number, from 0, of the server that a client belongs to.
    """

    def __init__(self, servers: list[CurveClassifier]) -> None:
        self.servers = servers

    @property
    def columns(self) -> list[str]:
        """The names of the columns that ``predict`` takes."""
        return [SERVER, *self.servers[0].columns]

    @property
    def classes_(self) -> NDArray[Any]:
        """The two labels, negative first."""
        return self.servers[0].classes_

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> NDArray[Any]:
        """Return what each row's server says; one that there is not is a UserError."""
        table = chosen(X, self.columns)
        whose = table[SERVER].to_numpy()
        self._check(whose)
        labels = np.empty(len(table), dtype=self.classes_.dtype)
        for number in np.unique(whose).astype(int):
            rows = whose == number
            labels[rows] = self.servers[number].predict(table[rows])
        return labels

    def _check(self, whose: NDArray[Any]) -> None:
        last = len(self.servers) - 1
        unknown = whose[~np.isin(whose, range(last + 1))]
        if len(unknown):
            raise UserError(f"server is {unknown[0]}; it must be from 0 to {last}.")
