"""Gallery of broken twins by name; a new fault is a twin in this folder and a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.audit.message_subject import MessageSubject, record_subject_of
from curvote.audit.release import Memo, Release
from curvote.audit.twins import mechanisms, messages, releases
from curvote.base.entropy import Entropy, SeededEntropy
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.checks.examples import MORE, example_task
from curvote.checks.mechanism_subject import MechanismSubject, build_subject, subject_of
from curvote.checks.subject import BROKEN, SentSubject
from curvote.mechanisms.base import Mechanism
from curvote.mechanisms.factory import names
from curvote.mechanisms.laplace import Laplace
from curvote.systems.labels import audit
from curvote.systems.labels.audit import LabelSubject, label_subject
from curvote.systems.transfer.audit import subject as transfer

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
    "sensitivity_halved": partial(_mechanism_twin, mechanisms.SensitivityHalved),
    "budget_not_split": partial(_mechanism_twin, mechanisms.BudgetNotSplit, d=3),
    "report_budget_not_split": partial(
        _message_twin, messages.ReportNotSplit(), "mrma"
    ),
    "float_laplace": partial(_mechanism_twin, mechanisms.FloatLaplace),
    "min_max_2023": partial(
        _mechanism_twin, mechanisms.MinMax2023, extra=mechanisms.FAR_APART, d=4
    ),
    "unary_full_epsilon": partial(
        _mechanism_twin, mechanisms.UnaryFullEpsilon, n_classes=4
    ),
    "rerandomised_memo": _rerun_twin,
    "raw_echo": partial(_mechanism_twin, mechanisms.RawEcho),
    "no_noise": partial(_mechanism_twin, mechanisms.NoNoise),
    "off_by_one_threshold": partial(_mechanism_twin, mechanisms.OffByOneThreshold),
    "off_by_one_comparison": partial(_mechanism_twin, mechanisms.OffByOneComparison),
    "same_seed": partial(_mechanism_twin, mechanisms.SameSeed),
    "shared_noise": partial(_mechanism_twin, mechanisms.SharedNoise),
    "repeated_blocks": partial(_mechanism_twin, mechanisms.RepeatedBlocks),
    "passes_nan": partial(_mechanism_twin, mechanisms.PassesNaN),
    "missing_for_large": partial(_mechanism_twin, mechanisms.MissingForLarge),
    "no_clipping": partial(_mechanism_twin, mechanisms.NoClipping),
    "subset_with_label": partial(
        _mechanism_twin, mechanisms.SubsetWithLabel, n_classes=4
    ),
    "gaussian_halved": partial(
        _mechanism_twin, mechanisms.GaussianHalved, d=3, delta=1e-5
    ),
    "naked_label": partial(_message_twin, messages.NakedLabel(), "mrma"),
    "quiet_label_bin": partial(_message_twin, messages.QuietLabelBin(), "mrma"),
    "vote_twice": partial(_message_twin, messages.VoteTwice(), "mrma"),
    "direction_twice": partial(_message_twin, messages.DirectionTwice(), "direct"),
    "label_beside": partial(_message_twin, messages.LabelBeside(), "direct"),
    "gradient_unclipped": partial(_message_twin, messages.GradientUnclipped(), "sgd"),
    "label_beside_code": partial(
        _message_twin, messages.LabelBesideCode(), "direct", n_classes=FIVE
    ),
    "corner_of_wrong_length": partial(
        _message_twin, messages.CornerOfWrongLength(), "direct", n_classes=FIVE
    ),
    "half_noise_for_few": partial(_mechanism_twin, mechanisms.HalfNoiseForFew),
    "exact_half_noise_for_few": partial(
        _mechanism_twin, mechanisms.ExactHalfNoiseForFew
    ),
    "quiet_bin": partial(_mechanism_twin, mechanisms.QuietBin),
    "quiet_at_tenths": partial(_mechanism_twin, mechanisms.QuietAtTenths),
    "half_noise_in_a_bin": partial(_mechanism_twin, mechanisms.HalfNoiseInABin),
    "quiet_where_clipped": partial(_mechanism_twin, mechanisms.QuietWhereClipped),
    "lagged_noise": partial(_mechanism_twin, mechanisms.LaggedNoise),
    "one_noise_for_two": partial(_mechanism_twin, mechanisms.OneNoiseForTwo, d=3),
    "coarse_threshold": partial(_mechanism_twin, mechanisms.CoarseThreshold),
    "coarse_rounding": partial(_mechanism_twin, mechanisms.CoarseRounding),
    "halved_threshold": partial(_mechanism_twin, mechanisms.HalvedThreshold, d=3),
    "words_by_label": partial(
        _mechanism_twin,
        mechanisms.WordsByLabel,
        n_classes=4,
        prior=(0.33, 0.33, 0.33, 0.01),
    ),
    "labels_alibi_half_scale": partial(
        _mechanism_twin, audit.AlibiHalfScale, n_classes=4
    ),
    "labels_one_bit_counted": partial(
        _mechanism_twin, audit.OneBitCounted, n_classes=4
    ),
    "labels_code_each_epoch": partial(_code_twin, audit.CodeEachEpoch(), "labels"),
    "labels_prior_from_labels": partial(
        _code_twin, audit.PriorFromLabels(), "labels_two"
    ),
    "labels_nudged_prior": partial(_code_twin, audit.NudgedPrior(), "labels_two"),
    "labels_both_rounds": partial(_code_twin, audit.BothRounds(), "labels_two"),
    "labels_label_in_features": partial(_code_twin, audit.LabelInFeatures(), "labels"),
    "large_share_not_split": partial(
        _message_twin, messages.LargeShareNotSplit(), "mrma"
    ),
    **messages.cell_twins(),
    **releases.table_twins(),
    **transfer.release_twins(),
    **releases.command_twins(),
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
