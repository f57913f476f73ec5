"""Public bounds, centres and category codes of a table's features."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from curvote.errors import InternalError


@dataclass(frozen=True)
class Feature:
    """One feature of a table, with bounds that are known without any record.

    ``why`` names the source of the bounds: domain knowledge, never the data.
    ``centre`` is public, too (default: the midpoint of the bounds). ``missing`` are
    numbers that mean "missing", beside the table's text marks. ``categories`` are
    coded 0..k-1 in alphabetical order. ``integral`` allows whole numbers only.
    """

    name: str
    unit: str
    lower: float
    upper: float
    why: str
    centre: float | None = None
    missing: tuple[float, ...] = ()
    categories: tuple[str, ...] = ()
    integral: bool = False

    def __post_init__(self) -> None:
        ordered = -math.inf < self.lower < self.upper < math.inf
        if not ordered or not self.lower <= self.middle <= self.upper:
            raise InternalError(f"the bounds of feature {self.name} are not in order.")
        if self.categories not in {(), tuple(sorted({*self.categories}))}:
            raise InternalError(f"the categories of {self.name} are not in order.")

    @property
    def middle(self) -> float:
        """Return the public centre: the one stated, else the midpoint."""
        return (self.lower + self.upper) / 2 if self.centre is None else self.centre

    def to_json(self) -> dict[str, Any]:
        """Return name, unit, lower, upper, centre and why as plain JSON values."""
        return {
            "name": self.name,
            "unit": self.unit,
            "lower": float(self.lower),
            "upper": float(self.upper),
            "centre": float(self.middle),
            "why": self.why,
        }


def category_feature(name: str, categories: Collection[str], why: str) -> Feature:
    """Return a feature of text ``categories``, coded 0..k-1 in alphabetical order."""
    texts = tuple(sorted(categories))
    codes = ", ".join(f"{code} = {text}" for code, text in enumerate(texts))
    top = len(texts) - 1
    return Feature(name, f"code: {codes}", 0, top, why, categories=texts)


def indicator_features(feature: Feature) -> tuple[Feature, ...]:
    """Return one feature of values 0 and 1 for each category of ``feature``."""
    return tuple(
        Feature(f"{feature.name} = {text}", "0 or 1", 0, 1, feature.why, integral=True)
        for text in feature.categories
    )
