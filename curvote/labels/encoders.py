"""The encoders of a label by name: mechanisms, and what the literature calls them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from curvote import validate
from curvote.mechanisms import make
from curvote.mechanisms.alibi import Alibi
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.hadamard import Hadamard
from curvote.mechanisms.k_rr import KRR
from curvote.mechanisms.labels import PackedMechanism
from curvote.mechanisms.rr_with_prior import RRWithPrior
from curvote.mechanisms.subset_selection import SubsetSelection
from curvote.mechanisms.unary import UnaryOptimised, UnarySymmetric

AUTO: Final = "auto"
# What tables and papers call a mechanism.
CALLED: Final = {
    "vector": "unary_symmetric",
    "oue": "unary_optimised",
    "rr": "k_rr",
    "subset": "subset_selection",
}
# By their classes, so that their code counts wherever an encoder may be named.
ENCODERS: Final = tuple(
    kind.name
    for kind in (
        UnarySymmetric,
        UnaryOptimised,
        KRR,
        SubsetSelection,
        Hadamard,
        Alibi,
        RRWithPrior,
    )
)
# Among which `auto` chooses.
CANDIDATES: Final = (
    "k_rr",
    "subset_selection",
    "unary_symmetric",
    "unary_optimised",
    "hadamard",
)
# What a release says of its mechanism, as far as it has it.
_FACTS = ("omega", "p", "q", "size", "block", "scale")


def concrete(encoder: str, n_classes: int, epsilon: float) -> str:
    """Return the mechanism that a name stands for; an unknown name is a UserError.

    ``auto`` looks at the number of classes and at epsilon only.
    """
    validate.one_of((AUTO, *CALLED, *ENCODERS), encoder=encoder)
    if encoder == AUTO:
        return best(n_classes, epsilon)
    return CALLED.get(encoder, encoder)


@lru_cache(maxsize=256)
def best(n_classes: int, epsilon: float) -> str:
    """Return the encoder of the largest (p - q)^2 / Var(Z_c - Z_j).

    Z is the decoded code, c the label and j another one: the signal of one code in
    telling the two apart. Of equal ones the code of fewest bytes is taken.
    """
    made = [built(name, n_classes, epsilon) for name in CANDIDATES]
    found = min(made, key=lambda one: (one.pair_variance(), code_bytes(one)))
    return str(found.name)


def built(encoder: str, n_classes: int, epsilon: float) -> Any:
    """Return the mechanism of an encoder that needs no prior."""
    return make(encoder, epsilon=epsilon, n_classes=n_classes)


def stated(mechanism: LabelMechanism) -> dict[str, Any]:
    """Return what must be stated beside epsilon: later versions may choose another."""
    omega = getattr(mechanism, "omega", None)
    return {} if omega is None else {"omega": omega}


def code_bytes(mechanism: LabelMechanism) -> int:
    """Return how many bytes one code takes in memory."""
    if isinstance(mechanism, PackedMechanism):
        return mechanism.width
    numbers = mechanism.n_classes if isinstance(mechanism, Alibi) else 1
    return int(mechanism.dtype.itemsize) * numbers


def facts(mechanism: LabelMechanism) -> dict[str, float]:
    """Return what a release says of a mechanism: omega, p and q, or its noise's scale.

    ``scale`` is that of `alibi`, in the one-hot label's unit.
    """
    there = {name: getattr(mechanism, name, None) for name in _FACTS}
    return {
        name: value if isinstance(value, int) else float(value)
        for name, value in there.items()
        if value is not None
    }
