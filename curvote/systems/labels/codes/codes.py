"""Codes of labels, one a client, with all that is public about them, and their file."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError, suggest_closest
from curvote.base.validate import FloatArray, format_value
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.factory import make
from curvote.mechanisms.labels import fill_in_blocks, valid_codes
from curvote.systems.labels.codes.encoders import ENCODERS, public_parameters
from curvote.wire.strict_json import canonical_json, parse_json

Labels = NDArray[np.int64]
# Classes that an error names.
_NAMED = 10


def places_of(
    y: ArrayLike, classes: ArrayLike | None = None
) -> tuple[NDArray[Any], Labels]:
    """Return the classes (K,) and the place of each label among them, (n,).

    Labels are text, whole numbers or truth values. Without ``classes`` those of pandas
    categories are taken, unused ones too, in their order; both truth values; else the
    labels that occur, sorted. UserError: a missing label, one of no class, fewer than
    two classes or one of them twice, and whatever is no list of labels.
    """
    categorical: Any = getattr(y, "cat", y)
    if hasattr(categorical, "categories") and hasattr(categorical, "codes"):
        places = np.asarray(categorical.codes, dtype=np.int64)
        _refuse_missing(places < 0, "y")
        categories = label_array(categorical.categories, "classes")
        if classes is None:
            return check_classes(categories), places
        class_names = check_classes(classes)
        return class_names, _find_places(categories[places], class_names)
    labels = label_array(y, "y")
    class_names = check_classes(
        _occurring_classes(labels) if classes is None else classes
    )
    return class_names, _find_places(labels, class_names)


def check_classes(classes: ArrayLike) -> NDArray[Any]:
    """Return classes, (K,), if there are two or more and all differ; else UserError."""
    class_names = label_array(classes, "classes")
    if len(class_names) < 2 or len(np.unique(class_names)) < len(class_names):
        raise UserError(
            f"the classes are {_list_classes(class_names)}; give two or more, all"
            " different."
        )
    return class_names


def _list_classes(classes: NDArray[Any]) -> str:
    names = [format_value(name) for name in classes[:_NAMED].tolist()]
    return ", ".join([*names, *(["..."] if len(classes) > _NAMED else [])]) or "none"


def _occurring_classes(labels: NDArray[Any]) -> NDArray[Any]:
    if labels.dtype.kind == "b":
        return np.array([False, True])
    classes = np.unique(labels)
    if len(classes) < 2:
        only = "no label"
        if len(classes):
            only = f"one class only, {format_value(classes[0].item())}"
        raise UserError(f"y holds {only}; name two classes or more: give `classes`.")
    return classes


def label_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return labels as one plain array (n,) of text, whole numbers or truth values."""
    import pandas as pd

    labels = np.asarray(values)
    if labels.ndim != 1:
        raise UserError(f"{name} has shape {labels.shape}; give one label each: (n,).")
    _refuse_missing(np.asarray(pd.isna(labels)), name)
    are_objects = labels.dtype.kind == "O"
    if are_objects or isinstance(values, list | tuple):
        objects: Any = labels if are_objects else values
        text = [isinstance(value, str) for value in objects]
        if any(text) and not all(text):
            raise UserError(
                f"{name} holds text and other values; give labels of one kind."
            )
        if are_objects:
            plain = np.array(labels.tolist())
            labels = plain if len(labels) else labels.astype(np.int64)
    is_whole = labels.dtype.kind != "f" or bool(
        np.all(np.isfinite(labels) & (labels == np.rint(labels)))
    )
    if labels.dtype.kind not in "biufU" or not is_whole:
        raise UserError(
            f"{name} holds {labels.dtype} values; labels are text, whole numbers or"
            " truth values."
        )
    return labels


def _refuse_missing(missing: NDArray[np.bool_], name: str) -> None:
    if missing.any():
        raise UserError(
            f"{name} holds {int(missing.sum())} missing labels, the first at index"
            f" {int(np.argmax(missing))}; leave such records out."
        )


def _find_places(labels: NDArray[Any], classes: NDArray[Any]) -> Labels:
    """Return the place of each label; one of no class is a UserError."""
    import pandas as pd

    places = pd.Index(classes).get_indexer(pd.Index(labels))
    wrong = np.flatnonzero(places < 0)
    if wrong.size:
        first = labels[wrong[0]].item()
        names = classes.tolist() if isinstance(first, str) else []
        hint = suggest_closest(first, map(str, names)) if names else ""
        raise UserError(
            f"y holds {wrong.size} labels of no class, the first is"
            f" {format_value(first)} at index {int(wrong[0])}; the classes are"
            f" {_list_classes(classes)}.{hint}"
        )
    return np.asarray(places, dtype=np.int64)


NONE: Final = "none"


