"""The clients of one replicate, as the client-side stages of a study see them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Here
from curvote.classes import signs
from curvote.protocols.message import Known
from curvote.protocols.roles import Index, Roles, set_aside, split
from curvote.representation.encoding import judged

Array = NDArray[np.float64]


_READ = ("label", "group", "part", "coefficients", "z")


@dataclass(frozen=True)
class Clients:
    """What the clients of one replicate know: coefficients and z (n, d), labels (n,).

    Labels are places of classes; ``signs`` says those of two as -1/+1. ``gram`` (d, d)
    is the basis's, which everybody knows.
    """

    coefficients: Array
    z: Array
    labels: Index
    roles: Roles
    gram: Array

    @property
    def signs(self) -> Array:
        """Labels of two classes as -1/+1; those of more are a UserError."""
        return signs(self.labels)

    def known(self, rows: Index, judge: Index | None = None) -> Known:
        """Return what some clients know; ``judge`` is the candidate of each."""
        own = self.coefficients[rows], self.z[rows], self.labels[rows]
        return Known(*own, judge)

    def judged(self, feature_map: str, role: str) -> tuple[Array, Array]:
        """Return the (features, labels -1/+1) that a classifier is judged on."""
        features, places = self.told(feature_map, role)
        return features, signs(places)

    def told(self, feature_map: str, role: str) -> tuple[Array, Index]:
        """Return the same, with labels as places of classes."""
        rows = self.roles[role]
        own = self.coefficients[rows], self.z[rows]
        return judged(feature_map, *own, self.gram), self.labels[rows]


def clients_of(here: Here) -> Clients:
    """Read the encoded clients of one repetition and give each its role."""
    params, rows = here.params, here.rows("project", "encoded", _READ)
    groups = rows["group"] if params["source.groups"] else None
    n = len(rows["label"])
    aside = set_aside(rows)
    roles = split(
        params["seed"], here.number, n, params["clients"], groups, aside=aside
    )
    gram = np.asarray(here.inputs["project"].facts["encoding"]["gram"])
    return Clients(rows["coefficients"], rows["z"], rows["label"], roles, gram)
