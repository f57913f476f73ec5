"""Time diffprivlib's samplers: floating point, on words of the operating system.

Snapping rounds its floating-point output to a coarse grid (Mironov 2012), the geometric
mechanism inverts its distribution in floating point. There is no unary code.
"""

from __future__ import annotations

from competitors.clock import EPSILON, Row, answer, median_seconds
from diffprivlib import mechanisms

N = 50_000
STEPS = 2**21  # the range [-1, 1] on curvote's grid


def row(task: str, mechanism: mechanisms.DPMechanism, value: object) -> Row:
    seconds = median_seconds(lambda: [mechanism.randomise(value) for _ in range(N)])
    call = type(mechanism).__name__
    return Row(task, "diffprivlib", call, False, "OS", N, seconds)


def rows() -> list[Row]:
    laplace = mechanisms.Laplace(epsilon=EPSILON, sensitivity=2)
    snapping = mechanisms.Snapping(epsilon=EPSILON, sensitivity=2, lower=-1, upper=1)
    geometric = mechanisms.Geometric(epsilon=EPSILON, sensitivity=STEPS)
    binary = mechanisms.Binary(epsilon=EPSILON, value0="-", value1="+")
    return [
        row("Laplace", laplace, 0.0),
        row("Laplace", snapping, 0.0),
        row("Laplace", geometric, 0),
        row("binary response", binary, "+"),
    ]


if __name__ == "__main__":
    answer(rows())
