"""Records to compare, and the search of a domain for those that stand out."""

import math
from collections.abc import Sequence
from itertools import combinations
from numbers import Real
from typing import Any

import numpy as np

from curvote.audit.caller import Caller
from curvote.audit.outcomes import Columns, Raised
from curvote.base.errors import UserError
from curvote.checks.events import LARGE, FloatArray, finite_rows

Records = tuple[Any, Any]
# Records of a domain that are searched, those that are left of them, and of a list.
SCREENED, STANDING_OUT, RANKED = 1000, 4, 16
FEWEST_DRAWS = 8
# Corners of the numbers, tried where they lie in the domain.
CORNERS = (0.0, -0.0, 5e-324, 1e-300, 1e-9, -5e-324, -1e-9, 0.1, 1.0)
ODD = [math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, None]


class RecordSearch:
    """The records to compare, those of which a domain is searched first."""

    def __init__(self, caller: Caller, inputs: Any, *, odd: bool) -> None:
        self._caller, self._rng = caller, np.random.default_rng(0)
        self._neighbours = False
        self._domain: list[Any] = []
        self._corners: list[Any] = []
        if isinstance(inputs, tuple) and len(inputs) == 2:
            if all(isinstance(x, Real) and not isinstance(x, bool) for x in inputs):
                low, high, *corners = self._open_domain(*inputs)
                self.anchors, self._corners = [low, high, *ODD * odd], corners
                return
            self._neighbours = True
        elif not isinstance(inputs, list) or len(inputs) < 2:
            raise UserError("inputs are a tuple of two, or a list of at least two.")
        self.anchors = [*inputs]

    def _open_domain(self, low: Any, high: Any) -> list[Any]:
        """Fill the domain; return its corners."""
        if not 0 < high - low < math.inf:
            raise UserError(f"({low!r}, {high!r}) is no interval.")
        middle, width = low + (high - low) / 2, high - low
        if all(isinstance(x, int | np.integer) for x in (low, high)) and (
            self._has_whole_outputs(low) or self._is_refused(low + 0.5)
        ):
            count = min(SCREENED, width + 1)
            steps = {low + round(i * width / (count - 1)) for i in range(count)}
            self._domain = sorted(steps)
            corners = [low, high, (low + high) // 2, low + 1, high - 1]
        else:
            first = math.ceil(10 * max(low, -1e15))  # beyond, floats have no tenths
            tenths = np.arange(first, first + 201) / 10
            tenths = tenths[(tenths >= low) & (tenths <= high)]
            random_places = self._rng.uniform(low, high, SCREENED)
            places = np.concatenate([np.linspace(low, high, 21), tenths, random_places])
            self._domain = np.unique(places).tolist()
            beside = math.nextafter(low, math.inf), math.nextafter(high, -math.inf)
            inside = [x for x in CORNERS if low <= x <= high]
            corners = [float(low), float(high), middle, *beside, *inside]
        return [*{repr(x): x for x in corners}.values()]

    def _has_whole_outputs(self, record: Any) -> bool:
        """Return whether all numbers of some outcomes are integers."""
        (columns,) = self._caller.columns([record], FEWEST_DRAWS)
        return all((values == np.rint(values)).all() for values in columns.values())

    def _is_refused(self, record: Any) -> bool:
        outputs = self._caller.outputs(record, FEWEST_DRAWS)
        return all(isinstance(output, Raised) for output in outputs)

    def pairs(self, budget: int, most: int) -> list[Records]:
        """Return the pairs of records to rank, after a search by ``budget`` calls.

        Of ``most`` records at most: ends, then those that stand out, then corners.
        """
        records = self.anchors
        if self._neighbours:
            turned = [x[::-1] for x in records if isinstance(x, np.ndarray) and x.ndim]
            orders = [records, turned]
            return [(x, x2) for x, x2 in filter(None, orders)]
        if self._domain:
            extreme = self._standing_out(self._domain, STANDING_OUT, budget)
            low, high = self._domain[0], self._domain[-1]
            step = 1 if isinstance(low, int) else (high - low) / 50
            near = [min(x + step, high) for x in extreme]
            records = [*records, *extreme, *near, *self._corners]
            records = records[: max(most, len(self.anchors))]
        elif len(records) > (most := min(most, RANKED)):
            some = self._standing_out(records[2:], most - 2, budget)
            records = [*records[:2], *some]
        return [*combinations(records, 2)]

    def _standing_out(
        self, records: Sequence[Any], keep: int, budget: int
    ) -> list[Any]:
        """Return the records whose draws are least like those of all others.

        In rounds of half the budget, of which a sixteenth of the records is left.
        """
        most = max(budget // (2 * FEWEST_DRAWS), 2 * keep)
        some = sorted(self._rng.permutation(len(records))[:most])
        records = [records[i] for i in some]
        while len(records) > keep:
            n = max(budget // 2 // len(records), FEWEST_DRAWS // 2)
            draws = self._caller.columns(records, n)
            features = _features(draws, records if self._domain else None)
            off = np.abs(features - np.median(features, axis=0))
            off = off[:, off.max(axis=0) > 0]
            # The strangest of each feature, then the second ones, and so on.
            place = np.argsort(np.argsort(-off, axis=0, kind="stable"), axis=0)
            strangest = np.argsort(place.min(axis=1, initial=len(place)), kind="stable")
            size = max(keep, len(records) // 16)
            records = [records[i] for i in strangest[:size]]
        return [*records]


def _features(draws: Sequence[Columns], records: Sequence[Any] | None) -> FloatArray:
    """Return median, spread and number of values of each column, a row for each record.

    Where records are numbers the median is what is left of a straight line.
    """
    features: list[FloatArray] = []
    for name in {name: None for columns in draws for name in columns}:
        sides = [finite_rows(some.get(name, np.full(1, LARGE))) for some in draws]
        middles = np.array([np.median(side) for side in sides])
        if records is not None and np.abs(middles).max() < math.sqrt(LARGE):
            places = np.asarray(records, dtype=np.float64)
            places = (places - places.min()) / (np.ptp(places) or 1.0) - 0.5
            middles -= places * (places @ middles / max(places @ places, 1e-9))
        spreads = [np.abs(side - np.median(side)).mean() for side in sides]
        values = [len(np.unique(side)) / len(side) for side in sides]
        features += [middles, np.log(np.array(spreads) + 1e-12), np.array(values)]
    return np.stack(features, axis=1)
