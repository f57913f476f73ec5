"""The clients of one replicate, as the client-side stages of a study see them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.protocols.roles import Roles, split
from curvote.protocols.stage import Params, Source
from curvote.representation.encoding import judged

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Clients:
    """What the clients of one replicate know: coefficients and z (n, d), labels.

    ``gram`` (d, d) is the basis's, which everybody knows.
    """

    replicate: int
    coefficients: Array
    z: Array
    labels: Array
    roles: Roles
    gram: Array

    def judged(self, feature_map: str, role: str) -> tuple[Array, Array]:
        """Return the (features, labels -1/+1) that a classifier is judged on."""
        rows = self.roles[role]
        own = self.coefficients[rows], self.z[rows]
        features = judged(feature_map, *own, self.gram)
        return features, self.labels[rows]


def study_clients(project: Source, params: Params, replicate: int) -> Clients:
    """Read the encoded clients of one replicate and give each its role."""
    rows = project.columns("encoded", replicate)
    roles = split(
        params["seed"],
        replicate,
        len(rows["label"]),
        params["clients"],
        rows["group"] if params["source.groups"] else None,
    )
    labels = np.where(rows["label"] == 1, 1.0, -1.0)
    gram = np.asarray(project.facts["encoding"]["gram"])
    return Clients(replicate, rows["coefficients"], rows["z"], labels, roles, gram)