@dataclass(frozen=True)
class TrueLabels:
    """No mechanism: an output is the place of the label itself, (n,) int64.

    It reads codes as a label mechanism does, but draws none, claims no epsilon, is in
    no registry, and nothing that it reads is ever written or released.
    """

    n_classes: int
    name: ClassVar[str] = NONE
    unbiased: ClassVar[bool] = True

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each output whether it is a label."""
        return valid_codes(outputs, self.n_classes)

    def variance(self, x: NDArray[Any]) -> FloatArray:
        """Return the variance of ``decode``, (n, n_classes): zeros."""
        return np.zeros((np.size(x), self.n_classes))

    def decode(self, outputs: NDArray[Any]) -> FloatArray:
        """Return the one-hot labels, (n, n_classes)."""
        labels = np.arange(self.n_classes)
        k = self.n_classes
        return fill_in_blocks(outputs, k, lambda rows: rows[:, None] == labels)

    def likelihood(self, outputs: NDArray[Any]) -> FloatArray:
        """Return 1 for the label and 0 for all others, (n, n_classes)."""
        return self.decode(outputs)


FORMAT: Final = 1
_KEY: Final = b"curvote.codes"
_MOST_BYTES = 1 << 26


def _content_digest(about: dict[str, Any], columns: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(canonical_json(about))
    for name in sorted(columns):
        digest.update(columns[name].data)
    return digest.hexdigest()


def _read_columns(table: pa.Table, about: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the columns as they were written; a ValueError if they cannot be."""
    columns = {}
    for name, shape in about["shapes"].items():
        column = table[name].combine_chunks()
        flat = column if len(shape) == 1 else column.flatten()
        values = flat.to_numpy(zero_copy_only=False).reshape(shape)
        if values.dtype.str != about["kinds"][name]:
            raise ValueError(name)
        columns[name] = values
    return columns


