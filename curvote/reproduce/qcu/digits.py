"""Figures 8 (also printed as 15) and 16: digits of 49 noised pixels, drawn.

The weights of the paper's network are not published: this is another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from curvote.datasets import mnist, raw
from curvote.errors import InternalError
from curvote.mechanisms import make
from curvote.mechanisms.base import Mechanism
from curvote.reproduce.gather import Evidence
from curvote.reproduce.qcu import laws
from curvote.reproduce.qcu.channels import PARAMS
from curvote.reproduce.qcu.curves import WORST
from curvote.reproduce.qcu.looks import curves_of
from curvote.reproduce.qcu.printed import Curve, Value, printed
from curvote.reproduce.rows import Row, finished, having, percent
from curvote.run.project import Project
from curvote.utility.channel import Channel, Part
from curvote.entropy import SeededEntropy
from curvote.validate import FloatArray

across: Final = "epsilon"
SIDE: Final = 7
DRAWS: Final = 3000
SEED: Final = 20240801
_FIGURES: Final = {"qcu-figure-8": "15", "qcu-figure-16": "16"}


def rows(name: str, found: Evidence) -> list[Row]:
    """Return the agreement by ``setting`` (the images) and ``method``, in draws.

    ``se`` is that of curvote's own draws. There is no z: the networks differ.
    """
    if found.project is None:
        raise InternalError(f"{name} reads MNIST: it needs a project")
    images, labels = read(found.project)
    model = fitted(images, labels)
    return finished(_rows(_FIGURES[name], model, images))


def read(project: Project) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the training images, (n, 49) in [0, 1], and their digits."""
    parameters = mnist.Parameters.model_validate(
        {"classes": "all", "part": "train", "side": SIDE}
    )
    files = {name: raw.locate(project.root, name) for name in mnist.files(parameters)}
    paths = {name: file.path for name, file in files.items() if file}
    columns = mnist.clients(parameters, paths)
    return columns["curve"] / 255, columns["label"]


def fitted(images: FloatArray, labels: NDArray[np.int64]) -> Any:
    """Return a network of two small layers, fitted on all of them."""
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier((64, 32), early_stopping=True, random_state=SEED)
    return model.fit(images, labels)


def _rows(figure: str, model: Any, images: FloatArray) -> Iterator[Row]:
    cells = printed(figure)
    known: dict[tuple[str, float, bytes], tuple[FloatArray, FloatArray]] = {}
    for curve, value in cells.items():
        chosen = _chosen(images, curve.records)
        key = curve.mechanism, curve.epsilon, chosen.tobytes()
        if key not in known:
            known[key] = drawn(model, chosen, curve.mechanism, curve.epsilon)
        yield _row(curve, value, *known[key])


def _chosen(images: FloatArray, setting: str) -> FloatArray:
    if setting in {"first", "second"}:
        return images[[setting == "second"]][:1] if False else _one(images, setting)
    return images[: int(setting.split(" of ")[1])]


def drawn(
    model: Any, images: FloatArray, name: str, epsilon: float
) -> tuple[FloatArray, FloatArray]:
    """Return how often each image's answer survives: printed law, our mechanism."""
    law = laws.printed(name, epsilon)
    rng = np.random.default_rng(SEED)
    channel, entropy = _ours(name, epsilon), SeededEntropy(SEED)
    found = [
        [
            _share(model, one, law.draw(many, rng)),
            _share(model, one, channel.draw(many, entropy)),
        ]
        for one in images
        for many in [np.tile(one, (DRAWS, 1))]
    ]
    paper, mine = np.array(found).T
    return paper, mine
