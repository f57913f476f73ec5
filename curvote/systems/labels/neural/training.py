"""Fit of a network by Adam on batches, with its losses: the only part that runs JAX."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray
from scipy.special import expit, softmax

from curvote.base.validate import FloatArray
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.neural.networks import NETWORKS, Array

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


# Images that are looked at together when the network is in use.
_OUTPUT_BATCH: Final = 1000

Images = Callable[[NDArray[np.intp]], NDArray[np.float32]]


class Plan(NamedTuple):
    """The settings of a fit; ``width`` None is the network's own."""

    architecture: str
    loss: str
    epochs: int
    batch: int
    rate: float
    width: int | None


class Trained(NamedTuple):
    """Parameters and running statistics, as nested dicts and lists of numpy arrays."""

    params: Any
    stats: Any


def train(
    plan: Plan,
    images: Images,
    targets: NDArray[np.float32],
    shape: tuple[int, int, int],
    rng: np.random.Generator,
) -> Trained:
    """Return the network that ``plan`` makes of images and targets (n, K).

    Each epoch goes through all images in a new order, in whole batches: what is left of
    an order is left out.
    """
    network = NETWORKS[plan.architecture]
    width = plan.width or network.width
    params, stats = network.begin(rng, shape, targets.shape[1], width)
    key = jax.random.key(int(rng.integers(2**31)))
    adam = optax.adam(plan.rate)
    state = params, stats, adam.init(params), key
    step = _make_step(network.apply, LOSSES[plan.loss].value, adam)
    n = len(targets)
    size = min(n, plan.batch)
    for _ in range(plan.epochs):
        order = rng.permutation(n)
        for start in range(0, n - size + 1, size):
            rows = order[start : start + size]
            state = step(state, images(rows), targets[rows])
    return Trained(*jax.tree.map(np.asarray, state[:2]))


def _make_step(apply: Any, loss: Any, adam: Any) -> Any:
    """Return the compiled step of Adam on one batch: (state, x, targets) -> state."""

    def step(state: Any, x: Any, targets: Any) -> Any:
        params, stats, moments, key = state
        dropout_key, key = jax.random.split(key)

        def loss_of(params: Any) -> Any:
            outputs, after = apply(params, stats, x, dropout_key)
            return loss(outputs, targets), after

        slope, after = jax.grad(loss_of, has_aux=True)(params)
        updates, moments = adam.update(slope, moments, params)
        return optax.apply_updates(params, updates), after, moments, key

    return jax.jit(step)


def outputs(architecture: str, trained: Trained, images: Images, n: int) -> FloatArray:
    """Return a network's outputs for ``n`` images, (n, K) float64."""
    apply = jax.jit(partial(NETWORKS[architecture].apply, key=None))
    batches = []
    for start in range(0, n, _OUTPUT_BATCH):
        rows = np.arange(start, min(start + _OUTPUT_BATCH, n))
        batches.append(apply(trained.params, trained.stats, images(rows))[0])
    return np.concatenate(batches).astype(np.float64)
