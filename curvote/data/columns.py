"""Columns of data sets: client tables, bounds of features, class lists."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from curvote.base.classes import Classes
from curvote.base.errors import InternalError, UserError
from curvote.base.table_file import Violations
from curvote.chain.settings import Strict
from curvote.data.raw_files import Source

Paths = Mapping[str, Path]  # of raw files, by name
ClientColumns = dict[str, NDArray[Any]]  # client_id, label, group, curve, and more
Facts = dict[str, Any]  # public metadata as plain JSON values
Points = Annotated[int, Field(ge=2, strict=True)]
Text = Annotated[str, Field(min_length=1)]
# Who tests comes from the publisher's test part, everybody else from its other one.
Split = Literal["published"]


def always(value: Any) -> Any:
    """Return the function of a data set that says ``value`` for any parameters."""
    return lambda _parameters: value


class Simulation:
    """A data set without a file: nothing to fetch, check or fingerprint."""

    SIMULATED = True
    files = staticmethod(always(()))
    size = staticmethod(always(None))  # nobody published how many clients there are

    def width(self, parameters: Any) -> int:
        """Return how many numbers a client has by the pipeline: its grid points."""
        return int(parameters.points)

    def about(self, parameters: Any) -> Facts:
        """Return what is special to the public metadata, as plain JSON values."""
        raise NotImplementedError

    def facts(self, parameters: Any, _paths: Any = None) -> Facts:
        """Return the public metadata as plain JSON values."""
        nobody: Facts = {"rows": None, "counts": {}, "notes": []}
        return {**nobody, "simulated": True, **self.about(parameters)}


def client_columns(
    curve: NDArray[Any],
    label: NDArray[np.int64],
    client_id: NDArray[np.int64] | None = None,
    group: NDArray[np.int64] | None = None,
    **more: NDArray[Any] | None,
) -> ClientColumns:
    """Return client_id, label, group (n,) and curve (n, T) as one table.

    Ids and groups that are not given are 0 to n - 1. ``more`` are columns that only
    some sources have: None leaves one out.
    """
    rows = np.arange(len(label))
    return {
        "client_id": rows if client_id is None else client_id,
        "label": label,
        "group": rows if group is None else group,
        "curve": curve,
        **{name: column for name, column in more.items() if column is not None},
    }


def part_sizes(tested: NDArray[np.int64] | None) -> dict[str, dict[str, int]]:
    """Return how many records train and test as metadata ``parts``."""
    if tested is None:
        return {}
    test = int(tested.sum())
    return {"parts": {"train": len(tested) - test, "test": test}}


def join_pieces(pieces: Iterable[ClientColumns]) -> ClientColumns:
    """Return the pieces of a table as one: for files that fit into memory."""
    parts = list(pieces)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def form_of_curves(parameters: Any) -> Facts:
    """Return public metadata of curves that have channels, or are smoothed."""
    channels, smooth = [*parameters.channels], parameters.irregular == "smooth"
    facts: Facts = {"channels": channels} if channels else {}
    return facts | ({"irregular": "smooth"} if smooth else {})


def class_counts(labels: NDArray[np.int64], classes: Sequence[str]) -> list[int]:
    """Return the number of labels (n,) of each class."""
    return [int(n) for n in np.bincount(labels, minlength=len(classes))]


def facts(
    counts: Sequence[int], classes: Sequence[str], **extra: Any
) -> dict[str, Any]:
    """Return the public metadata of a file: class ``counts``, and the ``extra``."""
    return extra | {
        "classes": list(classes),
        "rows": sum(counts),
        "counts": dict(zip(classes, counts, strict=True)),
        "simulated": False,
    }


def check_rows(n: int, source: Source) -> None:
    """Raise a UserError unless there are as many rows as published."""
    if n != source.rows:
        raise UserError(f"wrong counts: {n} rows instead of {source.rows}.")


ALL = "all"


def all_classes(names: tuple[Any, ...]) -> BeforeValidator:
    """Return the validator that takes the word `all` for all class names."""
    literal: Any = Literal.__getitem__(names)
    form = list[literal] | Literal["all"]  # what an editor offers
    return BeforeValidator(lambda value: names if value == ALL else value, form)


def _refuse_all(value: Any) -> Any:
    if value == ALL:
        message = (
            "list the names: nobody published them, and a list that is taken from"
            " private records is not public"
        )
        raise PydanticCustomError("private", message)
    return value


def _check_distinct(classes: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(classes) < 2:
        raise PydanticCustomError("few", "name two or more")
    if len({*classes}) < len(classes):
        raise PydanticCustomError("repeated", "name each class once")
    return classes


# Of records that nobody published, the word `all` says nothing.
EXPLICIT_CLASSES = BeforeValidator(_refuse_all)
DISTINCT_CLASSES = AfterValidator(_check_distinct)


def check_one_way(parameters: Any, *short: str) -> None:
    """Refuse a list of classes beside the ``short`` form of two classes."""
    stated_fields = parameters.model_fields_set & {*short}
    beside = any(getattr(parameters, name) is not None for name in stated_fields)
    if parameters.classes is not None and beside:
        message = f"give classes, or {' and '.join(short)}"
        raise PydanticCustomError("both", message)


def label_text(value: object) -> object:
    """Return a label's text in a file, also where YAML reads 1 or true."""
    if isinstance(value, bool):
        return str(value).lower()
    integral = isinstance(value, float) and value.is_integer()
    return f"{value:.0f}" if integral else str(value) if value is not None else None


