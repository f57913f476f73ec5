"""Checks of settings that several systems share.

Each yields what is wrong with a pipeline's settings although every key is well formed.
A system names those that hold for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from curvote.chain.axis import PipelineSettings
from curvote.chain.lookup import find_system
from curvote.client.report import Reporter
from curvote.datasets import lookup
from curvote.errors import Problem, UserError, did_you_mean
from curvote.mechanisms.registry import MECHANISMS
from curvote.protocols.encoding_checks import check_representation
from curvote.protocols.fields import check_class_count
from curvote.protocols.message import messages_of
from curvote.protocols.roles import too_many_error
from curvote.representation.rescale import UNBOUNDED_RESCALINGS
from curvote.server.learners.fitting import check

Problems = Iterator[Problem]
Check = Callable[[PipelineSettings], Problems]


def check_roles(pipeline: PipelineSettings) -> Problems:
    """Require as many clients as all roles take."""
    dataset, parameters = lookup.resolve_source(pipeline.source)
    available = dataset.size(parameters)
    sizes = pipeline.clients.model_dump()
    if available is not None and sum(sizes.values()) > available:
        yield too_many_error(sizes, available).problems[0]
    by_server = lookup.drawn_per_server(pipeline.source)
    indices = {by_server.name for by_server in find_system(pipeline.protocol).index}
    if by_server is not ("server" in indices):
        kind = "no source" if by_server else "a source"
        message = (
            f"{pipeline.protocol} takes {kind} that draws clients for several servers,"
            " each apart."
        )
        yield Problem(message, ("protocol",))


def check_two_classes(pipeline: PipelineSettings) -> Problems:
    """Require two classes: what is sent of a label is a sign."""
    classes = lookup.classes(pipeline.source) or ()
    if len(classes) > 2:
        message = f"{pipeline.protocol} tells two classes apart, not {len(classes)}."
        yield Problem(message, ("source", "classes"))


def check_many_classes(pipeline: PipelineSettings) -> Problems:
    """Require no more classes than a label tells apart."""
    try:
        check_class_count(len(lookup.classes(pipeline.source) or ()))
    except UserError as error:
        yield Problem(str(error), ("source", "classes"))


def combine_checks(*checks: Check, classes: Check = check_two_classes) -> Check:
    """Return all checks as one, with those of roles and representation.

    ``classes`` asks for as many as the protocol tells apart.
    """

    def run_checks(pipeline: PipelineSettings) -> Problems:
        for yield_problems in (
            check_roles,
            classes,
            check_representation,
            check_implied_settings,
            check_production,
            *checks,
        ):
            yield from yield_problems(pipeline)

    return run_checks


def check_implied_settings(pipeline: PipelineSettings) -> Problems:
    """Require the settings that the system implies."""
    for path, value in find_system(pipeline.protocol).implied_settings.items():
        section, key = path.split(".")
        if getattr(getattr(pipeline, section), key) != value:
            message = f"{pipeline.protocol} learns from z, so it judges z: {value}."
            yield Problem(message, (section, key))


def check_test_clients(pipeline: PipelineSettings) -> Problems:
    """Require clients to test on in a study."""
    if not (pipeline.production or pipeline.clients.test):
        yield Problem("a study needs clients to test on.", ("clients", "test"))


def check_training_size(pipeline: PipelineSettings) -> Problems:
    """Require a number of classifiers, and reports enough for each."""
    clients, train = pipeline.clients, pipeline.train
    if train is None:
        message = "is missing: {count: 50, size: 50} says who learns from how many."
        yield Problem(message, ("train",))
    elif train.size > clients.train:
        message = f"{train.size} reports a learner, but only {clients.train} train."
        yield Problem(message, ("train", "size"))


def check_voters(pipeline: PipelineSettings) -> Problems:
    """Require a voter for every classifier."""
    train, voters = pipeline.train, pipeline.clients.vote
    if train and train.count > voters:
        message = f"{train.count} classifiers, but only {voters} clients vote."
        yield Problem(message, ("train", "count"))


def check_learners(pipeline: PipelineSettings) -> Problems:
    """Require known learners."""
    if not pipeline.learners:
        yield Problem("is missing: `curvote list` names them.", ("learners",))
    for index, learner in enumerate(pipeline.learners):
        try:
            check(learner.name, learner.params)
        except UserError as error:
            yield Problem(str(error), ("learners", index))


def check_budgets(pipeline: PipelineSettings) -> Problems:
    """Yield what the randomizers of every report would refuse."""
    # Where the source decides, 2 stands in for d: what is refused hardly depends on it.
    privatize, d = pipeline.privatize, pipeline.project.size or 2
    name = privatize.mechanism
    if name not in MECHANISMS:
        hint = did_you_mean(name, MECHANISMS)
        yield Problem(f"{name!r} is not known.{hint}", ("privatize", "mechanism"))
        return
    if pipeline.project.rescale in UNBOUNDED_RESCALINGS:
        message = (
            f"{pipeline.project.rescale} leaves values that noise on each cannot hide;"
            " `direct` hides their direction, `clean` nothing."
        )
        yield Problem(message, ("project", "rescale"))
    for epsilon in pipeline.epsilon:
        try:
            share = privatize.label_share
            Reporter.build(d, epsilon, name, share, privatize.params)
        except UserError as error:
            yield Problem(str(error), ("privatize", "mechanism"))
            return


# What a server asks that trains classifiers of noised reports, and has them judged.
LEARNING_CHECKS: Final = (
    check_test_clients,
    check_training_size,
    check_voters,
    check_learners,
    check_budgets,
)


def check_production(pipeline: PipelineSettings) -> Problems:
    """Require of a release public bounds, and rounds that can be complete."""
    if not pipeline.production:
        return
    if pipeline.project.bounds == "from_data":
        message = "bounds from the clients' data are a leak; production refuses them."
        yield Problem(message, ("project", "bounds"))
    if pipeline.intake:
        yield from _check_waiting(pipeline)


def _check_waiting(pipeline: PipelineSettings) -> Problems:
    intake, sizes = pipeline.intake, pipeline.clients.model_dump()
    if pipeline.project.volunteers:
        message = (
            "no volunteer is here; state centre and scale as numbers, as many as"
            " `size`: centre: [0, 0], scale: [1, 1]."
        )
        yield Problem(message, ("project", "centre"))
    for name, message_kind in messages_of(pipeline.protocol).items():
        minimum, invited = (
            intake.stated_minimum(name),
            message_kind.senders.count(sizes),
        )
        if minimum and minimum > invited:
            message = f"{minimum} are waited for, but only {invited} are invited."
            yield Problem(message, ("intake", f"min_{name}s"))
    train, reports = getattr(pipeline, "train", None), intake.stated_minimum("report")
    if reports and train and reports < train.size:
        message = f"fewer than the {train.size} that a learner takes."
        yield Problem(message, ("intake", "min_reports"))
    if intake.online:
        yield from _check_batches(intake, pipeline.clients.vote)


def _check_batches(intake: Any, invited: int) -> Problems:
    """Yield why votes of an open round could never be folded in."""
    initial = intake.stated_minimum("vote") or invited
    if initial < intake.fold:
        message = f"{initial} are too few to begin with; fold asks for {intake.fold}."
        yield Problem(message, ("intake", "min_votes"))
    if initial <= invited < initial + intake.fold:
        message = (
            f"no {intake.fold} votes can follow: {invited} are invited, and the round"
            f" waits for {initial}; state a lower min_votes."
        )
        yield Problem(message, ("intake", "online"))
