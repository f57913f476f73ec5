"""Public coordinates that are sent instead of the sensitive features themselves.

They come from public records only, so choosing them costs no client anything. The
model's own features are rebuilt from what arrives by an affine map in front of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.systems.utility.method.deployment import NO_PRIOR, Setting
from curvote.systems.utility.method.engines import base

# The share of public records whose component lies within its bounds: on digits, 12 to
# 24 components at a total of 49, 1 to 5 points better than bounds that hold them all.
COVER = 0.98
# Public records that ``active_directions`` moves, and what is too small for an axis.
_SAMPLE_SIZE = 400
_NOTHING = 1e-9


@dataclass(frozen=True)
class Coordinates:
    """Coordinates of s sensitive features: ``(values - centre) @ forward``.

    ``forward`` is (s, k); ``back`` (k, s) rebuilds ``centre + coordinates @ back``.
    ``bounds`` (k, 2) are the coordinates' own, public.
    """

    centre: FloatArray
    forward: FloatArray
    back: FloatArray
    bounds: FloatArray

    def of(self, values: FloatArray) -> FloatArray:
        """Return the coordinates (n, k) of sensitive ``values`` (n, s)."""
        return np.asarray((values - self.centre) @ self.forward)

    def records(self, records: FloatArray, sensitive: tuple[int, ...]) -> FloatArray:
        """Return records (n, D) as (n, k + D - s): coordinates, then all the others."""
        insensitive = np.delete(records, list(sensitive), axis=1)
        return np.hstack([self.of(records[:, list(sensitive)]), insensitive])

    def before(self, model: Any, features: int, sensitive: tuple[int, ...]) -> Any:
        """Return a pipeline that answers for such records as ``model`` would.

        ``model`` has ``features`` D columns. The coordinates are the first k columns of
        the pipeline, and stand for the ``sensitive`` ones.
        """
        k, s = self.back.shape
        insensitive = np.delete(np.arange(features), list(sensitive))
        matrix, shift = np.zeros((k + features - s, features)), np.zeros(features)
        matrix[:k, list(sensitive)] = self.back
        matrix[k + np.arange(len(insensitive)), insensitive] = 1
        shift[list(sensitive)] = self.centre
        front = AffineRebuild(matrix, shift, getattr(model, "feature_names_in_", None))
        return make_pipeline(front, *base.flatten_steps(model))


class AffineRebuild(TransformerMixin, BaseEstimator):
    """Affine map in front of a model: ``X @ matrix + shift``.

    ``matrix`` is (columns sent, model's features), ``shift`` (model's features,).
    ``names`` are the model's, where it was fitted with names. There is nothing to fit.
    """

    def __init__(
        self, matrix: FloatArray, shift: FloatArray, names: Any = None
    ) -> None:
        self.matrix = matrix
        self.shift = shift
        self.names = names

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def slopes_(self) -> FloatArray:
        """Change of the model's features for a unit of each sent column."""
        return self.matrix

    def fit(self, X: ArrayLike, y: Any = None) -> AffineRebuild:
        """Return itself."""
        return self

    def transform(self, X: ArrayLike) -> Any:
        """Return the model's features, (n, D); a table where it knows their names."""
        rebuilt = np.asarray(X, dtype=np.float64) @ self.matrix + self.shift
        if self.names is None:
            return rebuilt
        import pandas as pd

        return pd.DataFrame(rebuilt, columns=list(self.names))


def principal_coordinates(public: ArrayLike, k: int) -> Coordinates:
    """Return the k leading principal components of public values (m, s).

    Each has bounds of its own, so that whitening them would change nothing. More
    components than features, or as many as public records, are a UserError.
    """
    from sklearn.decomposition import PCA

    values = validate.finite(public=public)
    if not 1 <= k <= min(values.shape[1], len(values) - 1):
        raise UserError(
            f"{k} components of {values.shape[1]} features cannot be found in"
            f" {len(values)} public records; ask for fewer."
        )
    components = PCA(k, svd_solver="full").fit(values)
    return coordinates_along(components.components_.T, values)


