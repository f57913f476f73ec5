"""Entries of VEC: its tables and figures, with pipelines and modules."""

from functools import partial

from curvote.papers import reproduction
from curvote.papers.reproduction import Paper

VecEntry = partial(reproduction.Entry, paper="VEC", quantity="accuracy")
CircleEntry = partial(
    VecEntry, replicates=30, place="figures:circle", across="n_classes"
)

_ALL = (
    CircleEntry(
        name="figure-2-vec",
        title="Figure 2: accuracy against the number of classes, epsilon 1, k = 200",
    ),
    CircleEntry(name="figure-3-vec", title="Figure 3: the same, epsilon 2, k = 100"),
    CircleEntry(name="figure-4-vec", title="Figure 4: the same, epsilon 1, k = 100"),
    VecEntry(
        "table-1-vec",
        "Table 1: MNIST and Fashion MNIST, a convolutional network",
        1,
        "figures:table",
        runs=("table-1-vec-mnist", "table-1-vec-fashion-mnist"),
    ),
    VecEntry(
        "table-2-vec",
        "Table 2: CIFAR-10, ResNet-18",
        1,
        "figures:table",
        runs=("table-2-vec-cifar-10",),
    ),
    VecEntry(
        "table-3-vec",
        "Table 3: CIFAR-100, ResNet-18",
        1,
        "figures:table",
        runs=("table-3-vec-cifar-100",),
    ),
    VecEntry(
        "labels-beyond",
        "Our encoder and learner beside the published ones",
        10,
        "figures:beyond",
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


PAPER = Paper("curvote.papers.vec", REPRODUCTIONS)
compare, laid_out, agreement = PAPER.compare, PAPER.laid_out, PAPER.agreement
