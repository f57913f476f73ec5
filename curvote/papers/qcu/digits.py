"""Figures 8 (also printed as 15) and 16: digits of 49 noised pixels.

The weights of the paper's network are not published: this is another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import SeededEntropy
from curvote.base.validate import FloatArray
from curvote.data import raw_files
from curvote.data.public import mnist
from curvote.papers.evidence import Evidence
from curvote.papers.qcu import laws
from curvote.papers.qcu.laws import our_channel
from curvote.papers.qcu.panels import curves_by_records
from curvote.papers.qcu.studies import (
    PrintedCurve,
    agreement_row,
    evidence_project,
    is_worst_case,
    printed_values,
    record_group,
    select_records,
)
from curvote.papers.rows import Row, completed, percent, select
from curvote.pipeline.config.project import Project

SIDE: Final = 7
DRAWS: Final = 3000
SEED: Final = 20240801
figure = curves_by_records
_PRINTED_AS: Final = {"qcu-figure-8": "15", "qcu-figure-16": "16"}


@completed
def rows(name: str, evidence: Evidence) -> Iterator[Row]:
    """Yield the agreement by ``setting`` (the images) and ``method``, in draws.

    ``se`` is that of curvote's own draws. There is no z: the networks differ.
    """
    images, digits = read_images(evidence_project(name, evidence))
    model = fit_network(images, digits)
    shares_of: dict[PrintedCurve, tuple[FloatArray, FloatArray]] = {}
    for curve, value in printed_values(_PRINTED_AS[name]).items():
        same = curve._replace(records=record_group(curve.records))
        if same not in shares_of:
            some = select_records(images, same.records)
            shares_of[same] = drawn_agreements(
                model, some, curve.mechanism, curve.epsilon
            )
        paper, ours = shares_of[same]
        error = float(np.sqrt(np.sum(paper * (1 - paper)) / DRAWS)) / len(paper)
        yield agreement_row(curve, value, paper, ours) | {
            "se": None if is_worst_case(curve.records) else percent(error)
        }


def read_images(project: Project) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the training images, (n, 49) in [0, 1], and their digits."""
    settings = {"classes": "all", "part": "train", "side": SIDE}
    parameters = mnist.Parameters.model_validate(settings)
    files = {
        name: raw_files.locate(project.root, name) for name in mnist.files(parameters)
    }
    paths = {name: file.path for name, file in files.items() if file}
    columns = mnist.clients(parameters, paths)
    return columns["curve"] / 255, columns["label"]


def fit_network(images: FloatArray, digits: NDArray[np.int64]) -> Any:
    """Return a network of two small layers, fitted on all images but a tenth."""
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier((64, 32), early_stopping=True, random_state=SEED)
    return model.fit(images, digits)


def drawn_agreements(
    model: Any, images: FloatArray, name: str, epsilon: float
) -> tuple[FloatArray, FloatArray]:
    """Return the share of draws that keep each image's answer, (n,) twice.

    The first by the printed law, the second by our mechanism.
    """
    clean = np.repeat(model.predict(images), DRAWS)
    many = np.repeat(images, DRAWS, axis=0)
    noised = (
        laws.paper_law(name, epsilon).draw(many, np.random.default_rng(SEED)),
        our_channel(name, epsilon, images.shape[1]).draw(many, SeededEntropy(SEED)),
    )
    paper, our_shares = (
        np.mean((model.predict(noised_images) == clean).reshape(-1, DRAWS), axis=1)
        for noised_images in noised
    )
    return paper, our_shares


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the agreement at epsilon 1 a pixel, and the mechanisms' order."""
    yield "another network than the paper's: the curves are held against each other"
    pixels = SIDE**2
    for row in select(results, method="pm_01", epsilon=1.0):
        text = f"{row['setting']}: {row['curvote']:.1f}, printed {row['published']:.1f}"
        yield f"  pm_01, epsilon 1 a pixel ({pixels} in all), {text}"
    cells = dict.fromkeys((row["setting"], row["epsilon"]) for row in results)
    same = 0
    for setting, epsilon in cells:
        selected = select(results, setting=setting, epsilon=epsilon)
        printed_first = max(selected, key=lambda row: float(row["published"]))
        first = max(selected, key=lambda row: float(row["curvote"]))
        same += first["method"] == printed_first["method"]
    order = f"{same} of {len(cells)}"
    yield f"the mechanism that is printed first is first here in {order} cells"