def active_directions(
    model: Any, public: ArrayLike, sensitive: Sequence[int]
) -> FloatArray:
    """Return the directions (s, r) in which the model's answers change most.

    Of public records (m, D), the first 400: each is moved by a standard deviation both
    ways along every principal axis of its ``sensitive`` columns. The products of the
    changes of the classes' scores are summed up, and their main axes are the directions
    (Constantine 2015). A linear classifier of two classes has one, its own score:
    nothing else needs to be sent. ``coordinates_along`` makes coordinates of the first
    k. UserError where nothing changes.
    """
    records = validate.finite(public=public)[:_SAMPLE_SIZE]
    columns = list(sensitive)
    values = records[:, columns]
    # The principal axes, a row each, one standard deviation long.
    centred = (values - values.mean(axis=0)) / np.sqrt(len(values))
    _, spread, rows = np.linalg.svd(centred, full_matrices=False)
    used = spread > _NOTHING * spread.max(initial=0)
    axes, changes = np.asarray(spread[used, None] * rows[used]), []
    for axis in axes:  # each class's gain between both ends of an axis, (m, K)
        moved = np.tile(records, (2, 1))
        moved[:, columns] += np.repeat([-axis, axis], len(records), axis=0)
        before, after = np.split(_class_scores(model, moved), 2)
        gain = np.asarray(after - before)
        changes.append((gain - gain.mean(axis=1)[:, None]).ravel())
    change = np.array(changes)
    weight, directions = np.linalg.eigh(change @ change.T)
    if not weight[-1] > 0:
        raise UserError(
            "the model gives the same answer whatever the sensitive features of the"
            " public records are: nothing needs to be sent."
        )
    order = np.flatnonzero(weight > _NOTHING * weight[-1])[::-1]
    scaled = axes / np.sum(axes**2, axis=1)[:, None]
    return np.asarray(scaled.T @ directions[:, order])


def _class_scores(model: Any, rows: FloatArray) -> FloatArray:
    """Return scores of the classes, (m, K): the model's own, else probabilities.

    With neither, 1 for the answer and 0 for the others.
    """
    for name in ("decision_function", "predict_proba"):
        if hasattr(model, name):
            raw = getattr(model, name)(base.model_input(model, rows))
            scores = np.asarray(raw, np.float64)
            return scores if scores.ndim > 1 else np.stack([-scores, scores], axis=1)
    answers = base.predict_batched(model, rows)
    indicators = answers[:, None] == base.classes_of(model, answers)
    return np.asarray(indicators, dtype=np.float64)


def coordinates_along(basis: ArrayLike, public: ArrayLike) -> Coordinates:
    """Return the coordinates along the columns of a basis (s, k), from public values.

    The centre is the public mean; values are rebuilt by least squares over the public
    records (m, s), so what is not sent is predicted from what is. The bounds hold the
    `COVER` share of the public records' coordinates, each side by its own quantile.
    Columns along which the public records do not vary are a UserError.
    """
    values, forward = validate.finite(public=public), validate.finite(basis=basis)
    centre = values.mean(axis=0)
    projected = (values - centre) @ forward
    tails = (1 - COVER) / 2
    bounds = np.quantile(projected, [tails, 1 - tails], axis=0).T
    if (bounds[:, 0] >= bounds[:, 1]).any():
        raise UserError(
            "a coordinate is the same in all public records; leave it out, or give"
            " public records that differ in it."
        )
    back = np.linalg.lstsq(projected, values - centre, rcond=None)[0]
    return Coordinates(centre, forward, back, bounds)


def project_setting(setting: Setting, coordinates: Coordinates) -> Setting:
    """Return the setting in which coordinates stand for the sensitive features.

    Its model rebuilds the features and answers as the given one; its ``reference`` are
    the answers to the records as they were, so that what the coordinates lose counts.
    It has no training data: its floors are those of the given setting.
    """
    sensitive, k = setting.sensitive, len(coordinates.bounds)
    kept_features = np.delete(np.array(setting.features), list(sensitive))
    public, reference = setting.public, setting.reference
    return replace(
        setting,
        model=coordinates.before(setting.model, len(setting.features), sensitive),
        records=coordinates.records(setting.records, sensitive),
        features=(*(f"coordinate {i + 1}" for i in range(k)), *kept_features.tolist()),
        sensitive=tuple(range(k)),
        bounds=coordinates.bounds,
        public=None if public is None else coordinates.records(public, sensitive),
        train=None,
        reference=setting.answers(setting.records) if reference is None else reference,
    )


def direction_coordinates(
    setting: Setting, numbers: Sequence[int]
) -> list[Coordinates]:
    """Return coordinates along the model's ``active`` directions.

    From the setting's public records. There may be fewer directions than asked for: a
    number is then that of all, and given once.
    """
    if setting.public is None:
        raise UserError(NO_PRIOR)
    basis = active_directions(setting.model, setting.public, setting.sensitive)
    counts = sorted({min(k, basis.shape[1]) for k in numbers})
    return [coordinates_along(basis[:, :k], setting.prior) for k in counts]