# Numbers of a decoded block that are in memory at once.
_BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class Codes:
    """The noised codes of n labels: all that left their owners, and what is public.

    Parameters
    ----------
    values : array
        A label mechanism's outputs, one row a client: (n,) int64, packed bits
        (n, ceil(K/8)) uint8, or whole numbers (n, K) of ``alibi``.
    classes : array (K,)
        The labels that places stand for.
    epsilon : float
        The budget of each label.
    encoder : str
        The name of the mechanism.
    params : mapping, default={}
        What it is built with beside epsilon and K.
    prior : array (n, K) or (K,), or None, default=None
        The public prior of each client, or everybody's, where the mechanism takes one.

    Raises
    ------
    UserError
        Codes that the encoder cannot have made at this epsilon and K.

    Examples
    --------
    >>> from curvote import encode
    >>> codes = encode(["no", "yes", "no"], epsilon=2.0, encoder="k_rr")
    >>> print(len(codes), codes.classes, codes.encoder, codes[:2].values.shape)
    3 ['no' 'yes'] k_rr (2,)
    >>> codes.decode().shape
    (3, 2)
    """

    values: NDArray[Any]
    classes: NDArray[Any]
    epsilon: float
    encoder: str
    params: Mapping[str, Any] = field(default_factory=dict)
    prior: FloatArray | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "classes", check_classes(self.classes))
        put(self, "values", np.asarray(self.values))
        if self.encoder != NONE:
            validate.one_of(ENCODERS, encoder=self.encoder)
            put(self, "epsilon", validate.positive(epsilon=self.epsilon))
        if self.prior is not None:
            prior = np.asarray(self.prior, dtype=np.float64)
            shape = (len(self.values), self.n_classes)
            if prior.shape not in {shape, shape[1:]}:
                raise UserError(
                    f"prior has shape {prior.shape}; give one for each of the"
                    f" {shape[0]} codes and {shape[1]} classes: {shape}."
                )
            put(self, "prior", np.broadcast_to(prior, shape))
        budget = f"epsilon {self.epsilon:g} for {self.n_classes} classes"
        if self.values.ndim not in {1, 2}:
            shape = self.values.shape
            raise UserError(f"values has shape {shape}; codes are one row a client.")
        wrong = np.flatnonzero(~self.mechanism.possible_mask(self.values))
        if wrong.size:
            raise UserError(
                f"{wrong.size} of {len(self)} codes, shape {self.values.shape} of"
                f" {self.values.dtype}, cannot be made by {self.encoder} at {budget},"
                f" the first is in row {int(wrong[0])}."
            )

    @classmethod
    def plain(cls, y: ArrayLike, classes: ArrayLike | None = None) -> Codes:
        """Return the true labels in the form of codes: for studies, protects nobody.

        Their encoder is called "none", their epsilon is infinite.
        """
        class_names, places = places_of(y, classes)
        return cls(places, class_names, math.inf, NONE)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        """Return the number of codes, classes and the encoder: never the codes."""
        details = f"{self.n_classes} classes, {self.encoder}, epsilon {self.epsilon:g}"
        return f"<{len(self)} codes: {details}>"

    def __getitem__(self, rows: Any) -> Codes:
        """Return the codes of some rows: a slice, a mask, an array of places, or one.

        They were looked at when the whole was made.
        """
        if isinstance(rows, int | np.integer):
            rows = [rows]
        part, put = copy(self), object.__setattr__
        put(part, "values", self.values[rows])
        if self.prior is not None:
            put(part, "prior", self.prior[rows])
            part.__dict__.pop("mechanism", None)
        return part

    @property
    def n_classes(self) -> int:
        """Return K, the number of classes."""
        return len(self.classes)

    @property
    def nbytes(self) -> int:
        """Return the number of bytes that the codes take."""
        return self.values.nbytes

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without the mechanism, which is made of them again."""
        return {key: value for key, value in vars(self).items() if key != "mechanism"}

    @cached_property
    def mechanism(self) -> LabelMechanism | TrueLabels:
        """Return the mechanism that drew the codes, or the reader of true labels."""
        if self.encoder == NONE:
            return TrueLabels(self.n_classes)
        parameters = {"n_classes": self.n_classes, **self.params}
        if self.prior is not None:
            parameters["prior"] = self.prior
        mechanism = make(self.encoder, epsilon=self.epsilon, **parameters)
        return cast("LabelMechanism", mechanism)

    @property
    def facts(self) -> dict[str, float]:
        """Return what a release says of the mechanism: its omega, p, q and the like."""
        if isinstance(self.mechanism, TrueLabels):
            return {}
        return public_parameters(self.mechanism)

    def decode(self) -> FloatArray:
        """Return each client's estimate of its one-hot label, (n, K)."""
        return self.mechanism.decode(self.values)

    def likelihood(self) -> FloatArray:
        """Return P(code | class), (n, K), up to a factor that each row has of its own.

        The largest entry of a row is 1.
        """
        return self.mechanism.likelihood(self.values)

    def blocks(self) -> Iterator[tuple[slice, Codes]]:
        """Yield (rows, their codes) in blocks whose decoded codes fit the memory."""
        step = max(1, _BLOCK // self.n_classes)
        for start in range(0, len(self), step):
            rows = slice(start, min(start + step, len(self)))
            yield rows, self[rows]

    def write(self, path: str | Path) -> None:
        """Write the codes to a Parquet file, with their SHA-256.

        True labels are refused: UserError.
        """
        path = Path(path)
        if self.encoder == NONE:
            raise UserError(
                "the codes are true labels, not noised; they are never written."
            )
        columns = {"code": np.ascontiguousarray(self.values)}
        if self.prior is not None:
            columns["prior"] = np.ascontiguousarray(self.prior)
        about = {
            "format": FORMAT,
            "encoder": self.encoder,
            "epsilon": self.epsilon,
            "classes": self.classes.tolist(),
            "params": dict(self.params),
            "kinds": {name: it.dtype.str for name, it in columns.items()},
            "shapes": {name: list(it.shape) for name, it in columns.items()},
        }
        about["sha256"] = _content_digest(about, columns)
        arrays = {name: pa.array(it.ravel()) for name, it in columns.items()}
        for name, it in columns.items():
            if it.ndim > 1:
                arrays[name] = pa.FixedSizeListArray.from_arrays(
                    arrays[name], it.shape[1]
                )
        table = pa.table(arrays)
        table = table.replace_schema_metadata({_KEY: canonical_json(about)})
        try:
            pq.write_table(table, path)
        except OSError as error:
            raise UserError(f"{path} cannot be written: {error}.") from None

    @classmethod
    def read(cls, path: str | Path) -> Codes:
        """Return the codes that `write` wrote; an altered file is a UserError."""
        path = Path(path)
        try:
            table = pq.read_table(path)
        except FileNotFoundError:
            raise UserError(f"there is no file {path}.") from None
        except (OSError, pa.ArrowException) as error:
            raise UserError(f"{path} is no Parquet file: {error}") from None
        written = (table.schema.metadata or {}).get(_KEY)
        if written is None:
            raise UserError(
                f"{path} is no file of codes: it does not say how it was made."
            )
        try:
            about = parse_json(written, _MOST_BYTES)
            digest, columns = about.pop("sha256"), _read_columns(table, about)
            intact = digest == _content_digest(about, columns)
            intact &= about["format"] == FORMAT
        except (LookupError, TypeError, ValueError, AttributeError, pa.ArrowException):
            intact = False
        if not intact:
            raise UserError(
                f"{path} was altered after it was written: its SHA-256 is not the one"
                " that it states."
            )
        return cls(
            columns["code"],
            np.array(about["classes"]),
            about["epsilon"],
            about["encoder"],
            about["params"],
            columns.get("prior"),
        )
