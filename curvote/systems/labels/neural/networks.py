"""Networks on images, by name.

``cnn``: two convolutions and poolings, dropout 0.5, one linear layer (VEC section 5.2).
``resnet18``: ResNet-18 for small images (He et al. 2016), eight blocks of two
convolutions.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

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
    params: Params,
    stats: Params,
    x: Array,
    key: Array | None,
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
