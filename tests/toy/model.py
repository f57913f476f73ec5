"""The toy's classifier: centres, their weights, and a form that is stored as a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
WIDTH = 0.3


class Nearest:
    """Names the class of the nearest centre; ``weight`` is a prior, (K,)."""

    def __init__(
        self, classes: Sequence[str], columns: Sequence[str], centres: Any, weight: Any
    ) -> None:
        self.classes, self.columns = list(classes), list(columns)
        self.centres, self.weight = np.asarray(centres), np.asarray(weight)

    def chances(self, places: Array) -> Array:
        """Return the chance of each class for places (n, 2), an array (n, K)."""
        away = ((places[:, None] - self.centres) ** 2).sum(axis=2)
        logs = np.log(self.weight) - away / (2 * WIDTH**2)
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return a class for each row of a frame with the model's columns."""
        places = np.asarray(X[self.columns], dtype=np.float64)
        return np.array(self.classes)[self.chances(places).argmax(axis=1)]

    def to_bytes(self) -> bytes:
        """Return the file."""
        lists = {"centres": self.centres.tolist(), "weight": self.weight.tolist()}
        return json.dumps(vars(self) | lists).encode()

    @classmethod
    def from_bytes(cls, file: bytes) -> Nearest:
        """Return the classifier of a file."""
        return cls(**json.loads(file))
