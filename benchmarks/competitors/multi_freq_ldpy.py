"""Time multi-freq-ldpy's clients: compiled floating point, on the Mersenne Twister.

Each is called once before the clock starts, which compiles it. There is no Laplace
mechanism. Its subsets have fewer labels than curvote's, 27 of 100 at epsilon 1.
"""

from __future__ import annotations

from collections.abc import Callable

from competitors.clock import CLASSES, EPSILON, Row, answer, median_seconds
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client


def row(task: str, name: str, classes: int, client: Callable[[int], object]) -> Row:
    labels = [i % classes for i in range(100_000)]
    client(labels[0])
    seconds = median_seconds(lambda: [client(label) for label in labels])
    return Row(task, "multi-freq-ldpy", name, False, "Mersenne", len(labels), seconds)


def rows() -> list[Row]:
    def binary(label: int) -> object:
        return GRR_Client(label, 2, EPSILON)

    def symmetric(label: int) -> object:
        return UE_Client(label, CLASSES, EPSILON, False)

    def optimised(label: int) -> object:
        return UE_Client(label, CLASSES, EPSILON, True)

    def subset(label: int) -> object:
        return SS_Client(label, CLASSES, EPSILON)

    return [
        row("binary response", "GRR_Client", 2, binary),
        row("unary symmetric", "UE_Client", CLASSES, symmetric),
        row("unary optimised", "UE_Client", CLASSES, optimised),
        row("subset selection", "SS_Client", CLASSES, subset),
    ]


if __name__ == "__main__":
    answer(rows())
