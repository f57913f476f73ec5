"""What ``source:`` may say about a table; all of it is public."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, ValidationInfo, field_validator

from curvote.datasets.listed import ONCE
from curvote.datasets.own.given import LabelText
from curvote.datasets.own.labelled import Labelled
from curvote.datasets.tables.tabular import TableParameters

Text = Annotated[str, Field(min_length=1)]
Bounds = dict[str, tuple[FiniteFloat, FiniteFloat]]
Categories = dict[str, Annotated[tuple[LabelText, ...], ONCE]]


class Parameters(Labelled, TableParameters):
    """What ``source:`` may say: file, columns, classes, the features' public bounds.

    ``categories`` lists the texts of a feature that is no number. A mark of
    `table_rows.MARKS` that is listed there is a category, and not missing.
    """

    name: Literal["table"] = "table"
    path: Text
    label: Text
    features: Annotated[tuple[Text, ...], Field(min_length=1)]
    categories: Categories = Field(default_factory=dict)
    bounds: Bounds = Field(default_factory=dict)
    id: Text | None = None

    @field_validator("features")
    @classmethod
    def _once(cls, features: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        columns = [*features, info.data.get("label")]
        twice = sorted({name for name in features if columns.count(name) > 1})
        if twice:
            raise ValueError(f"columns that are named twice: {', '.join(twice)}")
        return features

    @field_validator("categories")
    @classmethod
    def _features(cls, categories: Categories, info: ValidationInfo) -> Categories:
        features = info.data.get("features", categories)
        other = [name for name in categories if name not in features]
        if other:
            raise ValueError(f"categories of what is no feature: {', '.join(other)}")
        return categories

    @field_validator("bounds")
    @classmethod
    def _complete(cls, bounds: Bounds, info: ValidationInfo) -> Bounds:
        if "categories" not in info.data:  # wrong, and said
            return bounds
        features = info.data.get("features", bounds)
        texts = info.data["categories"]
        wrong = [name for name, (low, high) in bounds.items() if not low < high]
        problems = {
            "every feature needs public bounds [low, high], or categories, known"
            " without the data; there are none for": [
                x for x in features if x not in {*bounds, *texts}
            ],
            "bounds of what is no feature": [x for x in bounds if x not in features],
            "bounds of what has categories": [x for x in bounds if x in texts],
            "the first must be below the second": wrong,
        }
        said = [f"{what}: {', '.join(who)}" for what, who in problems.items() if who]
        if said:
            raise ValueError("; ".join(said))
        return bounds

    @field_validator("id")
    @classmethod
    def _other(cls, name: str | None, info: ValidationInfo) -> str | None:
        if name in {*info.data.get("features", ()), info.data.get("label")} - {None}:
            raise ValueError(
                "it must be another column than the features and the label"
            )
        return name
