"""Channel between a record and a model: noise, in the model's own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as every
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms import base
from curvote.mechanisms.factory import make, mechanism_class

# The levels of a numeric feature that a mechanism for labels is given.
LEVELS = 101


@dataclass(frozen=True)
class Part:
    """Mechanism and the sensitive features that it noises, by index 0..s-1."""

    mechanism: base.Mechanism
    places: tuple[int, ...]


@dataclass(frozen=True)
class Channel:
    """Mechanisms in parallel; features of none are replaced by a constant.

    ``bounds`` (s, 2) are public and map onto a mechanism's domain and back; a value
    beyond them is moved to the edge. ``fill_value`` (s,) stands in the place of what is
    withheld. With ``clip`` an output beyond the bounds is moved to the edge, too.
    """

    parts: Sequence[Part]
    bounds: FloatArray
    fill_value: FloatArray
    clip: bool = True

    def law(self, values: FloatArray) -> base.Mixture | None:
        """Return the law of the model's inputs for ``values`` (n, s), in its units.

        None where a mechanism has none that is a mixture of products, or the parts
        together have more than ``law.MAX_TERMS``.
        """
        part_laws = [
            part.mechanism.law(self._to_domain(part, values)) for part in self.parts
        ]
        laws = [law for law in part_laws if law is not None]
        terms = int(np.prod([float(len(law.terms)) for law in laws]))
        if len(laws) < len(part_laws) or terms > base.MAX_TERMS:
            return None
        laws = list(map(self._map_law, self.parts, laws))
        # The joint law of all features has a term for each choice of the parts' terms.
        chosen = list(every(*(range(len(law.terms)) for law in laws)))
        weights = np.ones((len(values), len(chosen)))
        for law, picked in zip(laws, zip(*chosen, strict=True), strict=True):
            weights *= law.weights[:, list(picked)]
        ones = np.ones((len(values), 1))
        constants = [base.atomic_law([value], ones) for value in self.fill_value]
        joint = []
        for choice in chosen:
            row = list(constants)
            for part, law, which in zip(self.parts, laws, choice, strict=True):
                for place, term in zip(part.places, law.terms[which], strict=True):
                    row[place] = term
            joint.append(tuple(row))
        return base.Mixture(weights, joint)

    def draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        """Return one draw of the model's inputs for each row of ``values`` (n, s)."""
        noised = np.tile(self.fill_value, (len(values), 1))
        for part in self.parts:
            outputs = part.mechanism.simulate(self._to_domain(part, values), entropy)
            noised[:, list(part.places)] = self._from_outputs(part, outputs)
        return noised

    def _part_bounds(self, part: Part) -> FloatArray:
        """Return the bounds of a part's features, (2, k)."""
        return self.bounds[list(part.places)].T

    def _to_domain(self, part: Part, values: FloatArray) -> NDArray[Any]:
        """Return the part's features on the mechanism's domain, clipped to it."""
        low, high = self._part_bounds(part)
        share = np.clip((values[:, list(part.places)] - low) / (high - low), 0, 1)
        start, stop = part.mechanism.domain
        return part.mechanism.to_inputs(start + (stop - start) * share)

    def _output_line(self, part: Part) -> tuple[FloatArray, FloatArray]:
        """Return the scale and the shift from outputs to the model's units."""
        low, high = self._part_bounds(part)
        start, stop = part.mechanism.scale_of_outputs
        scale = (high - low) / (stop - start)
        return scale, low - scale * start

    def _from_outputs(self, part: Part, outputs: NDArray[Any]) -> FloatArray:
        """Return outputs in the model's units, as ``Law.mapped`` computes them."""
        numbers = np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)
        scale, shift = self._output_line(part)
        values = shift + scale * numbers
        ends = self._part_bounds(part)
        return np.asarray(np.clip(values, *ends) if self.clip else values)

    def _map_law(self, part: Part, law: base.Mixture) -> base.Mixture:
        """Return the law of `_from_outputs`; a law that terms share is mapped once."""
        scale, shift = self._output_line(part)
        mapped: dict[tuple[int, int], base.Law] = {}
        for i, feature_law in (
            (i, f) for term in law.terms for i, f in enumerate(term)
        ):
            if (i, id(feature_law)) not in mapped:
                new = feature_law.scaled(float(scale[i]), float(shift[i]))
                low, high = map(float, self.bounds[part.places[i]])
                mapped[i, id(feature_law)] = (
                    new.clipped(low, high) if self.clip else new
                )
        terms = [tuple(mapped[i, id(f)] for i, f in enumerate(t)) for t in law.terms]
        return base.Mixture(law.weights, terms)


def make_channel(
    mechanism: str,
    *,
    epsilon: float,
    bounds: ArrayLike,
    fill_value: ArrayLike,
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
    edges = check_bounds(bounds)
    shares = _check_shares(split, len(edges))
    constants = validate.finite(instead=fill_value)
    kind = mechanism_class(mechanism)
    if issubclass(kind, base.VectorMechanism):
        places = tuple(np.flatnonzero(shares).tolist())
        vector = make(mechanism, epsilon=epsilon, d=len(places), **params)
        return Channel([Part(vector, places)], edges, constants, clip)
    if issubclass(kind, base.LabelMechanism):
        params = {"n_classes": LEVELS} | params
    parts = [
        Part(make(mechanism, epsilon=epsilon * float(share), **params), (place,))
        for place, share in enumerate(shares)
        if share > 0
    ]
    return Channel(parts, edges, constants, clip)


def withheld_channel(bounds: ArrayLike, fill_value: ArrayLike) -> Channel:
    """Return the channel that sends nothing: epsilon 0."""
    return Channel([], check_bounds(bounds), validate.finite(instead=fill_value))


def check_bounds(bounds: ArrayLike) -> FloatArray:
    """Return the bounds, (s, 2); anything but (low, high) pairs is a UserError."""
    values = validate.finite(bounds=bounds)
    if values.ndim != 2 or values.shape[1] != 2 or (values[:, 0] >= values[:, 1]).any():
        raise UserError(
            "bounds must be a pair (low, high) with low < high for each sensitive"
            f" feature; given: {validate.format_value(values.tolist())}."
        )
    return values


def _check_shares(split: ArrayLike | None, s: int) -> FloatArray:
    """Return the features' shares of epsilon; wrong ones are a UserError."""
    if split is None:
        return np.full(s, 1 / s)
    values = validate.finite(split=split)
    if values.shape != (s,) or (values < 0).any() or abs(values.sum() - 1) > 1e-9:
        raise UserError(
            f"split is {validate.format_value(values.tolist())}; it must hold a share"
            f" of epsilon for each of the {s} sensitive features, 0 for one that is"
            " withheld, and add up to 1."
        )
    return values
