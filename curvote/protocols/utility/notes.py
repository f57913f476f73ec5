"""What a reader is told of each model before any number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from curvote.chain.measure import SCORES
from curvote.chain.view import View
from curvote.protocols.labels.methods import ACCURACY
from curvote.protocols.utility.methods import CLEAN, FEATURES
from curvote.protocols.utility.packing import Arrays, unpacked


def notes(views: Sequence[View]) -> Iterator[str]:
    """Yield how each model was read, and where its answers cannot change."""
    models = {str(view.cell["learner"]): view for view in views}
    for name, view in models.items():
        kept = unpacked(view.columns("surface", "known")["known"][0])
        yield f"{name}: {_read(kept)}."
        if len(np.unique(kept[f"{FEATURES}/clean"])) == 1:
            yield (
                f"{name} gives every record the same answer, right for"
                f" {_right(view):.1%} of them: agreement is 1 or nearly, and means"
                " nothing. Balance its classes, or take another model."
            )


def _right(view: View) -> float:
    """Return the base rate: how often the one answer is the label."""
    told = view.read("surface", SCORES.name)
    mine = (told["method"] == CLEAN.name) & (told["metric"] == ACCURACY.name)
    return float(told.loc[mine & told["group"].isna(), "value"].iloc[0])


def _read(kept: Arrays) -> str:
    engine, why = (str(kept[f"{FEATURES}/{name}"]) for name in ("engine", "why"))
    told = f" ({why.rstrip('.')})" if why else ""
    return f"read by the engine {engine.replace('_', ' ')}{told}"
