"""Small fake files of NHANES 2013-2014, in the published layout."""

from pathlib import Path

import numpy as np
import pandas as pd

from curvote.data.public import nhanes
from tests import xport_file

HOURS = ["SEQN", "PAXDAYH", "PAXSSNHP", "PAXVMH", "PAXNWMH", "PAXMTSH"]
SAMPLES = 80 * 3600  # in an hour


def week(seqn: int, generator: np.random.Generator) -> pd.DataFrame:
    """Return 193 hours from 13:30 of day 1 on, all valid and worn, as in the file."""
    days = np.repeat(np.arange(1, 10), [11, *[24] * 7, 14])
    rows = len(days)
    return pd.DataFrame(
        {
            "SEQN": seqn,
            "PAXDAYH": days,
            "PAXSSNHP": np.r_[0, np.arange(rows - 1) * SAMPLES + SAMPLES // 2],
            "PAXVMH": 60.0,
            "PAXNWMH": 0.0,
            "PAXMTSH": generator.integers(0, 3000, rows) / 4,
        }
    )


def hours(frame: pd.DataFrame) -> bytes:
    """Return the rows as PAXHR_H.XPT; its days are text of one letter."""
    columns = {name: frame[name].astype(float).tolist() for name in HOURS}
    days = [str(day) for day in frame["PAXDAYH"]]
    return xport_file.file(columns | {"PAXDAYH": days})


def put(
    folder: Path, people: list[tuple[float, ...]], frame: pd.DataFrame
) -> dict[str, Path]:
    """Write the four files; a person is (SEQN, gender, age, HDL, status)."""
    seqn, gender, age, hdl, status = map(list, zip(*people, strict=True))
    contents = {
        nhanes.HOURS: hours(frame),
        nhanes.HEADER: xport_file.file({"SEQN": seqn, "PAXSTS": status}),
        nhanes.DEMOGRAPHICS: xport_file.file(
            {
                "SEQN": seqn,
                "RIAGENDR": gender,
                "RIDAGEYR": age,
            }
        ),
        nhanes.HDL: xport_file.file({"SEQN": seqn, "LBDHDD": hdl}),
    }
    paths = {name: folder / f"{name}.xpt" for name in contents}
    for name, path in paths.items():
        path.write_bytes(contents[name])
    return paths
