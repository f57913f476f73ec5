"""Entries of VEC: its tables and figures, with pipelines and modules."""

from __future__ import annotations

from functools import partial

from curvote.papers import reproduction
from curvote.papers.reproduction import Paper

VecEntry = partial(reproduction.Entry, paper="VEC", quantity="accuracy")

_ALL = (
    VecEntry(
        "figure-2-vec",
        "Figure 2: accuracy against the number of classes, epsilon 1, k = 200",
        30,
        "circle",
    ),
    VecEntry(
        "figure-3-vec",
        "Figure 3: the same, epsilon 2, k = 100",
        30,
        "circle",
    ),
    VecEntry(
        "figure-4-vec",
        "Figure 4: the same, epsilon 1, k = 100",
        30,
        "circle",
    ),
    VecEntry(
        "table-1-vec",
        "Table 1: MNIST and Fashion MNIST, a convolutional network",
        1,
        "tables",
        runs=("table-1-vec-mnist", "table-1-vec-fashion-mnist"),
    ),
    VecEntry(
        "table-2-vec",
        "Table 2: CIFAR-10, ResNet-18",
        1,
        "tables",
        runs=("table-2-vec-cifar-10",),
    ),
    VecEntry(
        "table-3-vec",
        "Table 3: CIFAR-100, ResNet-18",
        1,
        "tables",
        runs=("table-3-vec-cifar-100",),
    ),
    VecEntry(
        "labels-beyond",
        "Our encoder and learner beside the published ones",
        10,
        "beyond",
        runs=(
            "labels-beyond-mnist",
            "labels-beyond-zip",
            "labels-beyond-phonemes",
            "labels-beyond-circle",
            "labels-beyond-imbalanced",
        ),
    ),
)
REPRODUCTIONS = {entry.name: entry for entry in _ALL}


_PAPER = Paper("curvote.papers.vec", REPRODUCTIONS)
compare, laid_out, agreement = _PAPER.compare, _PAPER.laid_out, _PAPER.agreement
