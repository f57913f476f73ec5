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


def code_texts(model: Any) -> tuple[Any, Texts]:
    """Return the model as one of numbers, and the texts of its columns.

    A model whose encoders read no text is returned as it is, with none.
    """
    if not any(True for _ in _text_encoders(model)):
        return model, {}
    texts: dict[str, tuple[str, ...]] = {}
    copy = deepcopy(model)
    for columns, encoder, step, place in _text_encoders(copy):
        texts |= _recode_encoder(columns, encoder)
        for earlier in range(place):
            # An imputer of texts has nothing to do: records have no gaps.
            step.steps[earlier] = (step.steps[earlier][0], "passthrough")
    return copy, texts


def _recode_encoder(columns: list[str], encoder: Any) -> dict[str, tuple[str, ...]]:
    """Let an encoder read codes for its texts; return those of each column."""
    texts = {}
    read = zip(columns, encoder.categories_, strict=True)
    for place, (name, levels) in enumerate(read):
        if _are_texts(levels):
            texts[name] = tuple(str(level) for level in levels)
            encoder.categories_[place] = np.arange(len(levels), dtype=np.float64)
    encoder.categories = "auto"
    # What an imputer in front took away, no longer is.
    encoder.feature_names_in_ = np.array(columns, dtype=object)
    return texts


def _are_texts(levels: Any) -> bool:
    """Return whether an encoder's levels are texts."""
    return np.asarray(levels).dtype.kind in "OUS"


def _text_encoders(model: Any) -> Iterator[tuple[list[str], Any, Any, int]]:
    """Yield names, encoder, pipeline and index of each text encoder."""
    for transformer in _first_transformers(model):
        for _, part, columns in getattr(transformer, "transformers_", ()):
            names = [columns] if isinstance(columns, str) else list(columns)
            steps = [
                step_of_part for _, step_of_part in getattr(part, "steps", [("", part)])
            ]
            for place, step in enumerate(steps):
                read = getattr(step, "categories_", ())
                if len(read) == len(names) and any(map(_are_texts, read)):
                    yield [str(name) for name in names], step, part, place
                    break


def _first_transformers(model: Any) -> Iterator[Any]:
    """Yield the transformers that take the model's own columns."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    steps = getattr(model, "steps", None)
    yield model if steps is None else steps[0][1]
