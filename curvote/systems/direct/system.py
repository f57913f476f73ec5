"""Systems of noised vectors, `direct` and its variants, and the rule of `auto`.

The rule looks at the noise of the label moment E[l u] that N reports leave, of codes l
and unit vectors u with p = d + 1 numbers. Each of its (K - 1) p coordinates has the
variance

    v = (1/m^2 - 1) / ((K - 1) p N),

where 1/m is the length of a `PrivUnit` report. A class mean has an energy of 1/p of
what u has, so what counts is the energy of the noise times p, v (K - 1) p^2.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

from numpy.typing import ArrayLike
from pydantic import Field

from curvote.base import validate
from curvote.base.classes import class_shares
from curvote.base.errors import Problem, UserError
from curvote.chain import axis, stage, system
from curvote.chain.settings import Strict, WholeNumber
from curvote.data.lookup import balance, classes, record_numbers
from curvote.mechanisms.privunit import one_of_variance, privunit_variance
from curvote.messages.arms import ARM_PROTOCOLS, LABEL_SHARES, MAX_WIDTH
from curvote.systems.common import checks, models
from curvote.systems.common.checks import class_count
from curvote.systems.common.declarations import (
    JUDGED_BY_Z,
    ROLE_PARAMS,
    client_stage,
    learning_system,
    release_stage,
    score_stage,
    server_stage,
)
from curvote.systems.common.questions import halving_code
from curvote.systems.common.settings import Shared
from curvote.systems.common.study import CONFUSION
from curvote.systems.common.tables import CLASSIFIER, DIRECTIONS, WHITENING
from curvote.systems.references.messages import ComparisonLabel

# Each is an energy v (K - 1) p^2, and was chosen on even seeds of
# benchmarks/court/clients.py: above the first, and with shares of classes that nobody
# states, a decoded rule is as often behind the majority as ahead of it; a second moment
# is worth its part of the report up to the second.
HOPELESS, JOINT_LIMIT = 10.0, 0.06
# Below, a bit says as much as a report, and votes have no intercept of their own to
# get wrong; chosen on the same seeds. Stated shares fix the intercept.
VOTES_LIMIT = 300.0
METHODS = (*LABEL_SHARES, "votes", "majority")
_TOO_WIDE = (
    f"but a report of how more than {MAX_WIDTH} numbers go together is too long to send"
)
DOUBTFUL: Final = "doubtful"


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


def choose_protocol(
    n: int,
    d: int,
    epsilon: float,
    liars: float = 0.0,
    n_classes: int = 2,
    *,
    balance: ArrayLike | None = None,
    doubtful: bool = False,
    of_direct: bool = False,
) -> Choice:
    """Return what `auto` takes for ``n`` clients of ``d`` numbers at ``epsilon``.

    ``liars``, in [0, 1/2), is the share of clients who may lie; of ``n_classes`` K >= 2
    ``balance`` are the public shares, None where nobody states them. Where the public
    centre is ``doubtful`` two rounds find a better one. ``of_direct`` leaves protocols
    other than `direct` out.

    Where some may lie it is `votes`, of `direct` alone `mean`: a liar's bit counts no
    more than an honest one, a report of `PrivUnit` is 1/m times as long as an honest
    client's mean (measured: benchmarks/bench_liars.py).
    """
    n, p = validate.at_least(1, n=n), validate.at_least(1, d=d) + 1
    label_size = (validate.at_least(2, n_classes=n_classes) - 1) * p
    v = privunit_variance(label_size, epsilon) / n
    energy, worth = v * label_size * p, n * epsilon**2
    has_balance = balance is not None and bool(class_shares(balance, n_classes))
    protocol, arm = "direct", "mean"
    factor = noise_factor(n_classes, p, epsilon)
    open_choice = not (has_balance or of_direct)
    lying = validate.minority(liars=liars)
    if open_choice and energy > HOPELESS:
        protocol = "majority"
        why = f"above {HOPELESS:g}, so expect nothing better than the majority"
    elif lying:
        why = (
            f"but {100 * liars:g} % of the clients may lie, and a lie counts least here"
        )
        protocol = protocol if of_direct else "votes"
    elif d > MAX_WIDTH:
        why = _TOO_WIDE
    elif n_classes > 2 and factor > 1:
        arm = "one_of"
        why = f"{factor:.2g} times less where a report names one of {n_classes} classes"
    elif energy <= JOINT_LIMIT:
        arm = "two" if doubtful else "joint"
        why = f"at most {JOINT_LIMIT:g}, so a report also says how its numbers go "
        why += "together, the first ones for a centre" if doubtful else "together"
    elif open_choice and worth < VOTES_LIMIT:
        protocol = "votes"
        why = f"and N epsilon^2 is below {VOTES_LIMIT:g}, where a bit says as much"
    else:
        why = f"above {JOINT_LIMIT:g}, so a report says only how its numbers go with"
        why += " its class"
    size = f"all reports together leave noise {v:.2g} (N epsilon^2 = {worth:,.6g})"
    reason = f"{size}: of energy {energy:.2g}, {why}"
    return Choice(protocol, arm if protocol == "direct" else None, v, reason)


def noise_factor(n_classes: int, p: int, epsilon: float) -> float:
    """Return by which factor 1-of-K has less noise than the simplex code.

    Both of pi_k E[u | k], a coordinate: (K - 1)^2/K^2 v, and that of `one_of`.
    """
    part = (n_classes - 1) / n_classes
    simplex = part**2 * privunit_variance((n_classes - 1) * p, epsilon)
    return simplex / one_of_variance(n_classes, p, epsilon)


# The noise of N reports has v N epsilon^2 of about 6 (`curvote.systems.direct.system`),
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


def joins_volunteers(pipeline: axis.PipelineSettings) -> bool:
    """Say whether settings join volunteers' labelled records with the reports."""
    return pipeline.protocol == JOINED_PROTOCOL or bool(pipeline.volunteers.labels)


