"""Sources of random 64-bit words: the operating system, or seeds in studies.

A study's streams are named by who draws (`curvote.chain.stage`).
"""

import os
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.errors import UserError

Words = NDArray[np.uint64]


class Entropy(Protocol):
    """A source of independent, uniformly distributed 64-bit words."""

    def words(self, n: int) -> Words:
        """Return ``n`` fresh words."""
        ...


class SystemEntropy:
    """Words from the operating system: the only source that protects anybody.

    Examples
    --------
    >>> from curvote.mechanisms import make
    >>> noised = make("laplace", epsilon=1.0).randomize([0.5], SystemEntropy())
    >>> noised.shape  # who releases a value for real draws so, and only so
    (1,)
    """

    def words(self, n: int) -> Words:
        """Return ``n`` words from the operating system."""
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


class SeededEntropy:
    """Reproducible words for studies; whoever knows the seed can remove the noise.

    Parameters
    ----------
    seed : int or numpy.random.SeedSequence
        The same words for the same seed.

    Examples
    --------
    >>> from curvote.mechanisms import make
    >>> mechanism = make("laplace", epsilon=1.0)
    >>> one, other = (mechanism.randomize([0.5], SeededEntropy(7)) for _ in "ab")
    >>> bool(one == other)  # so it protects nobody
    True
    """

    def __init__(self, seed: int | np.random.SeedSequence) -> None:
        self._generator = np.random.PCG64DXSM(seed)

    def words(self, n: int) -> Words:
        """Return the next ``n`` words of this stream."""
        return np.asarray(self._generator.random_raw(n), dtype=np.uint64)


class StudyStreams:
    """Seeded noise of a study: one stream for each purpose.

    Who is given it may draw the same law in a quicker way that protects nobody.
    """

    def __init__(self, make: Callable[[str], SeededEntropy]) -> None:
        self._make = make
        self._streams: dict[str, SeededEntropy] = {}

    def stream_for(self, purpose: str) -> SeededEntropy:
        """Return the stream of a purpose, which continues where it stopped."""
        if purpose not in self._streams:
            self._streams[purpose] = self._make(purpose)
        return self._streams[purpose]

    def words(self, n: int) -> Words:
        """Return words of the stream without a purpose."""
        return self.stream_for("words").words(n)


def stream(entropy: Entropy, purpose: str) -> Entropy:
    """Return the stream of ``entropy`` for a purpose; itself in production."""
    return entropy.stream_for(purpose) if isinstance(entropy, StudyStreams) else entropy


def is_study(entropy: Entropy) -> bool:
    """Return whether ``entropy`` is a study's, so that quick draws are allowed."""
    return isinstance(entropy, StudyStreams)


def random_permutation(n: int, entropy: Entropy) -> NDArray[np.int64]:
    """Return the numbers 0..n-1 in a uniformly random order.

    Equal words, once in 2^65/n^2 orders, are drawn again: so every order is as likely.
    """
    while np.unique(words := entropy.words(n)).size < n:
        pass
    return np.argsort(words)


def random_buckets(n: int, count: int, entropy: Entropy) -> NDArray[np.int64]:
    """Return ``n`` numbers below ``count``, a power of two, from a word each.

    Rows that go to such buckets and are put in order there are in random order over
    all (Rao 1961; Sandelius 1962). One bucket takes no words.
    """
    bits = (count - 1).bit_length()
    if not bits:
        return np.zeros(n, dtype=np.int64)
    return (entropy.words(n) >> np.uint64(64 - bits)).astype(np.int64)


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
    elif isinstance(random_state, np.random.Generator):
        words = random_state.integers(1 << 32, size=_SEED_WORDS, dtype=np.uint64)
    else:
        return np.random.SeedSequence(check_random_state(random_state))
    return np.random.SeedSequence(words.tolist())


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
