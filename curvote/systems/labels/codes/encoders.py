"""The encoders of a label by name: mechanisms, and what the literature calls them."""

import math
from collections import namedtuple
from functools import lru_cache, singledispatch
from typing import Any, Final

import numpy as np

from curvote.base import validate
from curvote.base.entropy import Entropy, SeededEntropy
from curvote.base.validate import FloatArray
from curvote.mechanisms import frequency_oracles
from curvote.mechanisms.alibi import ONE_HOT_STEPS, Alibi, clipped_law
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.factory import make
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
ENCODERS: Final = (
    frequency_oracles.UnarySymmetric.name,
    frequency_oracles.UnaryOptimised.name,
    KRR.name,
    frequency_oracles.SubsetSelection.name,
    frequency_oracles.Hadamard.name,
    Alibi.name,
    RRWithPrior.name,
)
# Among which `auto` chooses.
CANDIDATES: Final = (
    *("k_rr", "subset_selection", "unary_symmetric"),
    *("unary_optimised", "hadamard"),
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


DRAWS = 20_000
_PARTS = 20


# Numbers on what one code of an encoder says of its label. ``retention`` is the
# probability that its likeliest class, at random among equals, is the label (of `k_rr`:
# that the label is kept), the mean over the labels; ``ceiling`` the largest that any
# encoder has, e^eps/K (Zhao et al. 2025, B.1). ``signal`` is (p - q)^2/Var(Z_c - Z_j),
# ``measured`` the same of draws, and ``se`` its standard error. ``nbytes`` is what one
# code takes.
Efficiency = namedtuple(
    "Efficiency",
    "encoder n_classes epsilon retention ceiling signal measured se nbytes",
)


def encoder_efficiency(
    encoder: str, n_classes: int, epsilon: float, draws: int = DRAWS, seed: int = 0
) -> Efficiency:
    """Return the efficiency of an encoder that needs no prior, by mechanism name."""
    mechanism = build_encoder(encoder, n_classes, epsilon)
    measured, se = measured_signal(mechanism, draws, SeededEntropy(seed))
    head = mechanism.name, mechanism.n_classes, mechanism.epsilon
    shares = retention(mechanism), accuracy_ceiling(n_classes, epsilon)
    signal = signal_ratio(mechanism), measured, se
    return Efficiency(*head, *shares, *signal, code_bytes(mechanism))


def accuracy_ceiling(n_classes: int, epsilon: float) -> float:
    """Return e^eps/K, at most 1: the largest accuracy of a guess from one code."""
    return min(1.0, math.exp(min(epsilon, 700.0)) / n_classes)


def signal_ratio(mechanism: Any) -> float:
    """Return (p - q)^2 / Var(Z_c - Z_j) by the law: c the label, j another one.

    The mean of n codes tells c from j by sqrt(n signal) standard deviations.
    """
    return float(1 / mechanism.pair_variance())


def measured_signal(
    mechanism: LabelMechanism, draws: int, entropy: Entropy
) -> tuple[float, float]:
    """Return the signal in ``draws`` >= 40 decoded codes, and its standard error.

    From twenty parts of them.
    """
    n = validate.at_least(2 * _PARTS, draws=draws)
    labels = np.arange(n, dtype=np.int64) % mechanism.n_classes
    decoded = mechanism.decode(mechanism.randomize(labels, entropy))
    rows, k = np.arange(n), decoded.shape[1]
    other_classes = (labels + 1 + rows // k % (k - 1)) % k
    gaps = np.asarray(decoded[rows, labels] - decoded[rows, other_classes])
    parts = np.array([_gap_ratio(part) for part in np.array_split(gaps, _PARTS)])
    return _gap_ratio(gaps), float(parts.std(ddof=1) / math.sqrt(_PARTS))


def _gap_ratio(gaps: FloatArray) -> float:
    return float(gaps.mean() ** 2 / gaps.var(ddof=1)) if gaps.var() else math.inf


@singledispatch
def retention(mechanism: LabelMechanism) -> float:
    """Return how often the likeliest class of one code is the label, by its law.

    By its law, of which all outputs are listed where there is no formula; too many of
    them are a UserError.
    """
    outputs = mechanism.outputs()
    likely = mechanism.likelihood(outputs) == 1
    chances = mechanism.probabilities(np.arange(mechanism.n_classes))
    right = likely / np.count_nonzero(likely, axis=1)[:, None]
    return float((chances * right.T).sum() / mechanism.n_classes)


@retention.register
def _set_retention(mechanism: frequency_oracles.SubsetSelection) -> float:
    return float(mechanism.p / mechanism.omega)


@retention.register(frequency_oracles.UnarySymmetric)
@retention.register(frequency_oracles.UnaryOptimised)
def _bit_retention(mechanism: Any) -> float:
    """Return the chance of the label among the ones, or among all where none is 1."""
    p, q, k = float(mechanism.p), float(mechanism.q), mechanism.n_classes
    some = p * -math.expm1(k * math.log1p(-q)) / (k * q)
    return float(some + (1 - p) * (1 - q) ** (k - 1) / k)


@retention.register
def _noise_retention(mechanism: Alibi) -> float:
    """Return the sum over what the label's number can be while others are not above."""
    other, k = clipped_law(mechanism.noise.rate, ONE_HOT_STEPS), mechanism.n_classes
    reached = np.append(0.0, np.cumsum(other))
    among = (reached[1:] ** k - reached[:-1] ** k) / (k * np.maximum(other, 1e-300))
    return float((other[::-1] * among).sum())
