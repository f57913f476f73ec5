"""Outlook before anybody reports: of polls, of volunteers, and of protocol ``auto``.

A voter is a record drawn by itself, so whether it finds a direction right is a coin
with the direction's accuracy, then noised; a liar's bit is what it likes.
"""

from __future__ import annotations

import numpy as np

from curvote import validate
from curvote.protocols.direct.arms import make_directions
from curvote.theory.direct import Expectation
from curvote.theory.lies import NO_LIES, Lies
from curvote.theory.signals import Signal
from curvote.theory.votes import keep_probability

DIRECTIONS = 100  # the default of `votes.directions`
VOTE_RUNS = 24


def expect_votes(
    n: int,
    d: int,
    epsilon: float,
    signal: Signal,
    *,
    seed: int = 0,
    lies: Lies = NO_LIES,
) -> Expectation:
    """Return the expected error of protocol ``votes``.

    Each client judges one of 100 random directions, or of ``n`` where that is less,
    with its whole ``epsilon``.

    Parameters
    ----------
    n : int
        Clients, 1 or more.
    d : int
        Numbers of a record.
    epsilon : float
        Budget of a vote.
    signal : Signal
        How labels depend on records.
    seed : int, default=0
        Of the draws.
    lies : Lies, default=nobody's
        Who votes as they like.

    Returns
    -------
    Expectation
        Mean error and spread. Values out of range are a UserError.

    Examples
    --------
    >>> from curvote.theory import strengths
    >>> print(f"{expect_votes(1000, 4, 4.0, strengths()['middle']).error:.2f}")
    0.27
    """
    n, d = validate.at_least(1, n=n), validate.at_least(1, d=d)
    keep, rng = keep_probability(epsilon), np.random.default_rng(seed)
    count = min(DIRECTIONS, n)
    w = rng.standard_normal((VOTE_RUNS, count, d + 1))
    w /= np.linalg.norm(w, axis=2, keepdims=True)
    w[..., 0] *= make_directions("mean", d, "standard", "auto").intercept
    right = _rule_errors(w.reshape(-1, d + 1), signal, right=True).reshape(
        VOTE_RUNS, count
    )
    honest = keep * right + (1 - keep) * (1 - right)
    wished = w[..., 1:] @ lies.pull(np.eye(d)[0]) > 0
    votes = n // count + (np.arange(count) < n % count)
    positive = rng.binomial(votes, (1 - lies.share) * honest + lies.share * wished)
    # Weights are |utility - 1/2| after reversal: signed, they are utility - 1/2.
    rules = np.einsum("rb,rbp->rp", positive / votes - 0.5, w)
    errors = _rule_errors(rules, signal, right=False)
    return Expectation(float(errors.mean()), float(errors.std()), "votes")


def _rule_errors(rules: np.ndarray, signal: Signal, *, right: bool) -> np.ndarray:
    """Return errors (R,) of rules (R, 1 + d), or how often they are ``right``.

    The signal's direction is the first axis.
    """
    across = np.linalg.norm(rules[:, 2:], axis=1)
    errors = signal.error(rules[:, 1], across, rules[:, 0])
    return 1 - errors if right else errors