def joined_arm(arm: str | None) -> str | None:
    """Return the arm to join with; volunteers replace a first round."""
    return "joint" if arm in ARM_PROTOCOLS else arm


def check_join(pipeline: axis.PipelineSettings) -> Iterator[Problem]:
    """Yield why volunteers' labels cannot be joined with the reports."""
    if not joins_volunteers(pipeline):
        return
    if not pipeline.clients.public:
        message = "there are no volunteers: say how many by clients.public."
        yield Problem(message, _LABELS_SETTING)
    if pipeline.direct.arm in ARM_PROTOCOLS or pipeline.protocol in PROTOCOL_ARMS:
        message = (
            "volunteers are joined with reports of mean or joint, since they centre and"
            " scale the numbers as a first round would; name one of these."
        )
        yield Problem(message, _LABELS_SETTING)
    if pipeline.liars:
        message = "liars beside volunteers were never measured: leave one out."
        yield Problem(message, ("liars",))
    if pipeline.intake:
        message = "no volunteer's record is here (intake): leave it out."
        yield Problem(message, _LABELS_SETTING)


AUTO_PROTOCOL = "auto"
# The arms that are a protocol of their own, by its name.
PROTOCOL_ARMS = {protocol: arm for arm, protocol in ARM_PROTOCOLS.items()}


def resolve_choice(pipeline: axis.PipelineSettings) -> list[system.Part]:
    """Return the settings that the rule or the arm makes, by epsilon."""
    if not is_left_to_rule(pipeline):
        arm = PROTOCOL_ARMS.get(pipeline.protocol, pipeline.direct.arm)
        return [system.Part(_named_settings(pipeline, "direct", arm))]
    rule = AUTO_PROTOCOL if pipeline.protocol == AUTO_PROTOCOL else ""
    parts = []
    for epsilon, choice in epsilon_choices(pipeline):
        chosen = _named_settings(pipeline, choice.protocol, choice.arm)
        settings = chosen.model_copy(update={"epsilon": [epsilon]})
        pairs = (("epsilon", epsilon),)
        parts.append(system.Part(settings, pairs, choice.method, choice.reason, rule))
    return parts


def check_choice(pipeline: axis.PipelineSettings) -> Iterator[Problem]:
    """Yield why the rule cannot choose, or why it has no say."""
    choices = epsilon_choices(pipeline)
    yield from checks.refusal(("protocol",), list, choices)
    if pipeline.liars and not is_left_to_rule(pipeline):
        message = (
            f"is read where a rule chooses, but {pipeline.protocol} leaves it nothing;"
            " write it with protocol `auto`, or leave it out."
        )
        yield Problem(message, ("liars",))
    yield from check_join(pipeline)


