"""The election of a constant classifier: one noised label from every client."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.chain.streams import client_streams, generator
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.protocols.roles import EVERYBODY
from curvote.protocols.study import Clients

Array = NDArray[np.float64]


def noised_labels(clients: Clients, epsilon: float, seed: int) -> Array:
    """Return one label a client, each with the whole budget, in random order.

    Everybody who trains or votes sends one; the same numbers in every protocol.
    """
    labels = clients.labels[EVERYBODY.rows(clients.roles)]
    noised, mechanism = np.empty(len(labels)), BinaryRR(epsilon=epsilon)
    stream = (seed, "privatize", "majority", clients.replicate)
    for part, entropy in client_streams(*stream, len(labels)):
        noised[part] = mechanism.randomize(labels[part], entropy)
    rng = generator(*stream[:2], "shuffle", clients.replicate)
    return rng.permutation(noised)


def elected(noised: Array) -> float:
    """Return -1 or +1, the class that more noised labels name; a tie is -1."""
    return 1.0 if noised.sum() > 0 else -1.0


def error(clients: Clients, epsilon: float, seed: int) -> float:
    """Return how often the elected class is wrong for the test clients."""
    guess = elected(noised_labels(clients, epsilon, seed))
    return float(np.mean(clients.labels[clients.roles["test"]] != guess))
