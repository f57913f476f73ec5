"""Columns of data sets: client tables, bounds of features, class lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from curvote.datasets.sources import Source
from curvote.errors import UserError

Points = Annotated[int, Field(ge=2, strict=True)]
# Who tests comes from the publisher's test part, everybody else from its other one.
Split = Literal["published"]


def no_files(_parameters: Any) -> tuple[str, ...]:
    """Return no names: the data set has no raw file."""
    return ()


def user_file_key(_parameters: Any) -> tuple[str, ...]:
    """Return the key of ``paths`` that holds the user's file."""
    return ("path",)


def no_size(_parameters: Any) -> int | None:
    """Return None: nobody published how many clients there are."""
    return None


def grid_points(parameters: Any) -> int:
    """Return the number of grid points of a curve."""
    return int(parameters.points)


def client_columns(
    curve: NDArray[Any],
    label: NDArray[np.int64],
    client_id: NDArray[np.int64] | None = None,
    group: NDArray[np.int64] | None = None,
    **more: NDArray[Any] | None,
) -> dict[str, NDArray[Any]]:
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
