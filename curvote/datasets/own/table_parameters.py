"""Wide tables of a user, one client a row: settings, cells."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    FiniteFloat,
    ValidationInfo,
    field_validator,
    model_validator,
)

from curvote.datasets.listed import DISTINCT_CLASSES
from curvote.datasets.own.given import CsvForm, LabelText
from curvote.datasets.own.labelled import Labelled
from curvote.datasets.tables.tabular import TableParameters

Text = Annotated[str, Field(min_length=1)]
Bounds = dict[str, tuple[FiniteFloat, FiniteFloat]]
Categories = dict[str, Annotated[tuple[LabelText, ...], DISTINCT_CLASSES]]


class Parameters(Labelled, TableParameters, CsvForm):
    """Settings of ``source:``: file, columns, classes, features' bounds.

    Rows of different ids are different people, however equal they look: with an ``id``
    the default of ``duplicates`` is ``keep``. ``missing_values`` are texts that mean
    missing, beside `table_rows.MARKS`. ``dates`` says of columns of dates how they are
    written, as ``%d.%m.%Y``; each counts as days since 1970-01-01, and its bounds may
    be dates like 1920-01-31.

    ``categories`` lists the texts of a feature that is no number. A mark of
    `table_rows.MARKS` that is listed there is a category, and not missing.
    """

    name: Literal["table"] = "table"
    path: Text
    label: Text
    features: Annotated[tuple[Text, ...], Field(min_length=1)]
    categories: Categories = Field(default_factory=dict)
    missing_values: tuple[Text, ...] = ()
    dates: dict[str, Text] = Field(default_factory=dict)
    bounds: Bounds = Field(default_factory=dict)
    id: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_repeats(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and values.get("id") is not None:
            return {"duplicates": "keep", **values}
        return values

    @field_validator("features")
    @classmethod
    def _check_features(
        cls, features: tuple[str, ...], info: ValidationInfo
    ) -> tuple[str, ...]:
        columns = [*features, info.data.get("label")]
        twice = sorted({name for name in features if columns.count(name) > 1})
        if twice:
            raise ValueError(f"columns that are named twice: {', '.join(twice)}")
        return features

    @field_validator("categories")
    @classmethod
    def _check_categories(
        cls, categories: Categories, info: ValidationInfo
    ) -> Categories:
        features = info.data.get("features", categories)
        other = [name for name in categories if name not in features]
        if other:
            raise ValueError(f"categories of what is no feature: {', '.join(other)}")
        return categories

    @field_validator("dates")
    @classmethod
    def _check_dates(
        cls, dates: dict[str, str], info: ValidationInfo
    ) -> dict[str, str]:
        features = info.data.get("features", dates)
        texts = info.data.get("categories", {})
        other = [name for name in dates if name not in features or name in texts]
        if other:
            raise ValueError(f"dates of what is no number: {', '.join(other)}")
        return dates

    @field_validator("bounds", mode="before")
    @classmethod
    def _dates_to_days(cls, bounds: Any, info: ValidationInfo) -> Any:
        """Return bounds that are dates as days since 1970-01-01."""
        dates = info.data.get("dates", {})
        if not isinstance(bounds, Mapping):
            return bounds
        return {
            name: [_date_to_days(end) for end in ends]
            if name in dates and isinstance(ends, list | tuple)
            else ends
            for name, ends in bounds.items()
        }

    @field_validator("bounds")
    @classmethod
    def _check_complete(cls, bounds: Bounds, info: ValidationInfo) -> Bounds:
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
        messages = [
            f"{what}: {', '.join(who)}" for what, who in problems.items() if who
        ]
        if messages:
            raise ValueError("; ".join(messages))
        return bounds

    @field_validator("id")
    @classmethod
    def _check_other_column(cls, name: str | None, info: ValidationInfo) -> str | None:
        if name in {*info.data.get("features", ()), info.data.get("label")} - {None}:
            raise ValueError(
                "it must be another column than the features and the label"
            )
        return name


def _date_to_days(end: object) -> object:
    """Return a date like 1920-01-31 as days since 1970-01-01."""
    try:
        return (date.fromisoformat(str(end)) - date(1970, 1, 1)).days
    except ValueError:
        return end
