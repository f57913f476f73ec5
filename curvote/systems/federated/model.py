"""Model of many servers: their classifiers as one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from curvote.base.errors import UserError
from curvote.curves.columns import select_columns
from curvote.curves.curve_classifier import CurveClassifier

SERVER_COLUMN = "server"


class ServersClassifier(ClassifierMixin, BaseEstimator):
    """Classifiers of all servers, each for its own clients.

    ``predict`` takes a DataFrame with the columns of a curve and one more, ``server``:
    the number, from 0, of the server that a client belongs to.
    """

    def __init__(self, servers: list[CurveClassifier]) -> None:
        self.servers = servers

    @property
    def columns(self) -> list[str]:
        """The names of the columns that ``predict`` takes."""
        return [SERVER_COLUMN, *self.servers[0].columns]

    @property
    def classes_(self) -> NDArray[Any]:
        """The two labels, negative first."""
        return self.servers[0].classes_

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label by each row's server; refuse an unknown server."""
        table = select_columns(X, self.columns)
        servers = table[SERVER_COLUMN].to_numpy()
        last = len(self.servers) - 1
        unknown = servers[~np.isin(servers, range(last + 1))]
        if len(unknown):
            raise UserError(f"server is {unknown[0]}; it must be from 0 to {last}.")
        labels = np.empty(len(table), dtype=self.classes_.dtype)
        for number in np.unique(servers).astype(int):
            rows = servers == number
            labels[rows] = self.servers[number].predict(table[rows])
        return labels