def is_left_to_rule(pipeline: axis.PipelineSettings) -> bool:
    """Say whether the protocol or its arm is left to the rule."""
    if pipeline.protocol in PROTOCOL_ARMS:
        return False
    return AUTO_PROTOCOL in (pipeline.protocol, pipeline.direct.arm)


def epsilon_choices(pipeline: axis.PipelineSettings) -> Iterator[tuple[float, Choice]]:
    """Yield (epsilon, choice) if everybody reports once."""
    if not is_left_to_rule(pipeline):
        return
    n, d = pipeline.clients.train + pipeline.clients.vote, record_numbers(pipeline)
    if d is None:
        message = "how many numbers a record has is not known yet; state direct.arm."
        raise UserError(message, where=("protocol",))
    joined = joins_volunteers(pipeline)
    by_auto = pipeline.protocol == AUTO_PROTOCOL and not joined
    n_classes = len(classes(pipeline.source) or (0, 1))
    public: dict[str, Any] = {
        "balance": balance(pipeline.source),
        "doubtful": pipeline.direct.centre == DOUBTFUL,
        "of_direct": not by_auto,
    }
    for epsilon in pipeline.epsilon:
        choice = choose_protocol(n, d, epsilon, pipeline.liars, n_classes, **public)
        if joined:
            size, count = choice.reason.partition(":")[0], pipeline.clients.public
            reason = (
                f"{size}: the labels of {count} volunteers are worth as much as reports"
                f" of N epsilon^2 = {volunteer_worth(count, d, n_classes):,.0f}"
            )
            choice = replace(choice, arm=joined_arm(choice.arm), reason=reason)
        yield epsilon, choice


def _named_settings(
    pipeline: axis.PipelineSettings, protocol: str, arm: str | None
) -> axis.PipelineSettings:
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
        splits = len(halving_code(class_count(pipeline.source)))
        count = directions_asked(voters, splits, pipeline.votes.directions)
        votes_update = {"directions": count}
        update["votes"] = pipeline.votes.model_copy(update=votes_update)
    return pipeline.model_copy(update=update)