LabelText = Annotated[
    str,
    BeforeValidator(label_text, str | int | float | bool),  # what a schema accepts
    Field(min_length=1),
]


class Labelled(Strict):
    """Label settings of ``source:``: ``positive``, or the list ``classes``.

    With ``positive`` there are two, and the file says what the other one is.
    """

    positive: LabelText | None = None
    classes: (
        Annotated[tuple[LabelText, ...], EXPLICIT_CLASSES, DISTINCT_CLASSES] | None
    ) = None

    @model_validator(mode="after")
    def _check_one_way(self) -> Labelled:
        check_one_way(self, "positive")
        if self.positive is None and self.classes is None:
            message = "name the classes, or the positive one of two"
            raise PydanticCustomError("missing", message)
        return self

    @property
    def places(self) -> dict[str, int]:
        """Return the place of each class that is listed."""
        return {name: place for place, name in enumerate(self.classes or ())}

    @property
    def unlisted_text(self) -> str:
        """Return the words for a label that is not listed."""
        return f"is none of the classes {', '.join(self.classes or ())}"


def listed_classes(parameters: Labelled) -> Classes | None:
    """Return the listed classes; None: the file names the second."""
    return Classes(parameters.classes) if parameters.classes else None


def resolve_classes(
    violations: Violations, column: str, texts: Collection[str], parameters: Labelled
) -> tuple[str, ...]:
    """Return the classes, negative first where there are two that are not listed.

    Raises:
        UserError: everything that is wrong so far, or labels ``texts`` that are not
            two, one of them positive.
    """
    positive = parameters.positive
    if positive is not None and (len(texts) != 2 or positive not in texts):
        near = next((k for k in texts if k.lower() == positive.lower()), positive)
        cure = [f'so write positive: "{near}", in quotes'] * (near != positive)
        if len(texts) > 2:
            cure = ["with more than two, write classes: [a, b, c] instead of positive"]
        what = f"column {column!r} needs two labels, one of them {positive!r}; it has"
        violations.add(what, max(len(texts), 1), [*map(repr, sorted(texts)), *cure])
    violations.check()
    if positive is None:
        return parameters.classes or ()
    return next(name for name in texts if name != positive), positive


@dataclass(frozen=True)
class Feature:
    """One feature of a table, with bounds that are known without any record.

    ``why`` names the source of the bounds: domain knowledge, never the data.
    ``centre`` is public, too (default: the midpoint of the bounds). ``missing`` are
    numbers that mean "missing", beside the table's text marks. ``categories`` are
    coded 0..k-1 in alphabetical order. ``integral`` allows whole numbers only.
    """

    name: str
    unit: str
    lower: float
    upper: float
    why: str
    centre: float | None = None
    missing: tuple[float, ...] = ()
    categories: tuple[str, ...] = ()
    integral: bool = False

    def __post_init__(self) -> None:
        ordered = -math.inf < self.lower < self.upper < math.inf
        if not ordered or not self.lower <= self.middle <= self.upper:
            raise InternalError(f"the bounds of feature {self.name} are not in order.")
        if self.categories not in {(), tuple(sorted({*self.categories}))}:
            raise InternalError(f"the categories of {self.name} are not in order.")

    @property
    def middle(self) -> float:
        """Return the public centre: the one stated, else the midpoint."""
        return (self.lower + self.upper) / 2 if self.centre is None else self.centre

    def to_json(self) -> dict[str, Any]:
        """Return name, unit, bounds, centre, why and kind as plain JSON values."""
        kind: dict[str, Any] = {"integral": True} if self.integral else {}
        kind |= {"categories": [*self.categories]} if self.categories else {}
        return {
            "name": self.name,
            "unit": self.unit,
            "lower": float(self.lower),
            "upper": float(self.upper),
            "centre": float(self.middle),
            "why": self.why,
            **kind,
        }


def feature_facts(features: Sequence[Feature]) -> Facts:
    """Return features as public metadata: their places are the grid."""
    n = len(features)
    space = {"grid": list(range(n)), "domain": [0, n - 1], "unit": "feature"}
    return space | {"features": [feature.to_json() for feature in features]}


def category_feature(name: str, categories: Collection[str], why: str) -> Feature:
    """Return a feature of text ``categories``, coded 0..k-1 in alphabetical order."""
    texts = tuple(sorted(categories))
    codes = ", ".join(f"{code} = {text}" for code, text in enumerate(texts))
    top = len(texts) - 1
    return Feature(name, f"code: {codes}", 0, top, why, categories=texts)


def indicator_features(feature: Feature) -> tuple[Feature, ...]:
    """Return one feature of values 0 and 1 for each category of ``feature``."""
    return tuple(
        Feature(f"{feature.name} = {text}", "0 or 1", 0, 1, feature.why, integral=True)
        for text in feature.categories
    )
