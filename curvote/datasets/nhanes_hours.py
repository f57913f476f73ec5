"""Hour file of NHANES 2013-2014 (PAXHR_H): from rows to one mean day a person.

* It has no clock hour. Days 2 to 8 start at midnight, so the rank of a row within its
  day (by its first 80 Hz sample) is the hour; days 1 and 9 are partial and dropped,
  like every day without exactly 24 rows.
* PAXMTSH sums MIMS over the valid minutes only: it is divided by PAXVMH, times 60.
* PAXVMH leaves flagged minutes out already; PAXQFH counts flags, not minutes. Minutes
  without wear (PAXNWMH) are among the valid ones, so they are subtracted where worn
  minutes are asked for.

Source: the codebook of PAXHR_H, National Center for Health Statistics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from curvote.datasets import xport
from curvote.datasets.xport import Column

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

DAY_HOURS = 24
COLUMNS = (
    Column("SEQN", 1, integral=True),
    Column("PAXDAYH", 1, 9, integral=True),
    Column("PAXSSNHP", 0),
    Column("PAXVMH", 0, 60, missing=True),
    Column("PAXNWMH", 0, 60, missing=True),
    Column("PAXMTSH", 0, missing=True),
)


def check_hours(data: bytes) -> int:
    """Return the number of rows; a UserError if schema or values are wrong."""
    return sum(len(chunk) for chunk in xport.read_chunks(data, COLUMNS))


def mean_days(
    data: bytes,
    wanted: NDArray[np.int64],
    valid_minutes: int,
    valid_hours: int,
    days: int,
) -> tuple[NDArray[np.int64], Array]:
    """Return SEQN (n,), ascending, and curves (n, 24) in MIMS an hour.

    Of the ``wanted`` SEQN those with at least ``days`` valid days that cover every
    hour. A day needs ``valid_hours`` hours that count, an hour ``valid_minutes``
    minutes that are valid and worn. The file is read by chunks; only the hours of
    ``wanted`` are held.

    Raises:
        UserError: see `curvote.datasets.xport.read_chunks`.
    """
    import pandas as pd

    parts = []
    for chunk in xport.read_chunks(data, COLUMNS):
        inside = chunk["PAXDAYH"].between(2, 8) & chunk["SEQN"].isin(wanted)
        parts.append(chunk[inside])
    hours = _complete_days(pd.concat(parts))
    rates = _hourly_rates(hours, valid_minutes)
    valid = np.isfinite(rates).sum(axis=1) >= valid_hours
    owners = hours["SEQN"].to_numpy(dtype=np.int64)[::DAY_HOURS]
    return _average_days(owners[valid], rates[valid], days)


def _complete_days(hours: pd.DataFrame) -> pd.DataFrame:
    """Return the days of exactly 24 hours; a repeated hour is dropped."""
    ordered = hours.sort_values(["SEQN", "PAXDAYH", "PAXSSNHP"])
    samples = ordered.groupby(["SEQN", "PAXDAYH"])["PAXSSNHP"]
    rows, different = samples.transform("size"), samples.transform("nunique")
    return ordered[(rows == DAY_HOURS) & (different == DAY_HOURS)]


def _hourly_rates(hours: pd.DataFrame, valid_minutes: int) -> Array:
    """Return MIMS an hour (days, 24), NaN for an invalid hour."""
    names = ("PAXMTSH", "PAXVMH", "PAXNWMH")
    total, minutes, unworn = hours[[*names]].to_numpy().T.reshape(3, -1, DAY_HOURS)
    counts = minutes - unworn >= valid_minutes  # False where one of them is missing
    rates: Array = np.full(total.shape, np.nan)
    np.divide(60 * total, minutes, out=rates, where=counts)
    return rates


def _average_days(
    owners: NDArray[np.int64], rates: Array, days: int
) -> tuple[NDArray[np.int64], Array]:
    """Return persons with enough ``days`` and all hours, and hourly means."""
    ids, row, day_counts = np.unique(owners, return_inverse=True, return_counts=True)
    totals, counts = np.zeros((2, len(ids), DAY_HOURS))
    np.add.at(totals, row, np.nan_to_num(rates))
    np.add.at(counts, row, np.isfinite(rates))
    enough = (day_counts >= days) & (counts > 0).all(axis=1)
    return ids[enough], totals[enough] / counts[enough]
