"""Odd inputs for each kind of mechanism."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from curvote.audit.subject import OddInput
from curvote.mechanisms.base import (
    LabelMechanism,
    Mechanism,
    ScalarMechanism,
    VectorMechanism,
)
from curvote.validate import FloatArray

SUBNORMAL = 5e-324


def of(mechanism: Mechanism, base: FloatArray) -> list[OddInput]:
    """Return odd inputs made from ``base``, one client's valid input (), or (d,)."""
    record = np.atleast_1d(base).astype(np.float64)
    found = [*_values(mechanism, record), *_types(record), *_shapes(mechanism, record)]
    if isinstance(mechanism, VectorMechanism):
        found = [_batched(odd) for odd in found]
    return found


def _batched(odd: OddInput) -> OddInput:
    """Turn (d,) arrays into one row; what is shaped on purpose says so by its depth."""
    given, twin = odd.given, odd.twin
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given[None]
        twin = None if twin is None else twin[None]
    return OddInput(odd.name, given, twin)


def _with(record: FloatArray, value: float) -> FloatArray:
    changed = record.copy()
    changed[0] = value
    return changed


def _values(mechanism: Mechanism, record: FloatArray) -> Iterator[OddInput]:
    for bad in (np.nan, np.inf, -np.inf):
        yield OddInput(str(bad), _with(record, bad))
    zero = _with(record, 0.0)
    yield OddInput("-0.0", _with(record, -0.0), zero)
    if not isinstance(mechanism, ScalarMechanism | VectorMechanism):
        for bad in (-1.0, 0.5, SUBNORMAL, 1e9, 1e300):
            yield OddInput(f"{bad:g}", _with(record, bad))
        return
    yield OddInput("a subnormal number", _with(record, SUBNORMAL), zero)
    for far in (1.5, -1.5, 1e300, -1e300):
        yield OddInput(f"{far:g}", _with(record, far), _clipped(mechanism, record, far))


def _clipped(
    mechanism: ScalarMechanism | VectorMechanism, record: FloatArray, far: float
) -> FloatArray:
    """Return what ``record`` with one value far out of the domain stands for.

    The nearest point of the box; or what the mechanism makes of it, where its domain is
    no box (unit vectors): then even ``record`` is changed by ``clip``.
    """
    shape = (1, -1) if isinstance(mechanism, VectorMechanism) else (-1,)
    given = _with(record, far)
    if (mechanism.clip(record.reshape(shape))[0] == record).all():
        return np.clip(given, mechanism.low, mechanism.high)
    return np.asarray(mechanism.clip(given.reshape(shape))[0]).ravel()


def _types(record: FloatArray) -> Iterator[OddInput]:
    yield OddInput("no text", np.full(record.shape, "yes"))
    yield OddInput("a missing object", np.full(record.shape, None))
    text = np.array([repr(float(value)) for value in record])
    for name, given in (
        ("text", text),
        ("an object", record.astype(object)),
        ("a complex number", record.astype(complex)),
    ):
        yield OddInput(name, given, record)
    yield OddInput("a truth value", _with(record, 1.0) != 0, (record != 0) * 1.0)


def _shapes(mechanism: Mechanism, record: FloatArray) -> Iterator[OddInput]:
    if isinstance(mechanism, VectorMechanism):
        yield OddInput("one more coordinate", np.append(record, 0.0)[None])
        yield OddInput("no coordinate", np.empty((1, 0)))
        yield OddInput("a record without its batch", record.tolist())
    elif isinstance(mechanism, LabelMechanism):
        yield OddInput("a column of labels", record[:, None])
    shape = record.shape if isinstance(mechanism, VectorMechanism) else ()
    yield OddInput("no client", np.empty((0, *shape)), np.empty((0, *shape)))
