"""What leaves whom: a person's place and colour, and a colour that a shop saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns
from curvote.entropy import Entropy, stream
from curvote.mechanisms import per_coordinate
from curvote.mechanisms.k_rr import KRR
from curvote.toy.tables import CLASSES

Array = NDArray[np.float64]


class Colour:
    """One colour of three, by k-ary randomized response with the whole budget."""

    name, stage, table, party = "colour", "count", "tally", "shops"

    def colour(self, epsilon: float) -> KRR:
        """Return what hides a colour."""
        return KRR(epsilon=epsilon, n_classes=len(CLASSES))

    def draw(self, epsilon: float, known: Columns, entropy: Entropy) -> Columns:
        """Return the noised colours."""
        kept = self.colour(epsilon).randomize(
            known["colour"], stream(entropy, "label_noise")
        )
        return {"colour": kept.astype(np.int8)}


class Answer(Colour):
    """A place and a colour, half of the budget each."""

    name, stage, table, party = "answer", "ask", "answers", "people"

    def draw(self, epsilon: float, known: Columns, entropy: Entropy) -> Columns:
        """Return noised places (n, 2) and colours (n,)."""
        hide = per_coordinate("laplace", 2, epsilon / 2)
        place = hide.randomize(known["place"], stream(entropy, "feature_noise"))
        return {"place": place} | super().draw(epsilon / 2, known, entropy)


MESSAGES: Mapping[str, Any] = {m.name: m for m in (Answer(), Colour())}
