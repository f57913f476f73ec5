"""Gallery of broken twins by name; a new fault is a twin in this folder and a line."""

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
from curvote.audit.examples import MORE, example_task
from curvote.audit.label_subject import LabelSubject, label_subject
from curvote.audit.leaving import Release
from curvote.audit.mechanism_subject import MechanismSubject, build_subject, subject_of
from curvote.audit.message_subject import MessageSubject, record_subject_of
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


def _mechanism_twin(
    kind: Callable[..., Mechanism],
    epsilon: float,
    extra: tuple[FloatArray, ...] = (),
    **params: Any,
) -> MechanismSubject:
    return subject_of(kind(epsilon=epsilon, **params), "", params, extra)


def _message_twin(
    message: Any, protocol: str, epsilon: float, n_classes: int = 2
) -> MessageSubject:
    honest = record_subject_of(example_task(protocol, message.name, epsilon, n_classes))
    return replace(honest, message=message)


def _code_twin(message: Any, protocol: str, epsilon: float) -> LabelSubject:
    honest = label_subject(example_task(protocol, message.name, epsilon, MORE))
    return replace(honest, message=message)


def _rerun_twin(epsilon: float) -> Memo:
    """Return a release without memory: each run noises the value anew."""
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


def doubled_twin(name: str, epsilon: float) -> Doubled:
    """Return the mechanism ``name`` that claims epsilon and spends twice as much."""
    honest, secret = (
        build_subject(name, epsilon),
        build_subject(name, 2 * epsilon).mechanism,
    )
    facts = honest.mechanism, "", honest.params, honest.budget
    return Doubled(*facts, secret=secret)


# Small, so that few draws prove a larger one.
EPSILON = 0.5
FIVE = 5  # classes of a code
TWINS: Mapping[str, Callable[[float], Broken]] = {
    "sensitivity_halved": partial(_mechanism_twin, noise.SensitivityHalved),
    "budget_not_split": partial(_mechanism_twin, records.BudgetNotSplit, d=3),
    "report_budget_not_split": partial(
        _message_twin, messages.ReportNotSplit(), "mrma"
    ),
    "float_laplace": partial(_mechanism_twin, noise.FloatLaplace),
    "min_max_2023": partial(
        _mechanism_twin, records.MinMax2023, extra=records.FAR_APART, d=4
    ),
    "unary_full_epsilon": partial(
        _mechanism_twin, choices.UnaryFullEpsilon, n_classes=4
    ),
    "rerandomised_memo": _rerun_twin,
    "raw_echo": partial(_mechanism_twin, noise.RawEcho),
    "no_noise": partial(_mechanism_twin, noise.NoNoise),
    "off_by_one_threshold": partial(_mechanism_twin, choices.OffByOneThreshold),
    "off_by_one_comparison": partial(_mechanism_twin, choices.OffByOneComparison),
    "same_seed": partial(_mechanism_twin, noise.SameSeed),
    "shared_noise": partial(_mechanism_twin, noise.SharedNoise),
    "repeated_blocks": partial(_mechanism_twin, noise.RepeatedBlocks),
    "passes_nan": partial(_mechanism_twin, noise.PassesNaN),
    "missing_for_large": partial(_mechanism_twin, noise.MissingForLarge),
    "no_clipping": partial(_mechanism_twin, noise.NoClipping),
    "subset_with_label": partial(_mechanism_twin, choices.SubsetWithLabel, n_classes=4),
    "gaussian_halved": partial(
        _mechanism_twin, records.GaussianHalved, d=3, delta=1e-5
    ),
    "naked_label": partial(_message_twin, messages.NakedLabel(), "mrma"),
    "quiet_label_bin": partial(_message_twin, messages.QuietLabelBin(), "mrma"),
    "vote_twice": partial(_message_twin, messages.VoteTwice(), "mrma"),
    "direction_twice": partial(_message_twin, messages.DirectionTwice(), "direct"),
    "label_beside": partial(_message_twin, messages.LabelBeside(), "direct"),
    "gradient_unclipped": partial(_message_twin, gradients.GradientUnclipped(), "sgd"),
    "label_beside_code": partial(
        _message_twin, messages.LabelBesideCode(), "direct", n_classes=FIVE
    ),
    "corner_of_wrong_length": partial(
        _message_twin, messages.CornerOfWrongLength(), "direct", n_classes=FIVE
    ),
    "half_noise_for_few": partial(_mechanism_twin, paths.HalfNoiseForFew),
    "exact_half_noise_for_few": partial(_mechanism_twin, paths.ExactHalfNoiseForFew),
    "quiet_bin": partial(_mechanism_twin, paths.QuietBin),
    "quiet_at_tenths": partial(_mechanism_twin, paths.QuietAtTenths),
    "half_noise_in_a_bin": partial(_mechanism_twin, paths.HalfNoiseInABin),
    "quiet_where_clipped": partial(_mechanism_twin, paths.QuietWhereClipped),
    "lagged_noise": partial(_mechanism_twin, paths.LaggedNoise),
    "one_noise_for_two": partial(_mechanism_twin, paths.OneNoiseForTwo, d=3),
    "coarse_threshold": partial(_mechanism_twin, paths.CoarseThreshold),
    "coarse_rounding": partial(_mechanism_twin, paths.CoarseRounding),
    "halved_threshold": partial(_mechanism_twin, paths.HalvedThreshold, d=3),
    "words_by_label": partial(
        _mechanism_twin, paths.WordsByLabel, n_classes=4, prior=(0.33, 0.33, 0.33, 0.01)
    ),
    "labels_alibi_half_scale": partial(
        _mechanism_twin, labels.AlibiHalfScale, n_classes=4
    ),
    "labels_one_bit_counted": partial(
        _mechanism_twin, labels.OneBitCounted, n_classes=4
    ),
    "labels_code_each_epoch": partial(_code_twin, labels.CodeEachEpoch(), "labels"),
    "labels_prior_from_labels": partial(
        _code_twin, labels.PriorFromLabels(), "labels_two"
    ),
    "labels_nudged_prior": partial(_code_twin, labels.NudgedPrior(), "labels_two"),
    "labels_both_rounds": partial(_code_twin, labels.BothRounds(), "labels_two"),
    "labels_label_in_features": partial(_code_twin, labels.LabelInFeatures(), "labels"),
    "large_share_not_split": partial(
        _message_twin, messages.LargeShareNotSplit(), "mrma"
    ),
    **cells.cell_twins(),
    **tables.table_twins(),
    **servers.release_twins(),
    **commands.command_twins(),
}


def gallery_names() -> list[str]:
    """Return ``broken.<name>`` of each fault and each mechanism."""
    return [BROKEN + name for name in (*TWINS, *(f"doubled_{n}" for n in names()))]


def gallery(name: str, epsilon: float = EPSILON) -> Broken:
    """Return the broken twin ``name`` of ``gallery_names()``."""
    key = name.removeprefix(BROKEN)
    if key in TWINS:
        return replace(TWINS[key](epsilon), name=name)
    return replace(doubled_twin(key.removeprefix("doubled_"), epsilon), name=name)
