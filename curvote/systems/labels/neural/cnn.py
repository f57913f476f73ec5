"""Two convolutions and poolings, dropout 0.5, one linear layer (VEC section 5.2)."""

from __future__ import annotations

from typing import Final

import jax
import numpy as np

from curvote.systems.labels.neural import resnet

WIDTH: Final = 16
_KERNEL: Final = 5
_DROPPED: Final = 0.5


def begin(
    rng: np.random.Generator, shape: tuple[int, int, int], n_classes: int, width: int
) -> tuple[resnet.Params, resnet.Params]:
    """Return parameters for images (h, w, c): ``width`` channels, then twice that."""
    h, w, c = shape
    flat = (h // 4) * (w // 4) * 2 * width
    params = {
        "first": resnet.normal_weights(rng, _KERNEL, _KERNEL, c, width),
        "second": resnet.normal_weights(rng, _KERNEL, _KERNEL, width, 2 * width),
        "last": resnet.init_dense(rng, flat, n_classes),
    }
    return params, {}


def apply(
    params: resnet.Params,
    stats: resnet.Params,
    x: resnet.Array,
    key: resnet.Array | None,
) -> tuple[resnet.Array, resnet.Params]:
    """Return the outputs (n, K) of images (n, h, w, c)."""
    x = resnet.max_pool(jax.nn.relu(resnet.convolve(x, params["first"])))
    x = resnet.max_pool(jax.nn.relu(resnet.convolve(x, params["second"])))
    x = resnet.dropout(x.reshape(len(x), -1), _DROPPED, key)
    return resnet.dense_layer(x, params["last"]), stats
