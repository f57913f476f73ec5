"""Simulated clients of a study: their roles, messages and scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import StageContext
from curvote.classes import class_signs
from curvote.protocols.message import ClientData
from curvote.protocols.roles import Roles, RowIndex, publisher_test_mask, split_roles
from curvote.representation.encoding import classifier_features

Array = NDArray[np.float64]


_ENCODED_COLUMNS = ("label", "group", "part", "coefficients", "z")


@dataclass(frozen=True)
class StudyClients:
    """Encoded clients of one replicate: coefficients, z, labels and roles.

    Labels are places of classes; ``class_signs`` says those of two as -1/+1. ``gram``
    (d, d) is the basis's, which everybody knows.
    """

    coefficients: Array
    z: Array
    labels: RowIndex
    roles: Roles
    gram: Array

    @property
    def signs(self) -> Array:
        """Labels of two classes as -1/+1; those of more are a UserError."""
        return class_signs(self.labels)

    def data_of(self, rows: RowIndex, candidate: RowIndex | None = None) -> ClientData:
        """Return the data of some clients, with the candidate of each."""
        arrays = self.coefficients[rows], self.z[rows], self.labels[rows]
        return ClientData(*arrays, candidate)

    def features_and_signs(self, feature_map: str, role: str) -> tuple[Array, Array]:
        """Return (features, labels -1/+1) of a role, to judge classifiers on."""
        features, places = self.features_and_places(feature_map, role)
        return features, class_signs(places)

    def features_and_places(
        self, feature_map: str, role: str
    ) -> tuple[Array, RowIndex]:
        """Return (features, labels as places) of a role."""
        rows = self.roles[role]
        arrays = self.coefficients[rows], self.z[rows]
        return classifier_features(feature_map, *arrays, self.gram), self.labels[rows]


def study_clients(context: StageContext) -> StudyClients:
    """Return the encoded clients of one repetition, with their roles."""
    params, rows = context.params, context.rows("project", "encoded", _ENCODED_COLUMNS)
    groups = rows["group"] if params["source.groups"] else None
    n = len(rows["label"])
    test_mask = publisher_test_mask(rows)
    roles = split_roles(
        params["seed"],
        context.number,
        n,
        params["clients"],
        groups,
        test_mask=test_mask,
    )
    gram = np.asarray(context.inputs["project"].metadata["encoding"]["gram"])
    return StudyClients(rows["coefficients"], rows["z"], rows["label"], roles, gram)
