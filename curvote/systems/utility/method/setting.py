"""Setting: a model, the records it answers, and what is public about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.systems.utility.method.engines.base import (
    Question,
    class_indices,
    classes_of,
    predict_batched,
)

Places = NDArray[np.int64]
# Rows that a model is asked for at once: 100 columns of them are 200 MB.
_BLOCK_ROWS = 1 << 18
NO_PRIOR = (
    "Decoding needs public records as its prior: give public=... (volunteers or a"
    " public file, --public FILE.csv), or read the output raw."
)
NO_TRAIN = "Retraining needs training data: give train=(X, y), as fit takes them."


@dataclass(frozen=True)
class Setting:
    """Fitted classifier, the records it will answer, and public data on them.

    ``records`` (n, D) are in the model's units; ``sensitive`` are the places of the s
    columns that are noised, ``bounds`` (s, 2) their public bounds, ``features`` the D
    names. ``labels`` (n,) are places in the model's ``classes_``, ``groups`` (n,) any
    names. ``public`` (m, D) are records that cost nobody anything; ``train`` are the
    features and labels that the model's owner has, as ``fit`` takes them. With
    ``client_side`` clients can run the model. ``clip`` moves an output beyond the
    bounds to the edge. ``reference`` (n,) are the answers to agree with, as places,
    where they are not this model's own on ``records``. With ``alike`` a prior may weigh
    public records by their likeness in what is not sensitive (`likeness`).
    """

    model: Any
    records: FloatArray
    features: tuple[str, ...]
    sensitive: tuple[int, ...]
    bounds: FloatArray
    labels: Places | None = None
    groups: NDArray[np.str_] | None = None
    public: FloatArray | None = None
    public_labels: Places | None = None
    train: tuple[FloatArray, NDArray[Any]] | None = None
    client_side: bool = False
    clip: bool = True
    reference: Places | None = None
    alike: bool = True

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.records)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sensitive features."""
        return tuple(self.features[place] for place in self.sensitive)

    @property
    def question(self) -> Question:
        """Question for an engine."""
        return Question(self.model, self.records, self.sensitive, self.bounds)

    @property
    def values(self) -> FloatArray:
        """Sensitive values, (n, s), clipped to the bounds."""
        return np.clip(self.records[:, list(self.sensitive)], *self.bounds.T)

    @property
    def prior(self) -> FloatArray:
        """Sensitive values of the public records, (m, s), clipped to the bounds."""
        if self.public is None:
            raise UserError(NO_PRIOR)
        return np.clip(self.public[:, list(self.sensitive)], *self.bounds.T)

    @property
    def fill_value(self) -> FloatArray:
        """Fill value of a withheld feature, (s,).

        The public median; without public records the middle of the bounds.
        """
        if self.public is None:
            return np.asarray(self.bounds.mean(axis=1))
        return np.asarray(np.median(self.prior, axis=0))

    @cached_property
    def classes(self) -> NDArray[Any]:
        """Classes of the model, by index."""
        return classes_of(self.model, predict_batched(self.model, self.records))

    def answers(self, records: FloatArray, model: Any = None) -> Places:
        """Return answers as class indices, of another ``model`` if given."""
        predictions = predict_batched(self.model if model is None else model, records)
        return class_indices(self.classes, predictions)

    def put(self, records: FloatArray) -> NDArray[np.uint16]:
        """Return the answers with each public record's sensitive values in place.

        (n, m) places, for ``records`` (n, D); asked for in blocks.
        """
        prior, columns = self.prior, list(self.sensitive)
        size = max(1, _BLOCK_ROWS // len(prior))
        blocks = [
            self.answers(
                _with_public_values(prior, records[start : start + size], columns)
            )
            for start in range(0, len(records), size)
        ]
        answers = np.concatenate(blocks).reshape(len(records), len(prior))
        return answers.astype(np.uint16)


def _with_public_values(
    prior: FloatArray, records: FloatArray, columns: list[int]
) -> FloatArray:
    """Return records with each public record's sensitive values in place."""
    rows = np.repeat(records, len(prior), axis=0)
    rows[:, columns] = np.tile(prior, (len(records), 1))
    return rows


def make_setting(
    model: Any,
    records: ArrayLike,
    *,
    sensitive: Sequence[int | str],
    bounds: ArrayLike,
    features: Sequence[str] | None = None,
    **fields: Any,
) -> Setting:
    """Return a checked `Setting`; ``fields`` are its other fields.

    ``records`` (n, D) hold finite numbers; each of ``sensitive`` is a column 0..D-1, or
    its name, once; ``bounds`` (s, 2) have low < high. A model that is no fitted
    classifier of two classes or more, or anything else that is wrong, is a UserError.
    """
    rows = _check_records(model, records)
    names = _check_names(model, features, rows.shape[1])
    columns = _check_columns(sensitive, names)
    if fields.get("public") is not None:
        fields["public"] = _check_public("public", fields["public"], rows.shape[1])
    for name in {"labels", "groups", "reference"} & fields.keys():
        if fields[name] is not None:
            value = fields[name]
            n = len(rows)
            values = np.asarray(value)
            if values.shape != (n,):
                raise UserError(
                    f"{name} has shape {values.shape}; give one a record: ({n},)."
                )
            fields[name] = values
    ends = _check_bounds(bounds, len(columns))
    return Setting(model, rows, names, columns, ends, **fields)


def _check_records(model: Any, records: ArrayLike) -> FloatArray:
    """Return the records (n, D), once the model is known to classify such rows."""
    if not hasattr(model, "predict") or _is_regressor(model):
        raise UserError(
            f"{type(model).__name__} is no classifier: agreement is about classes, so"
            " give a fitted model whose predict returns one."
        )
    if len(getattr(model, "classes_", (0, 1))) < 2:
        raise UserError("the model knows one class only: its answer cannot change.")
    rows = validate.finite(records=records)
    width = getattr(model, "n_features_in_", None)
    if rows.ndim != 2 or not len(rows) or width not in {None, rows.shape[1]}:
        width_text = "D" if width is None else width
        raise UserError(
            f"records has shape {rows.shape}; give (n, {width_text}), n >= 1."
        )
    return rows


def _is_regressor(model: Any) -> bool:
    """Return whether the model is a regressor of scikit-learn."""
    from sklearn.base import is_regressor

    try:
        return bool(is_regressor(model))
    except AttributeError:  # no estimator of scikit-learn: it is what it answers
        return False


def _check_columns(
    sensitive: Sequence[int | str], names: tuple[str, ...]
) -> tuple[int, ...]:
    """Return the sensitive columns, checked to be different and to exist."""
    columns = tuple(_check_column(column, names) for column in sensitive)
    if not columns or len(set(columns)) < len(columns) or max(columns) >= len(names):
        raise UserError(
            f"sensitive is {validate.format_value(list(sensitive))}; give one or more"
            f" different columns, 0 to {len(names) - 1}."
        )
    return columns


def _check_column(column: int | str, names: tuple[str, ...]) -> int:
    """Return a column by number or name."""
    if isinstance(column, str):
        return names.index(validate.one_of(names, sensitive=column))
    return validate.at_least(0, sensitive=column)


def _check_names(
    model: Any, features: Sequence[str] | None, width: int
) -> tuple[str, ...]:
    """Return the names of the columns, checked."""
    given_names = (
        getattr(model, "feature_names_in_", None) if features is None else features
    )
    names = (
        [f"x{place}" for place in range(width)] if given_names is None else given_names
    )
    if len(names) != width or len(set(names)) < width:
        raise UserError(f"features holds {len(names)} names; give {width} different.")
    return tuple(str(name) for name in names)


def _check_bounds(bounds: ArrayLike, s: int) -> FloatArray:
    """Return the bounds (s, 2), checked to increase."""
    values = validate.finite(bounds=bounds)
    if values.shape != (s, 2):
        raise UserError(
            f"bounds has shape {values.shape}; give one (low, high) for each of the"
            f" {s} sensitive features."
        )
    if (wrong := values[:, 0] >= values[:, 1]).any():
        low, high = values[wrong][0]
        raise UserError(f"bounds {low:g} to {high:g}: the first must be below.")
    return values


def _check_public(name: str, records: ArrayLike, width: int) -> FloatArray:
    """Return public records, checked to have the records' width."""
    rows = validate.finite(**{name: records})
    if rows.ndim != 2 or rows.shape[1] != width or not len(rows):
        raise UserError(f"{name} has shape {rows.shape}; give (m, {width}), m >= 1.")
    return rows
