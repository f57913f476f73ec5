"""Notes on each model for the reader of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from curvote.chain.measure import SCORES
from curvote.chain.view import View
from curvote.protocols.labels.methods import ACCURACY
from curvote.protocols.utility.methods import CLEAN, FEATURES
from curvote.protocols.utility.packing import Arrays, unpack_arrays


def model_notes(views: Sequence[View]) -> Iterator[str]:
    """Yield a note on each model's engine, and on constant answers."""
    models = {str(view.cell["learner"]): view for view in views}
    for name, view in models.items():
        stored = unpack_arrays(view.columns("surface", "known")["known"][0])
        yield f"{name}: {_describe_engine(stored)}."
        if len(np.unique(stored[f"{FEATURES}/clean"])) == 1:
            yield (
                f"{name} gives every record the same answer, right for"
                f" {_base_rate(view):.1%} of them: agreement is 1 or nearly, and means"
                " nothing. Balance its classes, or take another model."
            )


def _base_rate(view: View) -> float:
    """Return the base rate: how often the one answer is the label."""
    scores = view.read("surface", SCORES.name)
    mask = (scores["method"] == CLEAN.name) & (scores["metric"] == ACCURACY.name)
    return float(scores.loc[mask & scores["group"].isna(), "value"].iloc[0])


def _describe_engine(arrays: Arrays) -> str:
    """Return the engine's name and why better ones refused."""
    engine, why = (str(arrays[f"{FEATURES}/{name}"]) for name in ("engine", "why"))
    reason = f" ({why.rstrip('.')})" if why else ""
    return f"read by the engine {engine.replace('_', ' ')}{reason}"
