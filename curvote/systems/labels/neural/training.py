"""Networks on images by name, their losses, and their fit by Adam: all that runs JAX.

``cnn``: two convolutions and poolings, dropout 0.5, one linear layer (VEC section 5.2).
``resnet18``: ResNet-18 for small images (He et al. 2016), eight blocks of two
convolutions.
"""

import math
from collections import namedtuple
from collections.abc import Callable
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray
from scipy.special import expit, softmax

from curvote.base.validate import FloatArray
from curvote.systems.labels.codes.codes import Codes

# JAX is an extra: where it is absent its types are, too.
Array: TypeAlias = Any
Numbers = NDArray[np.float32]
Params = dict[str, Any]

_MOMENTUM: Final = 0.9
_LEAST_VARIANCE: Final = 1e-5
_QUIET: Final = 0.1


def normal_weights(rng: np.random.Generator, *shape: int) -> Numbers:
    """Return normal weights of variance 2 / inputs (He et al. 2015); outputs last."""
    scale = np.float32(math.sqrt(2 / math.prod(shape[:-1])))
    return rng.standard_normal(shape, dtype=np.float32) * scale


def convolve(x: Array, kernel: Array, stride: int = 1) -> Array:
    """Convolve images (n, h, w, c) with a kernel (a, b, c, d), zeros around them."""
    kinds = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=kinds
    )


def max_pool(x: Array) -> Array:
    """Return the largest of each 2 x 2 pixels; an odd last row or column is left."""
    n, h, w, c = x.shape
    cut: Array = x[:, : h // 2 * 2, : w // 2 * 2].reshape(n, h // 2, 2, w // 2, 2, c)
    return cut.max(axis=(2, 4))


def dropout(x: Array, rate: float, key: Array | None) -> Array:
    """Put a share ``rate`` of the numbers to 0 and scale the others up, in training."""
    if key is None:
        return x
    keep_mask = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep_mask, x / (1 - rate), 0)


def init_norm(channels: int) -> tuple[Params, Params]:
    """Return the scale and shift of a normalisation, and its running statistics."""
    zeros, ones = (np.full(channels, value, dtype=np.float32) for value in (0, 1))
    return {"scale": ones, "shift": zeros}, {"mean": zeros, "variance": ones}


def batch_norm(
    x: Array, params: Params, stats: Params, train: bool
) -> tuple[Array, Params]:
    """Return x with channels of mean 0 and variance 1, then scaled and shifted.

    In training by this batch, which also moves the running statistics; else by those.
    """
    used = stats
    if train:
        used = {"mean": x.mean(axis=(0, 1, 2)), "variance": x.var(axis=(0, 1, 2))}
        stats = jax.tree.map(
            lambda old, new: _MOMENTUM * old + (1 - _MOMENTUM) * new, stats, used
        )
    root = jax.lax.rsqrt(used["variance"] + _LEAST_VARIANCE)
    scaled = (x - used["mean"]) * root * params["scale"] + params["shift"]
    return scaled, stats


def dense_layer(x: Array, params: Params) -> Array:
    """Return x (n, d) times a matrix, and a shift: (n, K)."""
    return x @ params["weights"] + params["shift"]


def init_dense(rng: np.random.Generator, inputs: int, outputs: int) -> Params:
    """Return the matrix and the shift of the last layer: outputs begin near 0.

    Noised bits are nearly even, and unlearning a strong first opinion takes epochs.
    """
    matrix = normal_weights(rng, inputs, outputs) * np.float32(_QUIET)
    return {"weights": matrix, "shift": np.zeros(outputs, dtype=np.float32)}


_CNN_KERNEL: Final = 5
_DROPPED: Final = 0.5


