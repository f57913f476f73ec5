"""Rules that choose a system or an arm from public facts: N, d and epsilon.

The rule looks at the noise of the label moment E[y u] that N reports leave,

    v = (1/m^2 - 1) / (p N),   p = d + 1,

the variance of each of its coordinates, where 1/m is the length of a `PrivUnit` report.
v N epsilon^2 lies between 5.4 and 6.4 for every d from 3 to 50 while epsilon is 2 at
most, so the rule asks in the end how large N epsilon^2 is. Of K > 2 classes the label
moment has (K - 1) p numbers in the place of p, and what counts is v (K - 1) p^2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from curvote.base import validate
from curvote.base.errors import Problem, UserError
from curvote.chain.axis import PipelineSettings
from curvote.chain.system import Part
from curvote.data.lookup import classes, resolve_source
from curvote.mechanisms.privunit import one_of_variance, privunit_variance
from curvote.messages.arms import ARM_PROTOCOLS, MAX_WIDTH
from curvote.systems.common.checks import class_count
from curvote.systems.common.questions import halving_code

# Above, even the strongest signal that u can carry drowns in the noise.
MAX_NOISE = 0.06
# A second moment is worth its part of the report below the first, whitening below the
# second: an open arm of `direct` compares v.
ARM_NOISE_STEPS = (0.003, 0.0015)
# `auto` compares p v, since a second moment has more numbers to hide where p is larger.
# Two rounds gain nothing above its second but where the public centre is far off.
AUTO_NOISE_STEPS = (0.015, 0.0045)
# Of more classes both are worth it together, where v (K - 1) p^2 is below this.
TWO_ROUNDS_LIMIT = 0.2
# 1-of-K pays where its noise is less by this factor: its second moment is noisier.
ONE_OF_FACTOR = 1.5
_TOO_WIDE = (
    f"a second moment of more than {MAX_WIDTH} numbers would be too long to send"
)


@dataclass(frozen=True)
class Choice:
    """Protocol, its arm where it has several, the reason, and the noise v."""

    protocol: str
    arm: str | None
    noise: float
    reason: str

    @property
    def method(self) -> str:
        """Name in tables: that of the arm, or of the protocol."""
        return self.arm or self.protocol


def choose_arm(
    n: int,
    d: int,
    epsilon: float,
    liars: float = 0.0,
    n_classes: int = 2,
    *,
    steps: tuple[float, float] = ARM_NOISE_STEPS,
) -> Choice:
    """Return the arm of `direct` for ``n`` clients of d numbers at ``epsilon``.

    ``liars``, in [0, 1/2), is the share of clients who may lie; there are ``n_classes``
    K >= 2. Of two classes, `joint` and `two` are taken where v is at most ``steps``.
    """
    n, p = validate.at_least(1, n=n), validate.at_least(1, d=d) + 1
    label_size = (validate.at_least(2, n_classes=n_classes) - 1) * p
    v = privunit_variance(label_size, epsilon) / n
    label_reason = "all of the report goes into the label moment"
    two_reason = "a first round for centre and whitening pays"
    energy = v * label_size * p
    counted_energy = f"{energy:.2g} with all classes and numbers counted"
    if d > MAX_WIDTH:
        arm, why = "mean", _TOO_WIDE
    elif n_classes == 2 and v > steps[0]:
        arm, why = "mean", f"above {steps[0]:.2g}, {label_reason}"
    elif n_classes == 2 and v > steps[1]:
        arm, why = "joint", f"at most {steps[0]:.2g}, the second moment pays"
    elif n_classes == 2:
        arm, why = "two", f"at most {steps[1]:.2g}, {two_reason}"
    elif (factor := noise_factor(n_classes, p, epsilon)) > ONE_OF_FACTOR:
        arm = "one_of"
        why = f"1 of {n_classes} with a direction has {factor:.2g} times less noise"
    elif energy > TWO_ROUNDS_LIMIT:
        arm = "mean"
        why = f"{counted_energy}, above {TWO_ROUNDS_LIMIT:g}, {label_reason}"
    else:
        arm = "two"
        why = f"{counted_energy}, at most {TWO_ROUNDS_LIMIT:g}, {two_reason}"
    if validate.minority(liars=liars) and arm != "mean":
        arm = "mean"
        why = f"small, but {_format_liars(liars)}; these reports are the shortest"
    size = f"N epsilon^2 = {n * epsilon**2:,.6g}, noise {v:.2g}"
    return Choice("direct", arm, v, f"{size}: {why}")


def _format_liars(liars: float) -> str:
    return f"{100 * liars:g} % may lie"


def noise_factor(n_classes: int, p: int, epsilon: float) -> float:
    """Return by which factor 1-of-K has less noise than the simplex code.

    Both of pi_k E[u | k], a coordinate: (K - 1)^2/K^2 v, and that of `one_of`.
    """
    part = (n_classes - 1) / n_classes
    simplex = part**2 * privunit_variance((n_classes - 1) * p, epsilon)
    return simplex / one_of_variance(n_classes, p, epsilon)


def choose_protocol(
    n: int, d: int, epsilon: float, liars: float = 0.0, n_classes: int = 2
) -> Choice:
    """Return the choice of protocol ``auto``: an arm of `direct`, or another.

    Where some may lie it is `votes` instead of `direct`: a liar's bit counts no more
    than an honest one, a report of `PrivUnit` is 1/m times as long as an honest
    client's mean (measured: benchmarks/bench_liars.py).
    """
    p = validate.at_least(1, d=d) + 1
    steps = AUTO_NOISE_STEPS[0] / p, AUTO_NOISE_STEPS[1] / p
    best = choose_arm(n, d, epsilon, liars, n_classes, steps=steps)
    size, _, _ = best.reason.partition(":")
    if best.noise > MAX_NOISE:
        why = f"above {MAX_NOISE:g}, expect nothing better than the majority"
        return Choice("majority", None, best.noise, f"{size}: {why}")
    if not liars:
        return best
    why = f"small, but {_format_liars(liars)}, and with one bit each they turn least"
    return Choice("votes", None, best.noise, f"{size}: {why}")


# The noise of N reports has v N epsilon^2 of about 6 (`curvote.systems.direct.choice`),
# the label moment of n unit vectors with p numbers a variance of 1/(p n) in each.
RECORD_WORTH: Final = 6.0


def volunteer_worth(volunteers: int, d: int, n_classes: int = 2) -> float:
    """Return the N epsilon^2 of reports worth as much as labelled records.

    They are ``volunteers`` >= 0 records of ``d`` >= 1 numbers: 6 (d + 1) times as many,
    and K - 1 times that with ``n_classes`` K >= 2.
    """
    count = validate.at_least(0, volunteers=volunteers)
    code_count = validate.at_least(2, n_classes=n_classes) - 1
    return RECORD_WORTH * code_count * (validate.at_least(1, d=d) + 1) * count


JOINED_PROTOCOL: Final = "joined"
_LABELS_SETTING = ("volunteers", "labels")


def joins_volunteers(pipeline: PipelineSettings) -> bool:
    """Say whether settings join volunteers' labelled records with the reports."""
    return pipeline.protocol == JOINED_PROTOCOL or bool(pipeline.volunteers.labels)


