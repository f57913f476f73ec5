"""Stage gather: everybody in town, with a place in [-1, 1]^2 and a colour."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.data.lookup import find_dataset
from curvote.toy.tables import CLASSES, PARTIES


def gather_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return what is public: the classes, and the names of the two numbers."""
    return {"title": "A toy town", "classes": CLASSES, "columns": ["east", "north"]}


def gather(context: StageContext) -> Rows:
    """Return the table ``town``: curves' means and slopes, and thirds of the circle."""
    source, sizes = context.params["source"], context.params["parties"]
    counts = [sizes[name] for name in PARTIES]
    rng = context.generator("simulate")
    dataset = find_dataset(source["name"])
    parameters = dataset.Parameters.model_validate(source)
    curves = dataset.clients(parameters, sum(counts), rng)["curve"]
    slopes = curves[:, -1] - curves[:, 0]
    place = np.column_stack([curves.mean(axis=1), slopes]) / np.array([1.8, 4.5])
    angle = np.arctan2(place[:, 1], place[:, 0]) + np.pi
    third = (angle * len(CLASSES) / (2 * np.pi)).astype(np.int8) % len(CLASSES)
    party = np.repeat(np.arange(len(PARTIES), dtype=np.int8), counts)
    return {"town": {"party": party, "place": place, "colour": third}}
