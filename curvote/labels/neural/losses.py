"""Fit of a network by Adam on batches, with its losses: the only part that runs JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray
from scipy.special import expit, softmax

from curvote.labels.codes import Codes
from curvote.labels.neural.networks.layers import Array
from curvote.validate import FloatArray

# A channel's smallest entry, as float32 can hold it.
_LEAST: Final = 1e-30

Range = tuple[float, float]


class Targets(NamedTuple):
    """What codes are for a loss, (n, K) float32, and the range that it stands for."""

    values: NDArray[np.float32]
    range: Range


class Loss(NamedTuple):
    """Targets from codes, the loss of outputs (n, K) on them, votes from outputs."""

    targets: Callable[[Codes], Targets]
    value: Callable[[Any, Any], Any]
    votes: Callable[[FloatArray, Range], FloatArray]


def bit_targets(codes: Codes) -> Targets:
    """Return decoded codes mapped to [0, 1]: where codes are bits, the bits."""
    decoded = codes.decode()
    low, high = float(decoded.min()), float(decoded.max())
    values = (decoded - low) / ((high - low) or 1.0)
    return Targets(values.astype(np.float32), (low, high))


def cross_entropy(outputs: Array, values: Array) -> Array:
    """Return the mean binary cross entropy of sigmoid outputs (VEC section 4.3)."""
    return jnp.mean(optax.sigmoid_binary_cross_entropy(outputs, values))


def bit_votes(outputs: FloatArray, within: Range) -> FloatArray:
    """Return the decoded codes' means, at which the cross entropy is least."""
    low, high = within
    return np.asarray(low + (high - low) * expit(outputs))


def log_likelihood_targets(codes: Codes) -> Targets:
    """Return ln P(code | class), up to a number a row."""
    values = np.log(codes.likelihood().clip(_LEAST))
    return Targets(values.astype(np.float32), (0.0, 1.0))


def channel_loss(outputs: Array, values: Array) -> Array:
    """Return the mean of -ln sum_c P(code | c) softmax_c: the channel inside."""
    chances = jax.nn.log_softmax(outputs) + values
    return -jnp.mean(jax.nn.logsumexp(chances, axis=-1))


def softmax_votes(outputs: FloatArray, _within: Range) -> FloatArray:
    """Return the softmax of outputs."""
    return np.asarray(softmax(outputs, axis=1))


LOSSES: Final = {
    "bce": Loss(bit_targets, cross_entropy, bit_votes),
    "likelihood": Loss(log_likelihood_targets, channel_loss, softmax_votes),
}