def directions_asked(voters: int, splits: int, directions: int = 100) -> int:
    """Return how many random directions ``voters`` judge for each of ``splits``."""
    return min(directions, max(voters // splits, 1))


_STAGES: Final = "curvote.systems.direct.stages"


class Direct(Strict):
    """Arm of protocol ``direct``, the constant beside z, and whether to trust 0."""

    arm: Literal["auto", "mean", "joint", "two", "one_of"] = "auto"
    intercept: Literal["auto"] | Annotated[float, Field(gt=0)] = "auto"
    centre: Literal["public", "doubtful"] = "public"


class Volunteers(Strict):
    """Whether records of volunteers are joined with the reports."""

    labels: bool = False


class Settings(Shared):
    """Settings of noised directions; ``liars`` is the share that may lie."""

    direct: Direct = Direct()
    volunteers: Volunteers = Volunteers()
    liars: Annotated[float, Field(ge=0, lt=0.5)] = 0.0


TERM_PARAMS = ("direct.arm", "direct.intercept")

PRIVATIZE = client_stage("privatize", _STAGES, DIRECTIONS, params=TERM_PARAMS)
RELEASE = release_stage(
    PRIVATIZE, "report", ("ingest", "project"), (*TERM_PARAMS, "project.judge")
)
AGGREGATE = server_stage(
    "aggregate", _STAGES, ("privatize",), CLASSIFIER, params=("source.balance",)
)
SCORE = score_stage(
    f"{_STAGES}:score",
    ("project", "aggregate"),
    params=("epsilon", "direct.arm", *ROLE_PARAMS),
    beside=(CONFUSION,),
)
# What `direct`, its variants, `sgd` and `whitened` share.
DECODED: Final[dict[str, Any]] = {
    "study_messages": (ComparisonLabel().describe,),
    "implied_settings": JUDGED_BY_Z,
    "final_model": models.decoded_model,
    "production_metrics": models.count_reports,
}
# Of a released classifier: who stated the first task, and who made it.
JUDGE_INPUTS: Final = ("privatize", "aggregate")
ARM_FIELDS: Final[dict[str, Any]] = {
    "checks": (checks.check_test_clients, check_choice),
    "resolve_parts": resolve_choice,
    **DECODED,
}

SYSTEM = learning_system(
    "direct",
    Settings,
    (PRIVATIZE, AGGREGATE, SCORE),
    "mean joint majority",
    releases=(RELEASE,),
    judge_inputs=JUDGE_INPUTS,
    main=("mean", "joint"),
    shorthand=("arm", "intercept"),
    **ARM_FIELDS,
)

# Two rounds: the first whitens the second.
_REFINE = client_stage(
    "refine", _STAGES, DIRECTIONS, ("project", "whiten"), params=TERM_PARAMS
)
_DIRECT_TWO = learning_system(
    "direct_two",
    Settings,
    (
        replace(PRIVATIZE, module=f"{_STAGES}:privatize_first"),
        server_stage("whiten", _STAGES, ("privatize",), WHITENING),
        _REFINE,
        replace(
            AGGREGATE,
            module=f"{_STAGES}:combine",
            inputs=("privatize", "whiten", "refine"),
        ),
        SCORE,
    ),
    "two majority",
    releases=(
        RELEASE,
        release_stage(_REFINE, "refinement", ("ingest", "privatize", "whiten")),
    ),
    judge_inputs=JUDGE_INPUTS,
    **ARM_FIELDS,
)

# 1-of-K answers, then a mean for each class.
NAMED_DIRECTIONS: Final = stage.Table(
    "named_directions", {"named": "int64", "direction": stage.VECTOR}, unit="message"
)
_DIRECT_ONE_OF = learning_system(
    "direct_one_of",
    Settings,
    (
        replace(
            PRIVATIZE, module=f"{_STAGES}:privatize_one_of", tables=(NAMED_DIRECTIONS,)
        ),
        replace(AGGREGATE, module=f"{_STAGES}:combine_one_of"),
        SCORE,
    ),
    "one_of majority",
    releases=(replace(RELEASE, tables=(NAMED_DIRECTIONS,)),),
    judge_inputs=JUDGE_INPUTS,
    **ARM_FIELDS,
)


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Sgd(Strict):
    """Rounds, rate and clipping of protocol ``sgd``."""

    rounds: WholeNumber = 4
    rate: Positive = 5.0
    clip: Positive = 0.2


class SgdSettings(Shared):
    """Settings of gradient descent, one gradient a client."""

    sgd: Sgd = Sgd()


GRADIENTS: Final = stage.Table(
    "gradients", {"round": "int64", "gradient": stage.VECTOR}, unit="message"
)


_DESCEND = client_stage(
    "descend", _STAGES, GRADIENTS, params=("sgd.clip", "sgd.rate", "sgd.rounds")
)
_AGGREGATE_GRADIENTS = server_stage(
    "aggregate",
    f"{_STAGES}:aggregate_gradients",
    ("descend",),
    CLASSIFIER,
    params=("sgd.rate",),
)
_SCORE_GRADIENTS = score_stage(
    f"{_STAGES}:score_gradients",
    ("project", "aggregate"),
    params=("epsilon", *ROLE_PARAMS),
    beside=(CONFUSION,),
)


def _check_round_count(pipeline: axis.PipelineSettings) -> Iterator[Problem]:
    senders = pipeline.clients.train + pipeline.clients.vote
    if pipeline.sgd.rounds > senders:
        message = f"more rounds than the {senders} clients who are asked once each."
        yield Problem(message, ("sgd", "rounds"))


_SGD = learning_system(
    "sgd",
    SgdSettings,
    (_DESCEND, _AGGREGATE_GRADIENTS, _SCORE_GRADIENTS),
    "sgd majority",
    checks=(checks.check_test_clients, _check_round_count),
    shorthand=("rounds", "rate", "clip"),
    **DECODED,
)

SYSTEMS: Final = (SYSTEM, _DIRECT_TWO, _DIRECT_ONE_OF, _SGD)
