"""Models whose encoders read text: the same models, reading numbers for the texts.

Records are numbers everywhere else, and what an encoder makes of a text depends on its
place among the encoder's categories only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import numpy as np

# The known texts of a column; a text is coded as its place among them.
Texts = Mapping[str, tuple[str, ...]]


def coded(model: Any) -> tuple[Any, Texts]:
    """Return the model as one of numbers, and the texts that its columns may hold.

    A model whose encoders read no text is returned as it is, with none.
    """
    if not any(True for _ in _encoders(model)):
        return model, {}
    known: dict[str, tuple[str, ...]] = {}
    made = deepcopy(model)
    for columns, encoder, step, place in _encoders(made):
        known |= _recoded(columns, encoder)
        for earlier in range(place):
            # An imputer of texts has nothing to do: records have no gaps.
            step.steps[earlier] = (step.steps[earlier][0], "passthrough")
    return made, known


def _recoded(columns: list[str], encoder: Any) -> dict[str, tuple[str, ...]]:
    """Let an encoder read places for its texts; return those of each column."""
    known = {}
    read = zip(columns, encoder.categories_, strict=True)
    for place, (name, levels) in enumerate(read):
        if _texts(levels):
            known[name] = tuple(str(level) for level in levels)
            encoder.categories_[place] = np.arange(len(levels), dtype=np.float64)
    encoder.categories = "auto"
    # What an imputer in front took away, no longer is.
    encoder.feature_names_in_ = np.array(columns, dtype=object)
    return known


def _texts(levels: Any) -> bool:
    return np.asarray(levels).dtype.kind in "OUS"


def _encoders(model: Any) -> Iterator[tuple[list[str], Any, Any, int]]:
    """Yield each encoder of text columns: their names, it, its pipeline, its place."""
    for transformer in _first_steps(model):
        for _, part, columns in getattr(transformer, "transformers_", ()):
            names = [columns] if isinstance(columns, str) else list(columns)
            steps = [each for _, each in getattr(part, "steps", [("", part)])]
            for place, step in enumerate(steps):
                read = getattr(step, "categories_", ())
                if len(read) == len(names) and any(map(_texts, read)):
                    yield [str(name) for name in names], step, part, place
                    break


def _first_steps(model: Any) -> Iterator[Any]:
    """Yield what a model's own columns go into."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    steps = getattr(model, "steps", None)
    yield model if steps is None else steps[0][1]
