"""A table as a clinic's spreadsheet exports it: 12,000 rows of three classes."""

from pathlib import Path

import numpy as np

ROWS = 12_000
SHARES = {"gesund": 0.6, "leicht": 0.25, "schwer": 0.15}
# What a steward knows without the file, and writes.
STATED = """
      classes: [gesund, leicht, schwer]
      bounds:
        Größe: [1.2, 2.2]
        Dosis: [0, 10]
      categories:
        Geschlecht: [m, w]
"""


def write(path: Path, rows: int = ROWS) -> dict[str, int]:
    """Write the table as cp1252 with semicolons; return how many each class has.

    Decimal commas, "k.A.", codes with leading zeros, dates, a comment over two lines,
    and one row in fifty whose features are those of the row before.
    """
    rng = np.random.default_rng(29)
    label = rng.choice(len(SHARES), rows, p=list(SHARES.values()))
    height = (1.7 + 0.03 * label + 0.08 * rng.normal(size=rows)).round(2)
    dose = np.clip(3 + label + rng.normal(size=rows), 0, 10).round(1)
    sex = rng.choice(["m", "w"], rows)
    again = np.flatnonzero(rng.random(rows) < 0.02)
    again = again[again > 0]
    for column in (label, height, dose, sex):
        column[again] = column[again - 1]
    lost = rng.random(rows) < 0.01
    lines = ["Fall;PLZ;Geburt;Geschlecht;Größe;Dosis;Notiz;Befund"]
    for i in range(rows):
        born = f"{1 + i % 28:02}.{1 + i % 12:02}.{1930 + i % 70}"
        tall = "k.A." if lost[i] else f"{height[i]:.2f}".replace(".", ",")
        much = f"{dose[i]:.1f}".replace(".", ",")
        note = '"zwei\nZeilen"' if i == 5 else ""
        case = f"{7 * i % 100003:06}"
        known = [*SHARES][label[i]]
        lines.append(
            f"{case};{1000 + i % 900:05};{born};{sex[i]};{tall};{much};{note};{known}"
        )
    path.write_bytes("\r\n".join([*lines, ""]).encode("cp1252"))
    return {name: int((label == place).sum()) for place, name in enumerate(SHARES)}
