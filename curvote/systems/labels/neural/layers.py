"""Layers of networks: convolutions, pooling, dropout, batch normalisation."""

from __future__ import annotations

import math
from typing import Any, Final, TypeAlias

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
