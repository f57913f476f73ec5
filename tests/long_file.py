"""Small invented files in long format, and curves of them one client at a time."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from curvote.data.tables import curves

GIVEN: dict[str, Any] = {
    "path": "long.parquet",
    "id": "who",
    "time": "hour",
    "value": "steps",
    "label": "group",
    "positive": "ill",
    "grid": {"start": 0, "stop": 24, "points": 9},
    "unit": "h",
    "bounds": [0, 500],
    "gaps": {"most": 4},
}
PARAMETERS = curves.Parameters.model_validate(GIVEN)


def parameters(**changes: Any) -> curves.Parameters:
    """Return the parameters of these files with some of them changed."""
    return curves.Parameters.model_validate(GIVEN | changes)


def frame(n: int = 40, seed: int = 1) -> pd.DataFrame:
    """Return clients of 2 to 60 measurements in random order, also beyond the grid."""
    rng = np.random.default_rng(seed)
    parts = []
    for who in rng.permutation(10 * n)[:n].tolist():
        m = int(rng.integers(2, 60))
        hours = rng.choice(np.arange(-8, 132), size=m, replace=False) / 4
        steps = rng.uniform(0, 500, size=m)
        group = "ill" if who % 2 else "well"
        columns = {"who": who, "hour": hours, "steps": steps, "group": group}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def write(table: pd.DataFrame, folder: Path, name: str = "long.parquet") -> Path:
    """Write ``table`` as the ending of ``name`` says."""
    path = folder / name
    if name.endswith(".parquet"):
        table.to_parquet(path, index=False, row_group_size=50)
    else:
        table.to_csv(path, index=False)
    return path


def one_by_one(table: pd.DataFrame) -> dict[int, np.ndarray]:
    """Return the curve of every client that is kept, by a loop over clients."""
    kept = {}
    for who, rows in table.sort_values("hour").groupby("who"):
        hours = rows["hour"].to_numpy()
        relevant = (hours[:-1] < 24) & (hours[1:] > 0)
        gaps = [0.0, hours[0], 24 - hours[-1], *np.diff(hours)[relevant]]
        if max(gaps) <= 4:
            kept[who] = np.interp(PARAMETERS.points, hours, rows["steps"])
    return {who: kept[who] for who in table["who"].unique() if who in kept}


def read(path: Path, given: curves.Parameters = PARAMETERS) -> dict[str, np.ndarray]:
    """Return the clients of a file."""
    return curves.clients(given, {"path": path})
