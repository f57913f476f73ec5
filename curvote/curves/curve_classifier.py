"""Trained linear classifier of raw records, as it is stored in MLflow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from curvote.base.classes import Classes
from curvote.base.errors import InternalError
from curvote.curves.basis import Projection
from curvote.curves.columns import RecordPredictor
from curvote.curves.encoding import Encoding, Linear, predict_indices

Array = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class CurveClassifier(RecordPredictor, ClassifierMixin, BaseEstimator):
    """A finished linear classifier of raw records: all its parts are public.

    ``predict`` takes curves or records of a table (n, T), as an array or a DataFrame
    with the ``columns`` (T,) in any order, an FDataGrid or an FDataIrregular, and
    returns the publisher's labels. Of curves a point may be missing.

    Parameters
    ----------
    columns : list of str
        The names of the T columns.
    encoding : dict
        How a record becomes numbers: ``Encoding.to_json``.
    coef : array (d,), or (K, d) of K > 2 classes
        The line, or one for each class, of what the encoding's ``judge`` names.
    intercept : float, or array (K,)
        Its constant.
    classes : tuple of str
        The publisher's labels, of two the negative one first.

    Attributes
    ----------
    classes_ : array (K,)
        The same labels.

    Examples
    --------
    >>> import numpy as np
    >>> from curvote.curves.encoding import Linear
    >>> from curvote.curves.basis import identity
    >>> from curvote.curves.encoding import Encoding
    >>> line = Linear(np.array([1.0, -1.0]), 0.0, "coefficients")
    >>> encoding = Encoding(identity(2), "none", feature_map="coefficients")
    >>> model = CurveClassifier.of(encoding, ["age", "dose"], line, ("no", "yes"))
    >>> print(*model.predict([[2.0, 1.0], [1.0, 2.0]]))
    yes no
    """

    columns: list[str]
    encoding: dict[str, Any]
    coef: Array
    intercept: Any
    classes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        encoding: Encoding,
        columns: Iterable[str],
        line: Linear,
        classes: Iterable[str],
    ) -> CurveClassifier:
        """Build the classifier from an encoding and an averaged linear rule."""
        if line.feature_map != encoding.feature_map:
            raise InternalError(f"{line.feature_map} judged as {encoding.feature_map}")
        named = Classes(classes)
        if line.coef.shape[:-1] != (len(named),) * (len(named) > 2):
            raise InternalError(f"{line.coef.shape} for {len(named)} classes")
        parts = list(columns), encoding.to_json(), line.coef, line.intercept
        return cls(*parts, tuple(named))

    @property
    def projection(self) -> Projection:
        """The projection that the encoding begins with."""
        return Encoding.from_json(self.encoding).projection

    def decision_function(self, X: Any) -> Array:
        """Return the scores of each record, (n,) or (n, K).

        Of two classes above 0 is the positive one, of more the largest names the class.
        """
        return self._predict_rows(X, self._decision_scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each record; another width or a NaN is a UserError."""
        return self._predict_rows(
            X, lambda rows: self.classes_[predict_indices(self._decision_scores(rows))]
        )

    def _decision_scores(self, values: Array) -> Array:
        encoding = Encoding.from_json(self.encoding)
        line = Linear(self.coef, self.intercept, encoding.feature_map)
        return line.decision(encoding.features(values))
