"""Two convolutions and poolings, dropout 0.5, one linear layer (VEC section 5.2)."""

from __future__ import annotations

from typing import Final

import jax
import numpy as np

from curvote.systems.labels.neural.layers import (
    Array,
    Params,
    convolve,
    dense_layer,
    dropout,
    init_dense,
    max_pool,
    normal_weights,
)

WIDTH: Final = 16
_KERNEL: Final = 5
_DROPPED: Final = 0.5


def begin(
    rng: np.random.Generator, shape: tuple[int, int, int], n_classes: int, width: int
) -> tuple[Params, Params]:
    """Return parameters for images (h, w, c): ``width`` channels, then twice that."""
    h, w, c = shape
    flat = (h // 4) * (w // 4) * 2 * width
    params = {
        "first": normal_weights(rng, _KERNEL, _KERNEL, c, width),
        "second": normal_weights(rng, _KERNEL, _KERNEL, width, 2 * width),
        "last": init_dense(rng, flat, n_classes),
    }
    return params, {}


def apply(
    params: Params, stats: Params, x: Array, key: Array | None
) -> tuple[Array, Params]:
    """Return the outputs (n, K) of images (n, h, w, c)."""
    x = max_pool(jax.nn.relu(convolve(x, params["first"])))
    x = max_pool(jax.nn.relu(convolve(x, params["second"])))
    x = dropout(x.reshape(len(x), -1), _DROPPED, key)
    return dense_layer(x, params["last"]), stats
