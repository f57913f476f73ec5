"""ResNet-18 for small images (He et al. 2016): eight blocks of two convolutions."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import jax
import numpy as np

from curvote.labels.neural.networks.layers import (
    Array,
    Params,
    conv,
    dense,
    dense_begin,
    norm,
    norm_begin,
    weights,
)

WIDTH: Final = 64
_KERNEL: Final = 3
_STAGES: Final = 4
_BLOCKS: Final = 2  # a stage


def begin(
    rng: np.random.Generator, shape: tuple[int, int, int], n_classes: int, width: int
) -> tuple[Params, Params]:
    """Return parameters for images (h, w, c): stages of 1, 2, 4, 8 times ``width``."""
    plan = [channels for _, channels in _plan(width)]
    scale, running = norm_begin(width)
    stem = weights(rng, _KERNEL, _KERNEL, shape[2], width)
    made = [_block_begin(rng, inside, out) for inside, out in pairwise([width, *plan])]
    params = {
        "stem": stem,
        "norm": scale,
        "blocks": [block for block, _ in made],
        "last": dense_begin(rng, plan[-1], n_classes),
    }
    return params, {"norm": running, "blocks": [stats for _, stats in made]}


def _plan(width: int) -> list[tuple[int, int]]:
    """Return (stride, channels) of each block: a later stage begins by halving."""
    return [
        (2 if stage and not block else 1, width << stage)
        for stage in range(_STAGES)
        for block in range(_BLOCKS)
    ]


def _block_begin(
    rng: np.random.Generator, inputs: int, outputs: int
) -> tuple[Params, Params]:
    params: Params = {
        "first": weights(rng, _KERNEL, _KERNEL, inputs, outputs),
        "second": weights(rng, _KERNEL, _KERNEL, outputs, outputs),
    }
    names = ["norm_1", "norm_2"]
    if inputs != outputs:
        params["short"] = weights(rng, 1, 1, inputs, outputs)
        names.append("norm_short")
    stats: Params = {}
    for name in names:
        params[name], stats[name] = norm_begin(outputs)
    return params, stats


def apply(
    params: Params, stats: Params, x: Array, key: Array | None
) -> tuple[Array, Params]:
    """Return the outputs (n, K) of images (n, h, w, c), and the new statistics."""
    train = key is not None
    x, running = norm(conv(x, params["stem"]), params["norm"], stats["norm"], train)
    x, blocks = jax.nn.relu(x), []
    for block, before, (stride, _) in zip(
        params["blocks"], stats["blocks"], _plan(x.shape[-1]), strict=True
    ):
        x, after = _block(x, block, before, stride, train)
        blocks.append(after)
    outputs = dense(x.mean(axis=(1, 2)), params["last"])
    return outputs, {"norm": running, "blocks": blocks}


def _block(
    x: Array, params: Params, stats: Params, stride: int, train: bool
) -> tuple[Array, Params]:
    """Return the sum of two convolutions and of their input, which may be halved."""
    after: Params = {}

    def normed(x: Array, name: str) -> Array:
        out, after[name] = norm(x, params[name], stats[name], train)
        return out

    y = jax.nn.relu(normed(conv(x, params["first"], stride), "norm_1"))
    y = normed(conv(y, params["second"]), "norm_2")
    if "short" in params:
        x = normed(conv(x, params["short"], stride), "norm_short")
    return jax.nn.relu(x + y), after
