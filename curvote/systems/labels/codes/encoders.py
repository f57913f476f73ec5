"""The encoders of a label by name: mechanisms, and what the literature calls them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from curvote.base import validate
from curvote.mechanisms.alibi import Alibi
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.factory import make
from curvote.mechanisms.frequency_oracles import (
    Hadamard,
    SubsetSelection,
    UnaryOptimised,
    UnarySymmetric,
)
from curvote.mechanisms.labels import PackedMechanism
from curvote.mechanisms.randomized_response import KRR, RRWithPrior

AUTO: Final = "auto"
# What tables and papers call a mechanism.
ALIASES: Final = {
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


def mechanism_name(encoder: str, n_classes: int, epsilon: float) -> str:
    """Return the name of the mechanism that an encoder's name stands for.

    ``auto`` looks at the number of classes and at epsilon only.
    """
    validate.one_of((AUTO, *ALIASES, *ENCODERS), encoder=encoder)
    if encoder == AUTO:
        return best_encoder(n_classes, epsilon)
    return ALIASES.get(encoder, encoder)


@lru_cache(maxsize=256)
def best_encoder(n_classes: int, epsilon: float) -> str:
    """Return the encoder with the largest signal, (p - q)^2 / Var(Z_c - Z_j).

    Z is the decoded code, c the label and j another one: the signal of one code in
    telling the two apart. Of equal ones the code of fewest bytes is taken.
    """
    mechanisms = [build_encoder(name, n_classes, epsilon) for name in CANDIDATES]
    winner = min(mechanisms, key=lambda law: (law.pair_variance(), code_bytes(law)))
    return str(winner.name)


def build_encoder(encoder: str, n_classes: int, epsilon: float) -> Any:
    """Return the mechanism of an encoder that needs no prior."""
    return make(encoder, epsilon=epsilon, n_classes=n_classes)


def explicit_params(mechanism: LabelMechanism) -> dict[str, Any]:
    """Return the parameters that a task states beside epsilon."""
    omega = getattr(mechanism, "omega", None)
    return {} if omega is None else {"omega": omega}


def code_bytes(mechanism: LabelMechanism) -> int:
    """Return the number of bytes that one code takes in memory."""
    if isinstance(mechanism, PackedMechanism):
        return mechanism.width
    numbers = mechanism.n_classes if isinstance(mechanism, Alibi) else 1
    return int(mechanism.dtype.itemsize) * numbers


def public_parameters(mechanism: LabelMechanism) -> dict[str, float]:
    """Return a mechanism's public parameters: omega, p and q, or its noise's scale.

    ``scale`` is that of `alibi`, in the one-hot label's unit.
    """
    values = {name: getattr(mechanism, name, None) for name in _FACTS}
    return {
        name: value if isinstance(value, int) else float(value)
        for name, value in values.items()
        if value is not None
    }
