"""Time OpenDP's samplers: exact, on words of the operating system.

Each task takes the library's fastest way, a vector in one call, and beside it the way
of one client's value. What a list needs to pass through the library unchanged is taken
off. A bit of its bit vector is replaced by a fair coin with probability f: ones and
zeros flip alike, which is the symmetric unary code and not the optimised one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import opendp.prelude as dp
from competitors.clock import CLASSES, EPSILON, Row, answer, median_seconds

# curvote's grid at epsilon 1: the range [-1, 1] is 2^21 steps, so is the scale.
SCALE = 2.0**21 / EPSILON


def bit_vector(epsilon: float, ones: int) -> Callable[[bytes], bytes]:
    """Randomize bits at ``epsilon`` each, for vectors with at most that many ones."""
    domain = dp.bitvector_domain(max_weight=ones)
    replaced = 2 / (1 + math.exp(epsilon))
    return dp.m.make_randomized_response_bitvec(
        domain, dp.discrete_distance(), f=replaced
    )


def row(task: str, call: str, n: int, seconds: float) -> Row:
    return Row(task, "OpenDP", call, True, "OS", n, seconds)


def laplace(n: int = 200_000) -> Row:
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    noise = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=SCALE)
    through = dp.t.make_identity(domain, dp.symmetric_distance())
    values = [0] * n
    passing = median_seconds(lambda: through(values))
    seconds = median_seconds(lambda: noise(values)) - passing
    return row("Laplace", "integers, all clients", n, seconds)


def binary(n: int = 1_000_000, alone: int = 5_000) -> list[Row]:
    bits, data = bit_vector(EPSILON, n), bytes([255]) * (n // 8)
    response = dp.m.make_randomized_response_bool(1 / (1 + math.exp(-EPSILON)))
    together = median_seconds(lambda: bits(data))
    each = median_seconds(lambda: [response(True) for _ in range(alone)])
    return [
        row("binary response", "bit vector, all clients", n, together),
        row("binary response", "boolean, each client", alone, each),
    ]


def unary(n: int = 20_000, alone: int = 2_000) -> list[Row]:
    one, everyone = (bit_vector(EPSILON / 2, ones) for ones in (1, n))
    label, labels = bytes(-(-CLASSES // 8)), bytes(n * CLASSES // 8)
    together = median_seconds(lambda: everyone(labels))
    each = median_seconds(lambda: [one(label) for _ in range(alone)])
    return [
        row("unary symmetric", "bit vector, all clients", n, together),
        row("unary symmetric", "bit vector, each client", alone, each),
    ]


if __name__ == "__main__":
    dp.enable_features("contrib", "honest-but-curious")  # the latter: make_identity
    answer([laplace(), *binary(), *unary()])
