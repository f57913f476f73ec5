"""Employees of a company in Bangalore, Pune and New Delhi: who stays, who leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from curvote.datasets.tables.features import indicator_features
from curvote.datasets.tables.tabular import TableSchema

if TYPE_CHECKING:
    import pandas as pd


def one_hot(
    frame: pd.DataFrame, schema: TableSchema
) -> tuple[pd.DataFrame, TableSchema]:
    """Return table and schema with a 0/1 feature for each category of a feature.

    One person changes up to 2 of these coordinates for each categorical feature. A
    missing category is missing in each of them.
    """
    columns: dict[str, Any] = {}
    for feature in schema.features:
        codes = frame[feature.name]
        for code, indicator in enumerate(indicator_features(feature)):
            columns[indicator.name] = (codes == code).astype(float).where(codes.notna())
        if not feature.categories:
            columns[feature.name] = codes
    columns[schema.label] = frame[schema.label]
    return type(frame)(columns), one_hot_schema(schema)


def one_hot_schema(schema: TableSchema) -> TableSchema:
    """Return ``schema`` with a 0/1 feature for each category of a feature."""
    spread = tuple(
        feature for f in schema.features for feature in indicator_features(f) or (f,)
    )
    return replace(schema, features=spread)