def joined_arm(arm: str | None) -> str | None:
    """Return the arm to join with; volunteers replace a first round."""
    return "joint" if arm in ARM_PROTOCOLS else arm


def joined_choice(
    pipeline: PipelineSettings, choice: Choice, d: int, n_classes: int = 2
) -> Choice:
    """Return the choice of a rule for reports joined with volunteers."""
    count = pipeline.clients.public
    size, _, _ = choice.reason.partition(":")
    reason = (
        f"{size}: beside the labels of {count} volunteers, worth N epsilon^2 ="
        f" {volunteer_worth(count, d, n_classes):,.0f}"
    )
    return replace(choice, arm=joined_arm(choice.arm), reason=reason)


def check_join(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Yield why volunteers' labels cannot be joined with the reports."""
    if not joins_volunteers(pipeline):
        return
    if not pipeline.clients.public:
        message = "labels of volunteers are asked for, but clients.public is 0."
        yield Problem(message, _LABELS_SETTING)
    if pipeline.direct.arm in ARM_PROTOCOLS or pipeline.protocol in PROTOCOL_ARMS:
        message = (
            "volunteers are joined with reports of arm mean or joint: they centre and"
            " whiten as a first round would; name one of these."
        )
        yield Problem(message, _LABELS_SETTING)
    if pipeline.liars:
        message = "nobody measured a join where some may lie; leave one of both out."
        yield Problem(message, ("liars",))
    if pipeline.intake:
        message = "no volunteer's record is here; the reports stand alone."
        yield Problem(message, _LABELS_SETTING)


AUTO_PROTOCOL = "auto"
# The arms that are a protocol of their own, by its name.
PROTOCOL_ARMS = {protocol: arm for arm, protocol in ARM_PROTOCOLS.items()}


def resolve_choice(pipeline: PipelineSettings) -> list[Part]:
    """Return the settings that the rule or the arm makes, by epsilon."""
    if not is_left_to_rule(pipeline):
        arm = PROTOCOL_ARMS.get(pipeline.protocol, pipeline.direct.arm)
        return [Part(_named_settings(pipeline, "direct", arm))]
    rule = AUTO_PROTOCOL if pipeline.protocol == AUTO_PROTOCOL else ""
    parts = []
    for epsilon, choice in epsilon_choices(pipeline):
        chosen = _named_settings(pipeline, choice.protocol, choice.arm)
        gated = pipeline.protocol in (AUTO_PROTOCOL, JOINED_PROTOCOL)
        update = {"gate": chosen.direct.gate or gated}
        direct = chosen.direct.model_copy(update=update)
        settings = chosen.model_copy(update={"epsilon": [epsilon], "direct": direct})
        pairs = (("epsilon", epsilon),)
        parts.append(Part(settings, pairs, choice.method, choice.reason, rule))
    return parts


def check_choice(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Yield why the rule cannot choose, or why it has no say."""
    try:
        list(epsilon_choices(pipeline))
    except UserError as error:
        yield Problem(str(error), ("protocol",))
    if pipeline.liars and not is_left_to_rule(pipeline):
        message = (
            f"counts where a rule chooses, and {pipeline.protocol} leaves it nothing;"
            " name it beside `auto`, or leave it out."
        )
        yield Problem(message, ("liars",))
    yield from check_join(pipeline)


def is_left_to_rule(pipeline: PipelineSettings) -> bool:
    """Say whether the protocol or its arm is left to the rule."""
    if pipeline.protocol in PROTOCOL_ARMS:
        return False
    return AUTO_PROTOCOL in (pipeline.protocol, pipeline.direct.arm)


def epsilon_choices(pipeline: PipelineSettings) -> Iterator[tuple[float, Choice]]:
    """Yield (epsilon, choice) if everybody reports once."""
    if not is_left_to_rule(pipeline):
        return
    n, d = pipeline.clients.train + pipeline.clients.vote, known_width(pipeline)
    joined = joins_volunteers(pipeline)
    by_auto = pipeline.protocol == AUTO_PROTOCOL and not joined
    rule = choose_protocol if by_auto else choose_arm
    n_classes = len(classes(pipeline.source) or (0, 1))
    for epsilon in pipeline.epsilon:
        choice = rule(n, d, epsilon, pipeline.liars, n_classes)
        yield (
            epsilon,
            joined_choice(pipeline, choice, d, n_classes) if joined else choice,
        )


def known_width(pipeline: PipelineSettings) -> int:
    """Return d, if it is known before any file is read."""
    if pipeline.project.size is not None:
        return int(pipeline.project.size)
    dataset, parameters = resolve_source(pipeline.source)
    points = dataset.width(parameters)
    if points is None:
        message = "how many numbers a record has is not known yet; name the arm."
        raise UserError(message, where=("protocol",))
    return int(points)


def _named_settings(
    pipeline: PipelineSettings, protocol: str, arm: str | None
) -> PipelineSettings:
    """Return the settings of one system under the label they had."""
    if joins_volunteers(pipeline):
        protocol, arm = JOINED_PROTOCOL, joined_arm(arm)
    update: dict[str, Any] = {
        "protocol": ARM_PROTOCOLS.get(arm or "", protocol),
        "label": pipeline.called,
        "direct": pipeline.direct.model_copy(update={"arm": arm or AUTO_PROTOCOL}),
    }
    if hasattr(pipeline, "votes"):
        voters = pipeline.clients.train + pipeline.clients.vote
        per_split = voters // len(halving_code(class_count(pipeline.source)))
        votes_update = {"directions": min(pipeline.votes.directions, max(per_split, 1))}
        update["votes"] = pipeline.votes.model_copy(update=votes_update)
    return pipeline.model_copy(update=update)
