"""The gallery by name; a new fault is a twin in this folder and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.audit.broken import (
    cells,
    choices,
    commands,
    gradients,
    labels,
    messages,
    noise,
    paths,
    records,
    servers,
    tables,
)
from curvote.audit.examples import MORE, task
from curvote.audit.label_subject import LabelSubject, of_label
from curvote.audit.leaving import Release
from curvote.audit.mechanism_subject import MechanismSubject, built, subject_of
from curvote.audit.message_subject import MessageSubject, of_record
from curvote.audit.reruns import Memo
from curvote.audit.row import BROKEN
from curvote.audit.sent_subject import SentSubject
from curvote.entropy import Entropy, SeededEntropy
from curvote.mechanisms.base import Mechanism
from curvote.mechanisms.laplace import Laplace
from curvote.mechanisms.making import names
from curvote.privacy import Budget
from curvote.validate import FloatArray

Broken = MechanismSubject | SentSubject | Memo | Release


def _twin(
    kind: Callable[..., Mechanism],
    epsilon: float,
    extra: tuple[FloatArray, ...] = (),
    **params: Any,
) -> MechanismSubject:
    return subject_of(kind(epsilon=epsilon, **params), "", params, extra)


def _sent(
    message: Any, protocol: str, epsilon: float, n_classes: int = 2
) -> MessageSubject:
    honest = of_record(task(protocol, message.name, epsilon, n_classes))
    return replace(honest, message=message)


def _code(message: Any, protocol: str, epsilon: float) -> LabelSubject:
    honest = of_label(task(protocol, message.name, epsilon, MORE))
    return replace(honest, message=message)


def _memo(epsilon: float) -> Memo:
    """Return a release whose memory is never asked: each run noises the value anew."""
    truth, laplace = np.array([0.25]), Laplace(epsilon=epsilon)

    def release(seed: int) -> Callable[[], FloatArray]:
        return partial(laplace.randomize, truth, SeededEntropy(seed))

    return Memo("", {}, Budget(epsilon), truth, release)


@dataclass(frozen=True, eq=False, kw_only=True)
class Doubled(MechanismSubject):
    """Declares the law of one mechanism and draws from another."""

    secret: Mechanism

    def send(self, many: FloatArray, entropy: Entropy) -> NDArray[Any]:
        """Return the outputs of clients who hold ``many``, a row each."""
        return self.secret.randomize(many, entropy)


def doubled(name: str, epsilon: float) -> Doubled:
    """Return the mechanism ``name`` that claims epsilon and spends twice as much."""
    honest, secret = built(name, epsilon), built(name, 2 * epsilon).mechanism
    facts = honest.mechanism, "", honest.params, honest.budget
    return Doubled(*facts, secret=secret)


# Small, so that few draws prove a larger one.
EPSILON = 0.5
FIVE = 5  # classes of a code
TWINS: Mapping[str, Callable[[float], Broken]] = {
    "sensitivity_halved": partial(_twin, noise.SensitivityHalved),
    "budget_not_split": partial(_twin, records.BudgetNotSplit, d=3),
    "report_budget_not_split": partial(_sent, messages.ReportNotSplit(), "mrma"),
    "float_laplace": partial(_twin, noise.FloatLaplace),
    "min_max_2023": partial(_twin, records.MinMax2023, extra=records.FAR_APART, d=4),
    "unary_full_epsilon": partial(_twin, choices.UnaryFullEpsilon, n_classes=4),
    "rerandomised_memo": _memo,
    "raw_echo": partial(_twin, noise.RawEcho),
    "no_noise": partial(_twin, noise.NoNoise),
    "off_by_one_threshold": partial(_twin, choices.OffByOneThreshold),
    "off_by_one_comparison": partial(_twin, choices.OffByOneComparison),
    "same_seed": partial(_twin, noise.SameSeed),
    "shared_noise": partial(_twin, noise.SharedNoise),
    "repeated_blocks": partial(_twin, noise.RepeatedBlocks),
    "passes_nan": partial(_twin, noise.PassesNaN),
    "missing_for_large": partial(_twin, noise.MissingForLarge),
    "no_clipping": partial(_twin, noise.NoClipping),
    "subset_with_label": partial(_twin, choices.SubsetWithLabel, n_classes=4),
    "gaussian_halved": partial(_twin, records.GaussianHalved, d=3, delta=1e-5),
    "naked_label": partial(_sent, messages.NakedLabel(), "mrma"),
    "quiet_label_bin": partial(_sent, messages.QuietLabelBin(), "mrma"),
    "vote_twice": partial(_sent, messages.VoteTwice(), "mrma"),
    "direction_twice": partial(_sent, messages.DirectionTwice(), "direct"),
    "label_beside": partial(_sent, messages.LabelBeside(), "direct"),
    "gradient_unclipped": partial(_sent, gradients.GradientUnclipped(), "sgd"),
    "label_beside_code": partial(
        _sent, messages.LabelBesideCode(), "direct", n_classes=FIVE
    ),
    "corner_of_wrong_length": partial(
        _sent, messages.CornerOfWrongLength(), "direct", n_classes=FIVE
    ),
    "half_noise_for_few": partial(_twin, paths.HalfNoiseForFew),
    "exact_half_noise_for_few": partial(_twin, paths.ExactHalfNoiseForFew),
    "quiet_bin": partial(_twin, paths.QuietBin),
    "quiet_at_tenths": partial(_twin, paths.QuietAtTenths),
    "half_noise_in_a_bin": partial(_twin, paths.HalfNoiseInABin),
    "quiet_where_clipped": partial(_twin, paths.QuietWhereClipped),
    "lagged_noise": partial(_twin, paths.LaggedNoise),
    "one_noise_for_two": partial(_twin, paths.OneNoiseForTwo, d=3),
    "coarse_threshold": partial(_twin, paths.CoarseThreshold),
    "coarse_rounding": partial(_twin, paths.CoarseRounding),
    "halved_threshold": partial(_twin, paths.HalvedThreshold, d=3),
    "words_by_label": partial(
        _twin, paths.WordsByLabel, n_classes=4, prior=(0.33, 0.33, 0.33, 0.01)
    ),
    "labels_alibi_half_scale": partial(_twin, labels.AlibiHalfScale, n_classes=4),
    "labels_one_bit_counted": partial(_twin, labels.OneBitCounted, n_classes=4),
    "labels_code_each_epoch": partial(_code, labels.CodeEachEpoch(), "labels"),
    "labels_prior_from_labels": partial(_code, labels.PriorFromLabels(), "labels_two"),
    "labels_nudged_prior": partial(_code, labels.NudgedPrior(), "labels_two"),
    "labels_both_rounds": partial(_code, labels.BothRounds(), "labels_two"),
    "labels_label_in_features": partial(_code, labels.LabelInFeatures(), "labels"),
    "large_share_not_split": partial(_sent, messages.LargeShareNotSplit(), "mrma"),
    **cells.twins(),
    **tables.twins(),
    **servers.twins(),
    **commands.twins(),
}


def gallery_names() -> list[str]:
    """Return ``broken.<name>`` for each fault, and one twin for each mechanism."""
    return [BROKEN + name for name in (*TWINS, *(f"doubled_{n}" for n in names()))]


def gallery(name: str, epsilon: float = EPSILON) -> Broken:
    """Return one of the gallery; ``name`` is one of ``gallery_names()``."""
    key = name.removeprefix(BROKEN)
    if key in TWINS:
        return replace(TWINS[key](epsilon), name=name)
    return replace(doubled(key.removeprefix("doubled_"), epsilon), name=name)
