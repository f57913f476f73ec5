"""A study's poll: who judges which classifier, and the counts of their noised bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns
from curvote.chain.streams import client_streams, generator
from curvote.client.vote import decisions, vote

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Place = tuple[int, str, int]


def dealt(place: Place, voters: int, count: int) -> Index:
    """Return what each voter judges: random parts whose sizes differ by 1.

    ``place`` is (seed, stage, replicate), which names the stream.
    """
    seed, stage, replicate = place
    rng = generator(seed, stage, "split", replicate)
    return np.asarray(rng.permutation(np.arange(voters) % count))


def poll(
    place: Place,
    voters: tuple[Array, Array],
    candidates: tuple[Array, Array],
    judge: Index,
    epsilon: float,
) -> Columns:
    """Return the votes ``n`` and ``positive`` of each candidate, (C,) integers.

    ``place`` is (seed, stage, replicate). ``voters`` are features (n, d) and labels,
    ``candidates`` coef (C, d) and intercept (C,); ``judge`` (n,) names the one that a
    voter judges, with one bit of randomized response (MRMA, equations 6 and 7).
    """
    (features, labels), (coef, intercept) = voters, candidates
    seed, stage, replicate = place
    decision = decisions(features, coef, intercept, judge)
    positive = np.empty(len(labels), dtype=bool)
    for part, words in client_streams(seed, stage, "vote", replicate, len(labels)):
        positive[part] = vote(decision[part], labels[part], epsilon, words)
    return {
        "n": np.bincount(judge, minlength=len(coef)),
        "positive": np.bincount(judge[positive], minlength=len(coef)),
    }
