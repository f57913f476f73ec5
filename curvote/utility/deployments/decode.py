"""Decoding of noised records with a public prior: the class of most posterior weight.

The server rounds the output to public bins. Of m public points s_j, put in place of
the record's own, it answers argmax_c sum_j w_j P(bin | s_j) 1[h(others, s_j) = c]. That
is post-processing: it costs no epsilon. The output is not clipped before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.utility.deployments.binned import (
    Binned,
    bin_blocks,
    bin_laws,
    can_enumerate,
)
from curvote.utility.deployments.decode_drawn import decode_draws
from curvote.utility.deployments.deployment import Deployment, deployment_channel
from curvote.utility.engines.base import Answers, Draws
from curvote.utility.known import Profile
from curvote.utility.measured import exact_answers
from curvote.utility.setting import Setting
from curvote.validate import FloatArray


def decode(
    setting: Setting, profile: Profile, deployment: Deployment, draws: Draws
) -> Answers:
    """Return the decoded answers' shares, exact for up to two sent features."""
    link = deployment_channel(setting, deployment, clip=False)
    places = [place for part in link.parts for place in part.places]
    law, prior = link.law(setting.values), link.law(setting.prior)
    if law is None or prior is None:
        raise UserError(
            f"{deployment.mechanism} has no law that can be written out, so its output"
            " cannot be decoded: read it raw."
        )
    if not can_enumerate(prior, places):
        return decode_draws(setting, profile, link, prior, draws)
    shares = _decoded_shares(profile.class_weights(), *bin_laws(prior, law, places))
    return exact_answers(shares, profile.votes.shape[1])


def _decoded_shares(
    class_weights: list[FloatArray], prior: Binned, law: Binned
) -> FloatArray:
    """Return the exact share of each class among the answers, (n, K)."""
    shares = np.zeros((len(class_weights[0]), len(class_weights)))
    for block in bin_blocks(law.shape, len(shares)):
        likelihood, chance = prior.block(block), law.block(block)
        answer = _best_class(class_weights, likelihood)
        for place in range(len(class_weights)):
            shares[:, place] += np.einsum("ij,ij->i", chance, answer == place)
    return shares


def _best_class(
    class_weights: list[FloatArray], likelihood: FloatArray
) -> NDArray[np.int64]:
    """Return the class of most posterior weight, (n, bins); ties: the first."""
    if len(class_weights) == 2:
        return np.asarray(
            ((class_weights[1] - class_weights[0]) @ likelihood > 0).astype(np.int64)
        )
    best = class_weights[0] @ likelihood
    answer = np.zeros(best.shape, dtype=np.int64)
    for place, weights in enumerate(class_weights[1:], 1):
        score = weights @ likelihood
        answer[score > best] = place
        np.maximum(best, score, out=best)
    return answer
