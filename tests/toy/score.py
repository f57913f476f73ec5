"""Stage report: how often each model is right, and how sure."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Rows, StageContext
from curvote.toy.model import Nearest
from curvote.toy.tables import PARTIES


def score(context: StageContext) -> Rows:
    """Return the table ``scores``: two metrics of two methods, and one beside."""
    town = context.rows("gather", "town")
    test = town["party"] == PARTIES.index("test")
    places, colours = town["place"][test], town["colour"][test]
    made = context.rows("fit_models", "models")
    told = []
    for method, file in zip(made["method"], made["model"], strict=True):
        chances = Nearest.from_bytes(file).chances(places)
        right = float((chances.argmax(axis=1) == colours).mean())
        own = np.maximum(chances[np.arange(len(colours)), colours], 1e-12)
        told += [(method, "accuracy", right)]
        told += [(method, "certainty", float(chances.max(axis=1).mean()))]
        told += [(method, "log_loss", float(-np.log(own).mean()))]
    columns = zip(*told, strict=True)
    names = ("method", "metric", "value")
    kinds = (object, object, np.float64)
    return {
        "scores": {
            name: np.array(column, dtype=kind)
            for name, column, kind in zip(names, columns, kinds, strict=True)
        }
    }
