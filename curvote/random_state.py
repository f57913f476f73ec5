"""Random states of estimators: seeds for studies, entropy for private noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from curvote import validate
from curvote.entropy import Entropy, SeededEntropy, SystemEntropy
from curvote.errors import UserError

RandomState = int | np.integer[Any] | np.random.RandomState | np.random.Generator | None
_SEED_WORDS = 4


def seed_sequence(random_state: RandomState) -> np.random.SeedSequence | None:
    """Return the seed of one fit, or None for unrepeatable draws.

    A whole number is the seed itself, the same at each call. numpy's ``RandomState``
    and ``Generator`` give 128 bits and go on, so that the next call gets others.
    Anything else is a UserError.
    """
    if random_state is None:
        return None
    if isinstance(random_state, np.random.RandomState):
        words = random_state.randint(1 << 32, size=_SEED_WORDS, dtype=np.uint64)
        return np.random.SeedSequence(words.tolist())
    if isinstance(random_state, np.random.Generator):
        words = random_state.integers(1 << 32, size=_SEED_WORDS, dtype=np.uint64)
        return np.random.SeedSequence(words.tolist())
    return np.random.SeedSequence(check_random_state(random_state))


def random_sources(random_state: RandomState) -> tuple[np.random.Generator, Entropy]:
    """Return the generator of splits and the entropy of noise.

    None takes both from the operating system, whatever numpy's global seed is. All
    else is a study's: whoever knows the seed can remove the noise.
    """
    seed = seed_sequence(random_state)
    if seed is None:
        return np.random.default_rng(), SystemEntropy()
    split, noise = seed.spawn(2)
    return np.random.default_rng(split), SeededEntropy(noise)


def check_random_state(random_state: Any) -> Any:
    """Return a valid ``random_state``, a whole number as int."""
    if random_state is None or isinstance(
        random_state, np.random.RandomState | np.random.Generator
    ):
        return random_state
    try:
        return validate.at_least(0, random_state=random_state)
    except UserError:
        raise UserError(
            f"random_state is {validate.format_value(random_state)}; give None (noise"
            " of the"
            " operating system), a whole number >= 0, or numpy's RandomState or"
            " Generator."
        ) from None
