"""Checks that several protocols share: sizes, learners, budgets, rounds that wait.

Each yields what is wrong with a pipeline's settings although every key is well formed.
A system names those that hold for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from curvote.chain.axis import Settings
from curvote.chain.lookup import system
from curvote.client.report import Reporter
from curvote.datasets import lookup
from curvote.errors import Problem, UserError, did_you_mean
from curvote.mechanisms.registry import MECHANISMS
from curvote.protocols.encoding_checks import representation
from curvote.protocols.fields import check_number
from curvote.protocols.message import messages
from curvote.protocols.roles import too_many
from curvote.representation.rescale import UNBOUNDED
from curvote.server.learners.fitting import check

Problems = Iterator[Problem]
Check = Callable[[Settings], Problems]


def roles(pipeline: Settings) -> Problems:
    """Ask for no more clients than there are."""
    dataset, parameters = lookup.chosen(pipeline.source)
    there = dataset.size(parameters)
    sizes = pipeline.clients.model_dump()
    if there is not None and sum(sizes.values()) > there:
        yield too_many(sizes, there).problems[0]
    each = lookup.apart(pipeline.source)
    indices = {each.name for each in system(pipeline.protocol).index}
    if each is not ("server" in indices):
        kind = "no source" if each else "a source"
        message = (
            f"{pipeline.protocol} takes {kind} that draws clients for several servers,"
            " each apart."
        )
        yield Problem(message, ("protocol",))


def two(pipeline: Settings) -> Problems:
    """Ask for two classes: what is sent of a label is a sign."""
    named = lookup.classes(pipeline.source) or ()
    if len(named) > 2:
        message = f"{pipeline.protocol} tells two classes apart, not {len(named)}."
        yield Problem(message, ("source", "classes"))


def many(pipeline: Settings) -> Problems:
    """Ask for no more classes than a label tells apart."""
    try:
        check_number(len(lookup.classes(pipeline.source) or ()))
    except UserError as error:
        yield Problem(str(error), ("source", "classes"))


def every(*checks: Check, classes: Check = two) -> Check:
    """Return the checks as one, those of roles and representation among them.

    ``classes`` asks for as many as the protocol tells apart.
    """

    def found(pipeline: Settings) -> Problems:
        for one in (roles, classes, representation, fixed, released, *checks):
            yield from one(pipeline)

    return found


def fixed(pipeline: Settings) -> Problems:
    """Ask for what the protocol leaves no choice."""
    for path, value in system(pipeline.protocol).fixed.items():
        section, key = path.split(".")
        if getattr(getattr(pipeline, section), key) != value:
            message = f"{pipeline.protocol} learns from z, so it judges z: {value}."
            yield Problem(message, (section, key))


def tested(pipeline: Settings) -> Problems:
    """Ask a study for clients to test on."""
    if not (pipeline.production or pipeline.clients.test):
        yield Problem("a study needs clients to test on.", ("clients", "test"))


def trained(pipeline: Settings) -> Problems:
    """Ask for a number of classifiers, and for reports enough for each."""
    clients, train = pipeline.clients, pipeline.train
    if train is None:
        message = "is missing: {count: 50, size: 50} says who learns from how many."
        yield Problem(message, ("train",))
    elif train.size > clients.train:
        message = f"{train.size} reports a learner, but only {clients.train} train."
        yield Problem(message, ("train", "size"))


def judged(pipeline: Settings) -> Problems:
    """Ask for a voter for every classifier."""
    train, voters = pipeline.train, pipeline.clients.vote
    if train and train.count > voters:
        message = f"{train.count} classifiers, but only {voters} clients vote."
        yield Problem(message, ("train", "count"))


def taught(pipeline: Settings) -> Problems:
    """Ask for learners that there are."""
    if not pipeline.learners:
        yield Problem("is missing: `curvote list` names them.", ("learners",))
    for index, learner in enumerate(pipeline.learners):
        try:
            check(learner.name, learner.params)
        except UserError as error:
            yield Problem(str(error), ("learners", index))


def budgets(pipeline: Settings) -> Problems:
    """Build every report's randomizers: what they refuse, they refuse here."""
    # Where the source decides, 2 stands in for d: what is refused hardly depends on it.
    privatize, d = pipeline.privatize, pipeline.project.size or 2
    name = privatize.mechanism
    if name not in MECHANISMS:
        hint = did_you_mean(name, MECHANISMS)
        yield Problem(f"{name!r} is not known.{hint}", ("privatize", "mechanism"))
        return
    if pipeline.project.rescale in UNBOUNDED:
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
LEARNING: Final = (tested, trained, judged, taught, budgets)


def released(pipeline: Settings) -> Problems:
    """Ask a release for public bounds, and for rounds that can be complete."""
    if not pipeline.production:
        return
    if pipeline.project.bounds == "from_data":
        message = "bounds from the clients' data are a leak; production refuses them."
        yield Problem(message, ("project", "bounds"))
    if pipeline.intake:
        yield from _waiting(pipeline)


def _waiting(pipeline: Settings) -> Problems:
    waits, sizes = pipeline.intake, pipeline.clients.model_dump()
    if pipeline.project.volunteers:
        message = (
            "no volunteer is here; state centre and scale as numbers, as many as"
            " `size`: centre: [0, 0], scale: [1, 1]."
        )
        yield Problem(message, ("project", "centre"))
    for name, message_kind in messages(pipeline.protocol).items():
        least, invited = waits.least(name), message_kind.senders.count(sizes)
        if least and least > invited:
            message = f"{least} are waited for, but only {invited} are invited."
            yield Problem(message, ("intake", f"min_{name}s"))
    train, reports = getattr(pipeline, "train", None), waits.least("report")
    if reports and train and reports < train.size:
        message = f"fewer than the {train.size} that a learner takes."
        yield Problem(message, ("intake", "min_reports"))
    if waits.online:
        yield from _batches(waits, pipeline.clients.vote)


def _batches(waits: Any, invited: int) -> Problems:
    """Yield what would keep the votes of an open round from being folded in."""
    first = waits.least("vote") or invited
    if first < waits.fold:
        message = f"{first} are too few to begin with; fold asks for {waits.fold}."
        yield Problem(message, ("intake", "min_votes"))
    if first <= invited < first + waits.fold:
        message = (
            f"no {waits.fold} votes can follow: {invited} are invited, and the round"
            f" waits for {first}; state a lower min_votes."
        )
        yield Problem(message, ("intake", "online"))
