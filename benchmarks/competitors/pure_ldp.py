"""Time pure-ldp's clients: floating point, on the Mersenne Twister.

There is no Laplace mechanism. Labels are 1..d there.
"""

from __future__ import annotations

from competitors.clock import CLASSES, EPSILON, Row, answer, median_seconds
from pure_ldp.core import FreqOracleClient
from pure_ldp.frequency_oracles import DEClient, UEClient


def row(task: str, client: FreqOracleClient, n: int) -> Row:
    labels = [1 + i % client.d for i in range(n)]
    seconds = median_seconds(lambda: [client.privatise(label) for label in labels])
    call = type(client).__name__
    return Row(task, "pure-ldp", call, False, "Mersenne", n, seconds)


if __name__ == "__main__":
    answer(
        [
            row("binary response", DEClient(EPSILON, 2), 200_000),
            row("unary symmetric", UEClient(EPSILON, CLASSES), 20_000),
            row("unary optimised", UEClient(EPSILON, CLASSES, use_oue=True), 20_000),
        ]
    )
