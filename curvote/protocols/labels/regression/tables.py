"""The tables of private numbers."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import TEXT, Table

_NUMBER = {"record": TEXT, "value": "float64"}
# What the clients of the histogram sent, of those to learn from, and of the score.
HISTOGRAM_NUMBERS: Final = Table("shape_numbers", {"value": "float64"})
NUMBERS: Final = Table("numbers", _NUMBER)
HOLDOUT_NUMBERS: Final = Table("held_numbers", _NUMBER)
# What the server says of records whose numbers it has not heard of.
FORECAST: Final = Table(
    "forecast",
    {"record": TEXT, "value": "float64", "mean": "float64"},
    unit="number",
)
