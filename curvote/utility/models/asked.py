"""Parsing of options on a model: sensitive features, bounds, totals of epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from curvote import validate
from curvote.errors import UserError, did_you_mean
from curvote.mechanisms.base import SMALLEST_EPSILON
from curvote.validate import FloatArray


def sensitive_columns(named: Sequence[str], features: Sequence[str]) -> tuple[int, ...]:
    """Return the column numbers of the sensitive features."""
    if not named:
        raise UserError("no feature is sensitive: name them, --sensitive age,bmi.")
    for name in named:
        validate.one_of(features, sensitive=name)
    if len(set(named)) < len(named):
        raise UserError(f"--sensitive names a feature twice: {','.join(named)}.")
    return tuple(list(features).index(name) for name in named)


def parse_bounds(texts: Sequence[str], sensitive: Sequence[str]) -> FloatArray:
    """Return public bounds (s, 2) of texts ``name=low:high``, one a feature.

    UserError: one is missing, given twice, of no sensitive feature, or the wrong way.
    """
    by_name: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, low, high = _parse_bound(text)
        if name not in sensitive:
            hint = did_you_mean(name, sensitive)
            raise UserError(f"--bounds {text}: {name!r} is not sensitive.{hint}")
        if name in by_name:
            raise UserError(f"--bounds gives those of {name} twice.")
        by_name[name] = low, high
    absent = [name for name in sensitive if name not in by_name]
    if absent:
        ask = " ".join(f"--bounds {name}=LOW:HIGH" for name in absent)
        raise UserError(
            f"no bounds of {', '.join(absent)}: state what anybody may know of the"
            f" least and the largest value, never the extremes of the records: {ask}"
        )
    return np.array([by_name[name] for name in sensitive])


def _parse_bound(text: str) -> tuple[str, float, float]:
    """Return name and bounds of one text ``name=low:high``."""
    name, _, ends = text.partition("=")
    low, _, high = ends.partition(":")
    try:
        least, most = float(low), float(high)
    except ValueError:
        raise UserError(
            f"--bounds {text}: write NAME=LOW:HIGH, such as age=0:100."
        ) from None
    if not (math.isfinite(least) and math.isfinite(most)):
        raise UserError(f"--bounds {text}: bounds are finite numbers.")
    if least >= most:
        correction = (
            f"; the other way round: {name}={high}:{low}" if least > most else ""
        )
        raise UserError(
            f"--bounds {text}: the first must be below the second{correction}."
        )
    return name.strip(), least, most


def check_epsilons(totals: Sequence[float]) -> tuple[float, ...]:
    """Return totals of epsilon in rising order, each once and above 0."""
    for value in totals:
        validate.positive(epsilon=value)
        if value < SMALLEST_EPSILON:
            raise UserError(
                f"epsilon is {value:g}; the least is {SMALLEST_EPSILON:.2g}."
            )
    return tuple(sorted(set(map(float, totals))))
