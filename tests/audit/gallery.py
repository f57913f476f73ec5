"""Gallery of all broken twins by name; a new fault is a twin in this folder and a line.

`curvote audit` shows those of `curvote.audit.twins`, one for each kind of fault.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from curvote.audit import twins
from curvote.audit.twins import (
    COUNTED,
    EPSILON,
    Broken,
    Make,
    mechanism_twin,
    message_twin,
)
from curvote.base.entropy import Entropy
from curvote.base.validate import FloatArray
from curvote.checks.examples import MORE
from curvote.checks.mechanism_subject import MechanismSubject, build_subject
from curvote.checks.subject import BROKEN
from curvote.mechanisms.base import Mechanism
from curvote.mechanisms.factory import names
from curvote.systems.common.judgement import aggregated_rule
from tests.audit import mechanism_twins as mechanisms
from tests.audit import message_twins as messages
from tests.audit import release_twins as releases
from tests.audit import server_twins as servers


@dataclass(frozen=True, eq=False, kw_only=True)
class Doubled(MechanismSubject):
    """Declares the law of one mechanism and draws from another."""

    secret: Mechanism

    def send(self, many: FloatArray, entropy: Entropy) -> NDArray[Any]:
        return self.secret.randomize(many, entropy)


FIVE = 5  # classes of a code
WORDED = (2, 3)  # labels of a code, and private words of each
SHOWN = {name: twin.make for name, twin in twins.TWINS.items()}
TWINS: Mapping[str, Make] = {
    "sensitivity_halved": mechanism_twin(mechanisms.SensitivityHalved),
    "budget_not_split": SHOWN["budget_not_split"],
    "report_budget_not_split": message_twin(messages.ReportNotSplit(), "mrma"),
    "float_laplace": SHOWN["float_laplace"],
    "min_max_2023": mechanism_twin(
        mechanisms.MinMax2023, extra=mechanisms.FAR_APART, d=4
    ),
    "unary_full_epsilon": mechanism_twin(mechanisms.UnaryFullEpsilon, n_classes=4),
    "rerandomised_memo": SHOWN["rerandomised_memo"],
    "raw_echo": mechanism_twin(mechanisms.RawEcho),
    "no_noise": SHOWN["no_noise"],
    "off_by_one_threshold": SHOWN["off_by_one_threshold"],
    "off_by_one_comparison": mechanism_twin(mechanisms.OffByOneComparison),
    "same_seed": SHOWN["same_seed"],
    "shared_noise": mechanism_twin(mechanisms.SharedNoise),
    "repeated_blocks": mechanism_twin(mechanisms.RepeatedBlocks),
    "passes_nan": SHOWN["passes_nan"],
    "missing_for_large": mechanism_twin(mechanisms.MissingForLarge),
    "no_clipping": mechanism_twin(mechanisms.NoClipping),
    "subset_with_label": mechanism_twin(mechanisms.SubsetWithLabel, n_classes=4),
    "gaussian_halved": mechanism_twin(mechanisms.GaussianHalved, d=3, delta=1e-5),
    "naked_label": message_twin(messages.NakedLabel(), "mrma"),
    "quiet_label_bin": message_twin(messages.QuietLabelBin(), "mrma"),
    "vote_twice": message_twin(messages.VoteTwice(), "mrma"),
    "judgement_twice": message_twin(messages.JudgementTwice(aggregated_rule), "direct"),
    "quiet_where_right": message_twin(
        messages.QuietWhereRight(aggregated_rule), "direct", FIVE
    ),
    "answer_not_split": message_twin(messages.AnswerNotSplit(), "monitor", MORE),
    "answer_twice": message_twin(messages.AnswerTwice(), "monitor"),
    "quiet_where_sure": message_twin(messages.QuietWhereSure(), "monitor"),
    "judges_both": message_twin(messages.JudgesBoth(), "pilot"),
    "whitened_length": message_twin(messages.WhitenedLength(), "whitened"),
    "direction_twice": message_twin(messages.DirectionTwice(), "direct"),
    "label_beside": message_twin(messages.LabelBeside(), "direct"),
    "gradient_unclipped": message_twin(messages.GradientUnclipped(), "sgd"),
    "label_beside_code": message_twin(messages.LabelBesideCode(), "direct", FIVE),
    "corner_of_wrong_length": message_twin(
        messages.CornerOfWrongLength(), "direct", FIVE
    ),
    "half_noise_for_few": mechanism_twin(mechanisms.HalfNoiseForFew),
    "exact_half_noise_for_few": mechanism_twin(mechanisms.ExactHalfNoiseForFew),
    "quiet_bin": SHOWN["quiet_bin"],
    "quiet_at_tenths": mechanism_twin(mechanisms.QuietAtTenths),
    "half_noise_in_a_bin": mechanism_twin(mechanisms.HalfNoiseInABin),
    "quiet_where_clipped": mechanism_twin(mechanisms.QuietWhereClipped),
    "lagged_noise": SHOWN["lagged_noise"],
    "one_noise_for_two": mechanism_twin(mechanisms.OneNoiseForTwo, d=3),
    "coarse_threshold": mechanism_twin(mechanisms.CoarseThreshold),
    "coarse_rounding": mechanism_twin(mechanisms.CoarseRounding),
    "halved_threshold": mechanism_twin(mechanisms.HalvedThreshold, d=3),
    "words_by_label": mechanism_twin(
        mechanisms.WordsByLabel, n_classes=4, prior=(0.33, 0.33, 0.33, 0.01)
    ),
    "labels_alibi_half_scale": mechanism_twin(messages.AlibiHalfScale, n_classes=4),
    "labels_one_bit_counted": mechanism_twin(messages.OneBitCounted, n_classes=4),
    "labels_code_each_epoch": message_twin(messages.CodeEachEpoch(), "labels", MORE),
    "labels_prior_from_labels": message_twin(
        messages.PriorFromLabels(), "labels_two", MORE
    ),
    "labels_nudged_prior": SHOWN["labels_nudged_prior"],
    "labels_both_rounds": message_twin(messages.BothRounds(), "labels_two", MORE),
    "labels_label_in_features": message_twin(
        messages.LabelInFeatures(), "labels", MORE
    ),
    "labels_word_beside": message_twin(messages.WordBeside(), "labels", *WORDED),
    "labels_word_twice": message_twin(messages.WordTwice(), "labels", *WORDED),
    "large_share_not_split": message_twin(messages.LargeShareNotSplit(), "mrma"),
    "bins_from_data": SHOWN["bins_from_data"],
    "two_features": message_twin(messages.TwoFeatures(**COUNTED), "counts"),
    **releases.table_twins(),
    **{
        f"transfer_{name}": servers.form_twin(servers.FormMessage(form), example)
        for name, form, example in (
            ("centring_unscaled", servers.CentringUnscaled(), "kernel"),
            ("classes_without_sqrt2", servers.ClassesWithoutSqrt2(), "cells"),
            ("steps_forgotten", servers.StepsForgotten(), "cells_sums"),
            ("products_too_long", servers.ProductsTooLong(), "moments_sums"),
            ("bounds_from_records", servers.BoundsFromRecords(), "cells"),
            ("delta_ignored", servers.DeltaIgnored(), "moments"),
            ("visited_cells_only", servers.VisitedCellsOnly(), "cells"),
            ("bandwidths_full_budget", servers.BandwidthsFullBudget(), "kernel_half"),
        )
    },
    "transfer_rate_beside": servers.form_twin(servers.RateBeside(), "kernel"),
    "transfer_fresh_noise": servers.fresh_noise,
    "transfer_printed_noise": SHOWN["transfer_printed_noise"],
    **releases.command_twins(),
}


def gallery_names() -> list[str]:
    """Return ``broken.<name>`` of each fault and each mechanism."""
    return [BROKEN + name for name in (*TWINS, *(f"doubled_{n}" for n in names()))]


def gallery(name: str, epsilon: float = EPSILON) -> Broken:
    """Return the broken twin ``name`` of ``gallery_names()``.

    ``doubled_`` and the name of a mechanism claims epsilon and spends twice as much.
    """
    key = name.removeprefix(BROKEN)
    if key in TWINS:
        return replace(TWINS[key](epsilon), name=name)
    key = key.removeprefix("doubled_")
    secret = build_subject(key, 2 * epsilon).mechanism
    honest = build_subject(key, epsilon)
    return Doubled(honest.mechanism, name, honest.params, honest.budget, secret=secret)
