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
from curvote.entropy import SeededEntropy
from curvote.reproduce.gather import Evidence
from curvote.reproduce.qcu import laws
from curvote.reproduce.qcu.channels import ours
from curvote.reproduce.qcu.known import project_of
from curvote.reproduce.qcu.looks import curves_by_records
from curvote.reproduce.qcu.printed import Curve, Value, printed
from curvote.reproduce.qcu.settings import chosen, of, taken, worst
from curvote.reproduce.rows import Row, finished, having, percent
from curvote.run.project import Project
from curvote.validate import FloatArray

across: Final = "epsilon"
SIDE: Final = 7
DRAWS: Final = 3000
SEED: Final = 20240801
_PRINTED_AS: Final = {"qcu-figure-8": "15", "qcu-figure-16": "16"}


def rows(name: str, found: Evidence) -> list[Row]:
    """Return the agreement by ``setting`` (the images) and ``method``, in draws.

    ``se`` is that of curvote's own draws. There is no z: the networks differ.
    """
    images, digits = read(project_of(name, found))
    return finished(_rows(_PRINTED_AS[name], fitted(images, digits), images))


def read(project: Project) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the training images, (n, 49) in [0, 1], and their digits."""
    parameters = mnist.Parameters.model_validate(
        {"classes": "all", "part": "train", "side": SIDE}
    )
    files = {name: raw.locate(project.root, name) for name in mnist.files(parameters)}
    paths = {name: file.path for name, file in files.items() if file}
    columns = mnist.clients(parameters, paths)
    return columns["curve"] / 255, columns["label"]


def fitted(images: FloatArray, digits: NDArray[np.int64]) -> Any:
    """Return a network of two small layers, fitted on all images but a tenth."""
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier((64, 32), early_stopping=True, random_state=SEED)
    return model.fit(images, digits)


def _rows(figure: str, model: Any, images: FloatArray) -> Iterator[Row]:
    found: dict[Curve, tuple[FloatArray, FloatArray]] = {}
    for curve, value in printed(figure).items():
        same = curve._replace(records=of(curve.records))
        if same not in found:
            mine = chosen(images, same.records)
            found[same] = drawn(model, mine, curve.mechanism, curve.epsilon)
        yield _row(curve, value, *found[same])


def drawn(
    model: Any, images: FloatArray, name: str, epsilon: float
) -> tuple[FloatArray, FloatArray]:
    """Return how often each image's answer survives, (n,) each.

    The first by the printed law, the second by our mechanism.
    """
    clean = np.repeat(model.predict(images), DRAWS)
    many = np.repeat(images, DRAWS, axis=0)
    noised = (
        laws.printed(name, epsilon).draw(many, np.random.default_rng(SEED)),
        ours(name, epsilon, images.shape[1]).draw(many, SeededEntropy(SEED)),
    )
    paper, mine = (
        np.mean((model.predict(seen) == clean).reshape(-1, DRAWS), axis=1)
        for seen in noised
    )
    return paper, mine


def _row(curve: Curve, value: Value, paper: FloatArray, mine: FloatArray) -> Row:
    error = float(np.sqrt(np.sum(paper * (1 - paper)) / DRAWS)) / len(paper)
    return {
        "setting": curve.records,
        "learner": curve.model,
        "method": curve.mechanism,
        "epsilon": curve.epsilon,
        "quantity": "agreement",
        "published": percent(value.empirical),
        "curvote": percent(taken(curve.records, paper)),
        "corrected": percent(taken(curve.records, mine)),
        "claimed": percent(value.theory),
        "se": None if worst(curve.records) else percent(error),
    }


def figure(given: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel for each setting: agreement against epsilon."""
    return curves_by_records(given)


def brief(given: Sequence[Row]) -> Sequence[Row]:
    """Return all rows."""
    return given


def said(given: Sequence[Row]) -> Iterator[str]:
    """Yield what is left at epsilon 1 a pixel, and the order of the mechanisms."""
    yield "another network than the paper's: the curves are held against each other"
    pixels = SIDE**2
    for one in having(given, method="pm_01", epsilon=1.0):
        told = f"{one['setting']}: {one['curvote']:.1f}, printed {one['published']:.1f}"
        yield f"  pm_01, epsilon 1 a pixel ({pixels} in all), {told}"
    order = _first_in_order(given)
    yield f"the mechanism that is printed first is first here in {order} cells"


def _first_in_order(given: Sequence[Row]) -> str:
    cells = dict.fromkeys((one["setting"], one["epsilon"]) for one in given)
    same = 0
    for setting, epsilon in cells:
        mine = having(given, setting=setting, epsilon=epsilon)
        best = (max(mine, key=lambda one: one[by]) for by in ("published", "curvote"))
        same += len({one["method"] for one in best}) == 1
    return f"{same} of {len(cells)}"