def _begin_cnn(
    rng: np.random.Generator, shape: tuple[int, int, int], n_classes: int, width: int
) -> tuple[Params, Params]:
    """Return parameters for images (h, w, c): ``width`` channels, then twice that."""
    h, w, c = shape
    flat = (h // 4) * (w // 4) * 2 * width
    params = {
        "first": normal_weights(rng, _CNN_KERNEL, _CNN_KERNEL, c, width),
        "second": normal_weights(rng, _CNN_KERNEL, _CNN_KERNEL, width, 2 * width),
        "last": init_dense(rng, flat, n_classes),
    }
    return params, {}


def _apply_cnn(
    params: Params, stats: Params, x: Array, key: Array | None
) -> tuple[Array, Params]:
    """Return the outputs (n, K) of images (n, h, w, c)."""
    x = max_pool(jax.nn.relu(convolve(x, params["first"])))
    x = max_pool(jax.nn.relu(convolve(x, params["second"])))
    x = dropout(x.reshape(len(x), -1), _DROPPED, key)
    return dense_layer(x, params["last"]), stats


_KERNEL: Final = 3
_STAGES: Final = 4
_BLOCKS: Final = 2  # a stage


def _begin_resnet(
    rng: np.random.Generator, shape: tuple[int, int, int], n_classes: int, width: int
) -> tuple[Params, Params]:
    """Return parameters for images (h, w, c): stages of 1, 2, 4, 8 times ``width``."""
    plan = [channels for _, channels in _block_plan(width)]
    scale, running = init_norm(width)
    stem = normal_weights(rng, _KERNEL, _KERNEL, shape[2], width)
    blocks = [_init_block(rng, inside, out) for inside, out in pairwise([width, *plan])]
    params = {
        "stem": stem,
        "norm": scale,
        "blocks": [block for block, _ in blocks],
        "last": init_dense(rng, plan[-1], n_classes),
    }
    return params, {"norm": running, "blocks": [stats for _, stats in blocks]}


def _block_plan(width: int) -> list[tuple[int, int]]:
    """Return (stride, channels) of each block: a later stage begins by halving."""
    return [
        (2 if stage and not block else 1, width << stage)
        for stage in range(_STAGES)
        for block in range(_BLOCKS)
    ]


def _init_block(
    rng: np.random.Generator, inputs: int, outputs: int
) -> tuple[Params, Params]:
    params: Params = {
        "first": normal_weights(rng, _KERNEL, _KERNEL, inputs, outputs),
        "second": normal_weights(rng, _KERNEL, _KERNEL, outputs, outputs),
    }
    names = ["norm_1", "norm_2"]
    if inputs != outputs:
        params["short"] = normal_weights(rng, 1, 1, inputs, outputs)
        names.append("norm_short")
    stats: Params = {}
    for name in names:
        params[name], stats[name] = init_norm(outputs)
    return params, stats


def _apply_resnet(
    params: Params, stats: Params, x: Array, key: Array | None
) -> tuple[Array, Params]:
    """Return the outputs (n, K) of images (n, h, w, c), and the new statistics."""
    train = key is not None
    x, running = batch_norm(
        convolve(x, params["stem"]), params["norm"], stats["norm"], train
    )
    x, blocks = jax.nn.relu(x), []
    for block, before, (stride, _) in zip(
        params["blocks"], stats["blocks"], _block_plan(x.shape[-1]), strict=True
    ):
        x, after = _apply_block(x, block, before, stride, train)
        blocks.append(after)
    outputs = dense_layer(x.mean(axis=(1, 2)), params["last"])
    return outputs, {"norm": running, "blocks": blocks}


def _apply_block(
    x: Array, params: Params, stats: Params, stride: int, train: bool
) -> tuple[Array, Params]:
    """Return the sum of two convolutions and of their input, which may be halved."""
    after: Params = {}

    def normalise(x: Array, name: str) -> Array:
        out, after[name] = batch_norm(x, params[name], stats[name], train)
        return out

    y = jax.nn.relu(normalise(convolve(x, params["first"], stride), "norm_1"))
    y = normalise(convolve(y, params["second"]), "norm_2")
    if "short" in params:
        x = normalise(convolve(x, params["short"], stride), "norm_short")
    return jax.nn.relu(x + y), after


class Network(NamedTuple):
    """How a network begins, what it makes of images, and its ``width`` by default."""

    begin: Callable[..., tuple[Params, Params]]
    apply: Callable[..., tuple[Array, Params]]
    width: int


NETWORKS: Final = {
    "cnn": Network(_begin_cnn, _apply_cnn, 16),
    "resnet18": Network(_begin_resnet, _apply_resnet, 64),
}


# A channel's smallest entry, as float32 can hold it.
_LEAST: Final = 1e-30

Range = tuple[float, float]


# What codes are for a loss, (n, K) float32, and the range that it stands for.
Targets = namedtuple("Targets", "values range")


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


LOSSES: Final = {
    # The mean binary cross entropy of sigmoid outputs (VEC section 4.3).
    "bce": Loss(
        bit_targets,
        lambda outputs, values: jnp.mean(
            optax.sigmoid_binary_cross_entropy(outputs, values)
        ),
        bit_votes,
    ),
    "likelihood": Loss(
        log_likelihood_targets,
        channel_loss,
        lambda outputs, _: np.asarray(softmax(outputs, axis=1)),
    ),
}


# Images that are looked at together when the network is in use.
_OUTPUT_BATCH: Final = 1000

Images = Callable[[NDArray[np.intp]], NDArray[np.float32]]


# Parameters and running statistics, as nested dicts and lists of numpy arrays.
Trained = namedtuple("Trained", "params stats")


@lru_cache(maxsize=16)  # a search may try any number of rates
def compile_step(architecture: str, loss: str, rate: float) -> tuple[Any, Any]:
    """Return Adam and its step on a batch, compiled once for all fits of one form."""
    apply, value = NETWORKS[architecture].apply, LOSSES[loss].value
    adam = optax.adam(rate)

    def step(state: Any, x: Any, targets: Any) -> Any:
        params, stats, moments, key = state
        dropout_key, key = jax.random.split(key)

        def loss_of(params: Any) -> Any:
            outputs, after = apply(params, stats, x, dropout_key)
            return value(outputs, targets), after

        slope, after = jax.grad(loss_of, has_aux=True)(params)
        updates, moments = adam.update(slope, moments, params)
        return optax.apply_updates(params, updates), after, moments, key

    return adam, jax.jit(step)


def train(
    plan: Any,
    images: Images,
    targets: NDArray[np.float32],
    shape: tuple[int, int, int],
    rng: np.random.Generator,
) -> Trained:
    """Return the network of images and targets (n, K); ``plan`` is the learner.

    Each epoch goes through all images in a new order, in whole batches: what is left of
    an order is left out.
    """
    network = NETWORKS[plan.architecture]
    width = plan.width or network.width
    params, stats = network.begin(rng, shape, targets.shape[1], width)
    key = jax.random.key(int(rng.integers(2**31)))
    adam, step = compile_step(plan.architecture, plan.loss, plan.rate)
    state, n = (params, stats, adam.init(params), key), len(targets)
    size = min(n, plan.batch)
    for _ in range(plan.epochs):
        order = rng.permutation(n)
        for start in range(0, n - size + 1, size):
            rows = order[start : start + size]
            state = step(state, images(rows), targets[rows])
    return Trained(*jax.tree.map(np.asarray, state[:2]))


@cache
def compile_outputs(architecture: str) -> Any:
    """Return a network's outputs of images as a compiled function."""
    return jax.jit(partial(NETWORKS[architecture].apply, key=None))


def outputs(architecture: str, trained: Trained, images: Images, n: int) -> FloatArray:
    """Return a network's outputs for ``n`` images, (n, K) float64."""
    apply, batches = compile_outputs(architecture), []
    for start in range(0, n, _OUTPUT_BATCH):
        rows = np.arange(start, min(start + _OUTPUT_BATCH, n))
        batches.append(apply(trained.params, trained.stats, images(rows))[0])
    return np.concatenate(batches).astype(np.float64)
