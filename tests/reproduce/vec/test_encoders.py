"""What the section on encoders says of the circle, at a moderate size."""

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from curvote.base.validate import FloatArray
from curvote.data.simulation import records
from curvote.labels import encode


def accuracies(
    n_classes: int, k: int, encoders: tuple[str, ...], repeats: int, n: int
) -> FloatArray:
    """Exact accuracy of k neighbours, the same records for all: (repeats, encoders)."""
    law, found = records.CIRCLE.Parameters(n_classes=n_classes), []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        trained, tested = (records.CIRCLE.clients(law, size, rng) for size in (n, 500))
        near = cKDTree(trained["curve"]).query(tested["curve"], k)[1].ravel()
        ends = np.arange(0, len(near) + 1, k)
        mean = csr_array((np.full(len(near), 1 / k), near, ends), (500, n))
        eta = records.CIRCLE.eta(law, tested["curve"])
        for encoder in encoders:
            codes = encode(trained["label"], range(n_classes), 1.0, encoder, seed)
            votes = mean @ codes.decode()
            found.append(eta[np.arange(len(eta)), votes.argmax(axis=1)].mean())
    return np.reshape(found, (repeats, len(encoders)))


def test_subset_selection_is_ahead_of_vectors_where_votes_are_few() -> None:
    """K = 8, k = 50: by a point or more; 60 pairs of the same records."""
    found = 100 * accuracies(8, 50, ("subset", "vector"), 60, 4000)
    ahead = found[:, 0] - found[:, 1]
    assert ahead.mean() - 3 * ahead.std(ddof=1) / np.sqrt(len(ahead)) > 0.5
    assert ahead.mean() > 1
