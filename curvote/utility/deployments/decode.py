"""Reading a noised record with a public prior: the class of most posterior weight.

The server rounds the output to public bins. Of m public points s_j, put in place of
the record's own, it answers argmax_c sum_j w_j P(bin | s_j) 1[h(others, s_j) = c]. That
is post-processing: it costs no epsilon. The output is not clipped before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.utility.deployments.binned import Binned, binned, blocks, writable
from curvote.utility.deployments.decode_drawn import drawn
from curvote.utility.deployments.deployment import Deployment, channel
from curvote.utility.engines.base import Answers, Draws
from curvote.utility.known import Known
from curvote.utility.measured import certain
from curvote.utility.setting import Setting
from curvote.validate import FloatArray


def decoded(
    setting: Setting, known: Known, deployment: Deployment, draws: Draws
) -> Answers:
    """Return the decoded answers' shares: exact for up to two sent features."""
    seen = channel(setting, deployment, clip=False)
    sent = [place for part in seen.parts for place in part.places]
    own, prior = seen.law(setting.values), seen.law(setting.prior)
    if own is None or prior is None:
        raise UserError(
            f"{deployment.mechanism} has no law that can be written out, so its output"
            " cannot be decoded: read it raw."
        )
    if not writable(prior, sent):
        return drawn(setting, known, seen, prior, draws)
    shares = _shares(known.held(), *binned(prior, own, sent))
    return certain(shares, known.votes.shape[1])


def _shares(held: list[FloatArray], prior: Binned, own: Binned) -> FloatArray:
    """Return how often each class is answered, (n, K), exactly."""
    shares = np.zeros((len(held[0]), len(held)))
    for which in blocks(own.shape, len(shares)):
        likelihood, chance = prior.block(which), own.block(which)
        answer = _best(held, likelihood)
        for each in range(len(held)):
            shares[:, each] += np.einsum("ij,ij->i", chance, answer == each)
    return shares


def _best(held: list[FloatArray], likelihood: FloatArray) -> NDArray[np.int64]:
    """Return the class of most posterior weight, (n, bins); ties: the first."""
    if len(held) == 2:
        return np.asarray(((held[1] - held[0]) @ likelihood > 0).astype(np.int64))
    best = held[0] @ likelihood
    answer = np.zeros(best.shape, dtype=np.int64)
    for each, weights in enumerate(held[1:], 1):
        score = weights @ likelihood
        answer[score > best] = each
        np.maximum(best, score, out=best)
    return answer
