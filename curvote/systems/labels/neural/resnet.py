"""ResNet-18 for small images (He et al. 2016): eight blocks of two convolutions."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import jax
import numpy as np

from curvote.systems.labels.neural.layers import (
    Array,
    Params,
    batch_norm,
    convolve,
    dense_layer,
    init_dense,
    init_norm,
    normal_weights,
)

WIDTH: Final = 64
_KERNEL: Final = 3
_STAGES: Final = 4
_BLOCKS: Final = 2  # a stage


def begin(
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


def apply(
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
