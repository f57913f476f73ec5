"""What stands between a record and a model: noise, in the model's own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as every

import numpy as np

from curvote.entropy import Entropy
from curvote.mechanisms.base import Mechanism
from curvote.mechanisms.law import Law, Mixture, atoms
from curvote.validate import FloatArray


@dataclass(frozen=True)
class Part:
    """A mechanism and the sensitive features that it noises, by their places 0..s-1."""

    mechanism: Mechanism
    places: tuple[int, ...]


@dataclass(frozen=True)
class Channel:
    """Parts in parallel; features in no part are withheld, a constant in their place.

    ``bounds`` (s, 2) are public and map onto a mechanism's domain and back;
    ``instead`` (s,) stands in the place of what is withheld. With ``clip`` an output
    beyond the bounds is moved to the edge.
    """

    parts: Sequence[Part]
    bounds: FloatArray
    instead: FloatArray
    clip: bool = True

    def law(self, values: FloatArray) -> Mixture | None:
        """Return the law of what the model sees for ``values`` (n, s), in its units.

        None where a mechanism has none that is a mixture of products.
        """
        found = [self._part(part, values) for part in self.parts]
        laws = [each for each in found if each is not None]
        return None if len(laws) < len(found) else self._joined(laws, len(values))

    def _part(self, part: Part, values: FloatArray) -> Mixture | None:
        law = part.mechanism.law(self._into(part, values))
        if law is None:
            return None
        terms = [
            tuple(
                self._back(part, place, each)
                for place, each in zip(part.places, term, strict=True)
            )
            for term in law.terms
        ]
        return Mixture(law.weights, terms)

    def _into(self, part: Part, values: FloatArray) -> FloatArray:
        """Return the part's features on the mechanism's domain, clipped to it."""
        low, high = self._ends(part)
        share = np.clip((values[:, list(part.places)] - low) / (high - low), 0, 1)
        start, stop = part.mechanism.domain
        return part.mechanism.shaped(start + (stop - start) * share)

    def _out(self, part: Part, outputs: np.ndarray) -> FloatArray:
        """Return outputs as the model sees them, computed as `Law.mapped` does."""
        low, high = self._ends(part)
        drawn = np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)
        start, stop = part.mechanism.scale_of_outputs
        scale = (high - low) / (stop - start)
        seen = (low - scale * start) + scale * drawn
        return np.asarray(np.clip(seen, low, high) if self.clip else seen)

    def _backed(self, part: Part, term: tuple[Law, ...]) -> tuple[Law, ...]:
        pairs = zip(part.places, term, strict=True)
        return tuple(self._back(part, place, law) for place, law in pairs)

    def _back(self, part: Part, place: int, law: Law) -> Law:
        low, high = self.bounds[place]
        start, stop = part.mechanism.scale_of_outputs
        scale = (high - low) / (stop - start)
        seen = law.mapped(scale, low - scale * start)
        return seen.clipped(low, high) if self.clip else seen

    def _ends(self, part: Part) -> FloatArray:
        return self.bounds[list(part.places)].T

    def _joined(self, laws: list[Mixture], n: int) -> Mixture:
        """Return the law of all features: every choice of one term from each part."""
        chosen = list(every(*(range(len(law.terms)) for law in laws)))
        weights = np.ones((n, len(chosen)))
        for law, picked in zip(laws, np.array(chosen, dtype=int).T, strict=True):
            weights *= law.weights[:, picked]
        return Mixture(weights, [self._term(laws, choice, n) for choice in chosen])

    def _term(
        self, laws: list[Mixture], choice: tuple[int, ...], n: int
    ) -> tuple[Law, ...]:
        row = [atoms([value], np.ones((n, 1))) for value in self.instead]
        for part, law, which in zip(self.parts, laws, choice, strict=True):
            for place, each in zip(part.places, law.terms[which], strict=True):
                row[place] = each
        return tuple(row)

    def draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        """Return one draw of what the model sees for each row of ``values`` (n, s)."""
        seen = np.tile(self.instead, (len(values), 1))
        for part in self.parts:
            drawn = part.mechanism.simulate(self._into(part, values), entropy)
            seen[:, list(part.places)] = self._out(part, drawn)
        return seen
