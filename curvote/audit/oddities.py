"""Odd inputs of each kind of mechanism."""

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


def odd_inputs_of(mechanism: Mechanism, base: FloatArray) -> list[OddInput]:
    """Return odd inputs made from the valid input ``base`` of one client."""
    record = np.atleast_1d(base).astype(np.float64)
    odd_inputs = [
        *_odd_values(mechanism, record),
        *_odd_types(record),
        *_odd_shapes(mechanism, record),
    ]
    if isinstance(mechanism, VectorMechanism):
        odd_inputs = [_as_batch(odd) for odd in odd_inputs]
    return odd_inputs


def _as_batch(odd: OddInput) -> OddInput:
    """Return an odd input as one row of a batch."""
    value, twin = odd.value, odd.twin
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value[None]
        twin = None if twin is None else twin[None]
    return OddInput(odd.name, value, twin)


def _replace_value(record: FloatArray, value: float) -> FloatArray:
    changed = record.copy()
    changed[0] = value
    return changed


def _odd_values(mechanism: Mechanism, record: FloatArray) -> Iterator[OddInput]:
    for bad in (np.nan, np.inf, -np.inf):
        yield OddInput(str(bad), _replace_value(record, bad))
    zero = _replace_value(record, 0.0)
    yield OddInput("-0.0", _replace_value(record, -0.0), zero)
    if not isinstance(mechanism, ScalarMechanism | VectorMechanism):
        for bad in (-1.0, 0.5, SUBNORMAL, 1e9, 1e300):
            yield OddInput(f"{bad:g}", _replace_value(record, bad))
        return
    yield OddInput("a subnormal number", _replace_value(record, SUBNORMAL), zero)
    for far in (1.5, -1.5, 1e300, -1e300):
        yield OddInput(
            f"{far:g}",
            _replace_value(record, far),
            _clipped_input(mechanism, record, far),
        )


def _clipped_input(
    mechanism: ScalarMechanism | VectorMechanism, record: FloatArray, far: float
) -> FloatArray:
    """Return an input far out of the domain, and its clipped twin.

    The nearest point of the box; or what the mechanism makes of it, where its domain is
    no box (unit vectors): then even ``record`` is changed by ``clip``.
    """
    shape = (1, -1) if isinstance(mechanism, VectorMechanism) else (-1,)
    far_value = _replace_value(record, far)
    if (mechanism.clip(record.reshape(shape))[0] == record).all():
        return np.clip(far_value, mechanism.low, mechanism.high)
    return np.asarray(mechanism.clip(far_value.reshape(shape))[0]).ravel()


def _odd_types(record: FloatArray) -> Iterator[OddInput]:
    yield OddInput("no text", np.full(record.shape, "yes"))
    yield OddInput("a missing object", np.full(record.shape, None))
    text = np.array([repr(float(value)) for value in record])
    for name, odd_value in (
        ("text", text),
        ("an object", record.astype(object)),
        ("a complex number", record.astype(complex)),
    ):
        yield OddInput(name, odd_value, record)
    yield OddInput(
        "a truth value", _replace_value(record, 1.0) != 0, (record != 0) * 1.0
    )


def _odd_shapes(mechanism: Mechanism, record: FloatArray) -> Iterator[OddInput]:
    if isinstance(mechanism, VectorMechanism):
        yield OddInput("one more coordinate", np.append(record, 0.0)[None])
        yield OddInput("no coordinate", np.empty((1, 0)))
        yield OddInput("a record without its batch", record.tolist())
    elif isinstance(mechanism, LabelMechanism):
        yield OddInput("a column of labels", record[:, None])
    shape = record.shape if isinstance(mechanism, VectorMechanism) else ()
    yield OddInput("no client", np.empty((0, *shape)), np.empty((0, *shape)))
