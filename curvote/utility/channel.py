"""What stands between a record and a model: noise, in the model's own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as every
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms.base import LabelMechanism, Mechanism, VectorMechanism
from curvote.mechanisms.law import MOST_TERMS, Law, Mixture, atoms
from curvote.mechanisms.making import kind, make
from curvote.validate import FloatArray

# The levels of a numeric feature that a mechanism for labels is given.
LEVELS = 101


@dataclass(frozen=True)
class Part:
    """A mechanism and the sensitive features that it noises, by their places 0..s-1."""

    mechanism: Mechanism
    places: tuple[int, ...]


@dataclass(frozen=True)
class Channel:
    """Parts in parallel; features in no part are withheld, a constant in their place.

    ``bounds`` (s, 2) are public and map onto a mechanism's domain and back; a value
    beyond them is moved to the edge. ``instead`` (s,) stands in the place of what is
    withheld. With ``clip`` an output beyond the bounds is moved to the edge, too.
    """

    parts: Sequence[Part]
    bounds: FloatArray
    instead: FloatArray
    clip: bool = True

    def law(self, values: FloatArray) -> Mixture | None:
        """Return the law of what the model sees for ``values`` (n, s), in its units.

        None where a mechanism has none that is a mixture of products, or the parts
        together have more than ``law.MOST_TERMS``.
        """
        found = [part.mechanism.law(self._into(part, values)) for part in self.parts]
        laws = [law for law in found if law is not None]
        if len(laws) < len(found) or _terms(laws) > MOST_TERMS:
            return None
        pairs = zip(self.parts, laws, strict=True)
        return self._joined([self._back(*pair) for pair in pairs], len(values))

    def draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        """Return one draw of what the model sees for each row of ``values`` (n, s)."""
        seen = np.tile(self.instead, (len(values), 1))
        for part in self.parts:
            drawn = part.mechanism.simulate(self._into(part, values), entropy)
            seen[:, list(part.places)] = self._out(part, drawn)
        return seen

    def _ends(self, part: Part) -> FloatArray:
        return self.bounds[list(part.places)].T

    def _into(self, part: Part, values: FloatArray) -> NDArray[Any]:
        """Return the part's features on the mechanism's domain, clipped to it."""
        low, high = self._ends(part)
        share = np.clip((values[:, list(part.places)] - low) / (high - low), 0, 1)
        start, stop = part.mechanism.domain
        return part.mechanism.shaped(start + (stop - start) * share)

    def _line(self, part: Part) -> tuple[FloatArray, FloatArray]:
        """Return the scale and the shift from outputs to the model's units."""
        low, high = self._ends(part)
        start, stop = part.mechanism.scale_of_outputs
        scale = (high - low) / (stop - start)
        return scale, low - scale * start

    def _out(self, part: Part, outputs: NDArray[Any]) -> FloatArray:
        """Return outputs as the model sees them, computed as ``Law.mapped`` does."""
        drawn = np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)
        scale, shift = self._line(part)
        seen = shift + scale * drawn
        return np.asarray(np.clip(seen, *self._ends(part)) if self.clip else seen)

    def _back(self, part: Part, law: Mixture) -> Mixture:
        """Return the law of ``_out``; a law that terms share is mapped once."""
        known: dict[tuple[int, int], Law] = {}
        for term in law.terms:
            for i, each in enumerate(term):
                if (i, id(each)) not in known:
                    known[i, id(each)] = self._seen(part, i, each)
        terms = [tuple(known[i, id(law)] for i, law in enumerate(t)) for t in law.terms]
        return Mixture(law.weights, terms)

    def _seen(self, part: Part, i: int, law: Law) -> Law:
        scale, shift = (float(each[i]) for each in self._line(part))
        seen = law.mapped(scale, shift)
        low, high = self.bounds[part.places[i]]
        return seen.clipped(float(low), float(high)) if self.clip else seen

    def _joined(self, laws: list[Mixture], n: int) -> Mixture:
        """Return the law of all features: every choice of one term from each part."""
        chosen = list(every(*(range(len(law.terms)) for law in laws)))
        weights = np.ones((n, len(chosen)))
        for law, picked in zip(laws, zip(*chosen, strict=True), strict=True):
            weights *= law.weights[:, list(picked)]
        constants = [atoms([value], np.ones((n, 1))) for value in self.instead]
        terms = [self._term(laws, choice, constants) for choice in chosen]
        return Mixture(weights, terms)

    def _term(
        self, laws: list[Mixture], choice: tuple[int, ...], constants: list[Law]
    ) -> tuple[Law, ...]:
        row = list(constants)
        for part, law, which in zip(self.parts, laws, choice, strict=True):
            for place, each in zip(part.places, law.terms[which], strict=True):
                row[place] = each
        return tuple(row)


