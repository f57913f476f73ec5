"""Settings of several systems: checked, and resolved where they stand for others."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from curvote.base.errors import Problem, UserError, did_you_mean
from curvote.base.registry import is_place
from curvote.chain.axis import PipelineSettings
from curvote.chain.lookup import find_system
from curvote.chain.system import Part
from curvote.client.report import Reporter
from curvote.curves import basis
from curvote.curves.encoding import RESCALING_CONSTANTS, UNBOUNDED_RESCALINGS, rescale
from curvote.data import lookup
from curvote.learning.learners.registry import check
from curvote.mechanisms.registry import MECHANISMS
from curvote.messages import evidence
from curvote.messages.message import check_class_count, messages_of
from curvote.messages.roles import too_many_error
from curvote.systems.common.settings import Representation

Problems = Iterator[Problem]
Check = Callable[[PipelineSettings], Problems]


def refusal(
    where: tuple[str | int, ...], check_values: Callable[..., Any], *values: Any
) -> Problems:
    """Yield the UserError of a function of some values, as a problem of a setting."""
    try:
        check_values(*values)
    except UserError as error:
        yield Problem(str(error), where)


_BOUND_KEYS = {"lower", "upper", "bounds"}
BASIS_NAMES = [*basis.BASES, basis.IDENTITY, basis.VALUES, basis.COSINES]
BASIS_NAMES += basis.VOLUNTEERS_BASES


def check_representation(pipeline: PipelineSettings) -> Problems:
    """Check the names, the size, and the constants that are stated."""
    project = pipeline.project
    for key, allowed in (("basis", BASIS_NAMES), ("rescale", [*RESCALING_CONSTANTS])):
        name = getattr(project, key)
        if name not in allowed:
            hint = did_you_mean(name, allowed)
            yield Problem(f"{name!r} is not known.{hint}", ("project", key))
    yield from _check_size(project)
    count = lookup.channel_count(pipeline.source)
    if project.basis == basis.COSINES and count > 1:
        yield Problem("cosines take images, not channels.", ("project", "basis"))
    elif project.basis == basis.COSINES:
        # Square images with pixels enough, where their size is known.
        dataset, parameters = lookup.resolve_source(pipeline.source)
        points = dataset.width(parameters)
        if points is not None:
            try:
                basis.lowest_frequencies(points, project.width or 1)
            except UserError as error:
                yield from error.problems
    if project.bounds != "stated" and project.rescale != "min_max":
        yield Problem("bounds belong to rescale: min_max.", ("project", "bounds"))
    if project.rescale == "min_max" and not _BOUND_KEYS & project.model_fields_set:
        needed = "write bounds: public for the source's, or lower and upper."
        yield Problem(f"min_max needs bounds: {needed}", ("project", "rescale"))
    yield from refusal(("project", "rescale"), _try_constants, project, count)
    if project.basis in basis.VOLUNTEERS_BASES:
        yield from _check_volunteers_basis(pipeline)
    elif project.volunteers and pipeline.clients.public < 2:
        message = "constants from volunteers need at least 2 of them (clients.public)."
        yield Problem(message, ("clients", "public"))


def _check_volunteers_basis(pipeline: PipelineSettings) -> Problems:
    """Require volunteers enough for a basis that their curves make or choose."""
    project, volunteers = pipeline.project, pipeline.clients.public
    size, chosen = project.width or 1, project.noise is not None
    least = evidence.LEAST_VOLUNTEERS if chosen else size + 1
    purpose = "chooses a basis by their labelled records"
    if not chosen:
        purpose = f"computes {size} components from their curves alone"
    if pipeline.intake:
        message = (
            "a client elsewhere multiplies its curve by no matrix that it cannot make"
            " itself, and one of volunteers' curves follows from no name. Take fourier"
            " or bspline, or have the clients' records in one house."
        )
        yield Problem(message, ("project", "basis"))
    elif volunteers < least:
        message = (
            f"{project.basis} {purpose}, which takes {least} volunteers or more;"
            f" {volunteers or 'nobody'} volunteers."
        )
        yield Problem(message, ("clients", "public"))
    if chosen and size > evidence.WIDTH:
        message = f"volunteers choose {evidence.WIDTH} numbers at most, not {size}."
        yield Problem(message, ("project", "size"))
    if chosen and lookup.channel_count(pipeline.source) > 1:
        message = (
            "volunteers choose among bases of one channel; state basis: fpca or another"
            " and its size for curves of several."
        )
        yield Problem(message, ("project", "basis"))
    left_open = project.centre == project.scale == "volunteers"
    centred = project.rescale in ("standard", "tanh") and left_open
    if project.rescale == "min_max" or (chosen and not centred):
        message = (
            "no bound or constant can be stated of a basis that volunteers' curves"
            " make: take rescale: standard or tanh, with their centre and scale."
        )
        yield Problem(message, ("project", "rescale"))
    dataset, parameters = lookup.resolve_source(pipeline.source)
    values = basis.FPCA, size, 1, dataset.width(parameters)
    yield from refusal(("project", "size"), basis.check_size, *values)


def _check_size(project: Representation) -> Problems:
    """Check the size; feature vectors have the one that their source gives them."""
    where = ("project", "size")
    if project.derivative and project.basis not in basis.BASES:
        have = " and ".join(basis.BASES)
        message = f"{project.basis} has no derivative; {have} have."
        yield Problem(message, ("project", "derivative"))
        return
    if project.basis in (basis.IDENTITY, basis.VALUES):
        if project.size is not None or project.coordinates != "coefficients":
            message = f"{project.basis} keeps all numbers: leave size, coordinates out."
            yield Problem(message, where)
        return
    if project.width is None:
        yield Problem("is missing.", where)
        return
    if project.basis not in basis.VOLUNTEERS_BASES:  # they have a check of their own
        size = project.basis, project.width, project.order
        check_size = partial(basis.check_size, derivative=project.derivative)
        yield from refusal(where, check_size, *size)


def _try_constants(project: Representation, channels: int) -> None:
    """Rescale a record of zeros with the constants that the configuration states."""
    if project.rescale not in RESCALING_CONSTANTS:
        return
    stated_constants = [project.centre, project.scale, project.lower, project.upper]
    lengths = [len(value) for value in stated_constants if isinstance(value, list)]
    # The length of stated constants, where the source decides the record's.
    width = max(lengths, default=1)
    if project.width is not None:
        named = project.basis, project.width, project.derivative
        width = basis.coefficient_count(*named, channels)
    defaults = {"centre": 0.0, "scale": 1.0}
    constants = {
        name: defaults[name] if isinstance(value, str) else value
        for name in RESCALING_CONSTANTS[project.rescale]
        for value in [getattr(project, name)]
    }
    rescale(project.rescale, np.zeros((1, width)), constants)


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
    n_classes = len(lookup.classes(pipeline.source) or ())
    yield from refusal(("source", "classes"), check_class_count, n_classes)


def combine_checks(*checks: Check, classes: Check = check_two_classes) -> Check:
    """Return all checks as one, with those of roles and representation.

    ``classes`` asks for as many as the protocol tells apart.
    """
    shared = check_representation, check_implied_settings, check_production

    def run_checks(pipeline: PipelineSettings) -> Problems:
        for yield_problems in (check_roles, classes, *shared, *checks):
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
        yield from refusal(("learners", index), check, learner.name, learner.params)


def check_budgets(pipeline: PipelineSettings) -> Problems:
    """Yield what the randomizers of every report would refuse."""
    # Where the source decides, 2 stands in for d: what is refused hardly depends on it.
    privatize = pipeline.privatize
    d = (pipeline.project.size and lookup.record_numbers(pipeline)) or 2
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
    privatize = getattr(pipeline, "privatize", None)
    if privatize and is_place(privatize.mechanism):
        message = (
            "names code by its place; a release takes what its clients can install: a"
            " plug-in, by the name of its entry point."
        )
        yield Problem(message, ("privatize", "mechanism"))
    if not pipeline.intake:
        return
    intake, sizes = pipeline.intake, pipeline.clients.model_dump()
    own_curves = pipeline.project.basis in basis.VOLUNTEERS_BASES  # refused already
    if pipeline.project.volunteers and not own_curves:
        message = (
            "no volunteer is here; state centre and scale as numbers, as many as"
            " `size`: centre: [0, 0], scale: [1, 1]."
        )
        yield Problem(message, ("project", "centre"))
    for name, message_kind in messages_of(pipeline.protocol).items():
        minimum = intake.stated_minimum(name)
        invited = message_kind.senders.count(sizes)
        if minimum and minimum > invited:
            message = f"{minimum} are waited for, but only {invited} are invited."
            yield Problem(message, ("intake", f"min_{name}s"))
    train, reports = getattr(pipeline, "train", None), intake.stated_minimum("report")
    if reports and train and reports < train.size:
        message = f"fewer than the {train.size} that a learner takes."
        yield Problem(message, ("intake", "min_reports"))
    if not intake.online:
        return
    # Votes of an open round that could never be folded in.
    invited = pipeline.clients.vote
    initial = intake.stated_minimum("vote") or invited
    if initial < intake.fold:
        message = f"{initial} votes are too few to begin with; `fold` is {intake.fold}."
        yield Problem(message, ("intake", "min_votes"))
    if initial <= invited < initial + intake.fold:
        message = (
            f"no {intake.fold} votes can follow: {invited} are invited, and the round"
            f" waits for {initial}; state a lower min_votes."
        )
        yield Problem(message, ("intake", "online"))


# Each client answers for one class: other messages, so a protocol of its own.
CLASSES_PROTOCOL = "mrma_classes"


def resolve_classes(pipeline: PipelineSettings) -> tuple[Part]:
    """Return the settings, or those of `mrma_classes` under the same name."""
    if class_count(pipeline.source) == 2:
        return (Part(pipeline),)
    update = {"protocol": CLASSES_PROTOCOL, "label": pipeline.called}
    return (Part(pipeline.model_copy(update=update)),)


def check_mrma_classes(pipeline: PipelineSettings) -> Problems:
    """Require clients enough for each class, and no printed table."""
    yield from check_many_classes(pipeline)
    n_classes = class_count(pipeline.source)
    clients, train = pipeline.clients, pipeline.train
    if n_classes == 2:
        return
    if pipeline.as_published:
        message = f"the printed tables know two classes, not {n_classes}."
        yield Problem(message, ("as_published",))
    if train and train.count * n_classes > clients.vote:
        message = (
            f"{train.count} classifiers of each of {n_classes} classes, but only"
            f" {clients.vote} clients vote."
        )
        yield Problem(message, ("train", "count"))
    if train and train.size * n_classes > clients.train:
        message = (
            f"{train.size} reports about each of {n_classes} classes, but only"
            f" {clients.train} train."
        )
        yield Problem(message, ("train", "size"))


def class_count(source: Mapping[str, Any]) -> int:
    """Return the number of classes of a source; 2 where none are listed."""
    return len(lookup.classes(source) or ()) or 2


Values = dict[str, Any]

# The printed rows of table A.1 that only an inconsistent slope explains.
INCONSISTENT_LEARNERS = ("logistic",)


def expand_published(values: Values) -> Values:
    """Return a configuration with ``as_published`` written out.

    Utility clipped to [0, 1] and classifiers weighted by its distance from 1/2; scores
    as the tables define them; twice the noise that is stated for the histogram; and a
    slope from coefficients without the inverse Gram matrix, judged on raw curves.
    Method I takes the fitted numbers b for the slope's coefficients, so it judges
    b'Gc = sum_k b_k <x, phi_k> where b'c was fitted.
    """
    if not values.get("as_published"):
        return values
    project, learner = values["project"], (values["learner"] or {}).get("name")
    if project["basis"] != basis.IDENTITY and learner is not None:
        inconsistent = learner in INCONSISTENT_LEARNERS
        judge = "inner_products" if inconsistent else "coefficients"
        project = project | {"judge": judge}
    return values | {
        "aggregate": values.get("aggregate", {}) | {"weights": "distance"},
        "report": {"definitions": "published"},
        "published": {"histogram": True},
        "project": project,
    }
