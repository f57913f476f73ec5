"""Small worlds for learners: classes on a circle, and codes of their labels."""

import numpy as np

from curvote.base.validate import FloatArray
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.codes.encoding import encode


def circle(n: int, classes: int, seed: int = 0, sigma: float = 0.25):
    """Return records (n, 2) around places on the unit circle, and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    angle = 2 * np.pi * y / classes
    centres = np.column_stack([np.cos(angle), np.sin(angle)])
    return centres + rng.normal(0, sigma, (n, 2)), y


def coded(
    n: int = 300,
    classes: int = 4,
    epsilon: float = 2.0,
    encoder: str = "subset",
    seed: int = 0,
) -> tuple[FloatArray, np.ndarray, Codes]:
    """Return records, labels and codes."""
    X, y = circle(n, classes, seed)
    return X, y, encode(y, np.arange(classes), epsilon, encoder, seed)