def _terms(laws: list[Mixture]) -> int:
    return int(np.prod([float(len(law.terms)) for law in laws]))


def channel_of(
    mechanism: str,
    *,
    epsilon: float,
    bounds: ArrayLike,
    instead: ArrayLike,
    split: ArrayLike | None = None,
    clip: bool = True,
    **params: Any,
) -> Channel:
    """Return the channel of a mechanism with a total of ``epsilon`` for the record.

    ``split`` (s,) are the features' shares of it, 0 for withheld, equal if not given;
    a mechanism for whole records takes all features that have a share, at the whole
    epsilon. A mechanism for labels is given each feature on ``n_classes`` levels, 101
    if not given. ``params`` are the mechanism's own. Shares that are negative or do
    not add up to 1, and bounds the wrong way round, are UserErrors.
    """
    edges = checked_bounds(bounds)
    shares = _shares(split, len(edges))
    constants = validate.finite(instead=instead)
    whole = issubclass(kind(mechanism), VectorMechanism)
    make_parts = _whole if whole else _each
    parts = make_parts(mechanism, epsilon, shares, params)
    return Channel(parts, edges, constants, clip)


def _whole(
    mechanism: str, epsilon: float, shares: FloatArray, params: dict[str, Any]
) -> list[Part]:
    places = tuple(np.flatnonzero(shares).tolist())
    made = make(mechanism, epsilon=epsilon, d=len(places), **params)
    return [Part(made, places)]


def _each(
    mechanism: str, epsilon: float, shares: FloatArray, params: dict[str, Any]
) -> list[Part]:
    if issubclass(kind(mechanism), LabelMechanism):
        params = {"n_classes": LEVELS} | params
    return [
        Part(make(mechanism, epsilon=epsilon * float(share), **params), (place,))
        for place, share in enumerate(shares)
        if share > 0
    ]


def withheld(bounds: ArrayLike, instead: ArrayLike) -> Channel:
    """Return the channel that sends nothing: epsilon 0."""
    return Channel([], checked_bounds(bounds), validate.finite(instead=instead))


def checked_bounds(bounds: ArrayLike) -> FloatArray:
    """Return the bounds, (s, 2); anything but (low, high) pairs is a UserError."""
    given = validate.finite(bounds=bounds)
    if given.ndim != 2 or given.shape[1] != 2 or (given[:, 0] >= given[:, 1]).any():
        raise UserError(
            "bounds must be a pair (low, high) with low < high for each sensitive"
            f" feature; given: {validate.shown(given.tolist())}."
        )
    return given


def _shares(split: ArrayLike | None, s: int) -> FloatArray:
    if split is None:
        return np.full(s, 1 / s)
    given = validate.finite(split=split)
    if given.shape != (s,) or (given < 0).any() or abs(given.sum() - 1) > 1e-9:
        raise UserError(
            f"split is {validate.shown(given.tolist())}; it must hold a share of"
            f" epsilon for each of the {s} sensitive features, 0 for one that is"
            " withheld, and add up to 1."
        )
    return given
