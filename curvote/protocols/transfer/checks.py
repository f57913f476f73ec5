"""What may be wrong with the servers of a pipeline although each key is well formed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from curvote.chain.axis import Settings
from curvote.datasets import lookup
from curvote.errors import Problem, UserError, did_you_mean
from curvote.privacy import refuse_delta
from curvote.protocols.encoding_checks import representation
from curvote.protocols.transfer import choosing, dealing, stated
from curvote.protocols.transfer.methods import WEIGHED
from curvote.transfer.forms import FORMS, form
from curvote.transfer.task import ASKS, OWN

Problems = Iterator[Problem]


def checks(pipeline: Settings) -> Problems:
    """Yield what is wrong, the servers first: all else is said of them."""
    yield from dealt(pipeline)
    servers = _servers(pipeline)
    if servers and not lookup.apart(pipeline.source):
        yield from _named(pipeline, servers)
        yield from _promised(pipeline, servers)
        yield from _form(pipeline)
        yield from _production(pipeline)


def dealt(pipeline: Settings) -> Problems:
    """Yield what is wrong with who holds which records, and who wants a classifier."""
    yield from representation(pipeline)
    if lookup.published(pipeline.source):
        message = "it says who is tested, and so does transfer.test: leave it out."
        yield Problem(message, ("source", "split"))
    servers, target = _servers(pipeline), pipeline.transfer.target
    if not servers:
        message = "is missing: this source names no servers; say how many share it."
        yield Problem(message, ("transfer", "servers"))
        return
    if lookup.apart(pipeline.source):
        message = f"{pipeline.source['name']} draws as many as each server is told."
        yield Problem(message, ("source", "name"))
        return
    yield from _known("target", [target] if target else [], servers)
    yield from _tested(pipeline, servers)
    if lookup.servers(pipeline.source) is not None and pipeline.transfer.servers:
        message = "the source names its servers; none can be dealt."
        yield Problem(message, ("transfer", "servers"))


def _known(key: str, given: Iterable[str], servers: list[str]) -> Problems:
    for name in given:
        if name not in servers:
            message = f"there is no server {name!r}.{did_you_mean(name, servers)}"
            yield Problem(message, ("transfer", key))


def _servers(pipeline: Settings) -> list[str]:
    values = pipeline.model_dump(mode="json")
    return stated.names(values["source"], values["transfer"])


def _named(pipeline: Settings, servers: list[str]) -> Problems:
    """Ask that whatever names a server names one that there is."""
    transfer = pipeline.transfer
    yield from _known("epsilon", transfer.epsilon, servers)
    yield from _known("faults", transfer.faults, servers)
    if isinstance(transfer.weights, dict):
        yield from _known("weights", transfer.weights, servers)
    wants = transfer.target or servers[0]
    for name, level in transfer.epsilon.items():
        if level == OWN and name != wants:
            message = f"only the target keeps its own records, and {name} is a source."
            yield Problem(message, ("transfer", "epsilon", name))


def _tested(pipeline: Settings, servers: list[str]) -> Problems:
    transfer, where = pipeline.transfer, ("transfer", "test")
    if pipeline.production:
        return
    if not transfer.test:
        yield Problem("a study needs records of the target to test on.", where)
    wants = transfer.target or servers[0]
    there = dealing.sizes(pipeline.source, servers).get(wants)
    if there is not None and dealing.tested(transfer.test, there) >= there:
        message = f"{transfer.test} of the {there} records of {wants}: none is left."
        yield Problem(message, where)
    roles = pipeline.clients.model_dump()
    for role in ("train", "vote", "test"):
        if roles[role]:
            message = "servers hold everybody but volunteers: transfer.test says more."
            yield Problem(message, ("clients", role))


def _promised(pipeline: Settings, servers: list[str]) -> Problems:
    """Ask for a delta that is a promise to every record, as far as sizes are known."""
    delta, sizes = pipeline.transfer.delta, dealing.sizes(pipeline.source, servers)
    known = {name: n for name, n in sizes.items() if n is not None}
    for name, n in known.items():
        try:
            refuse_delta(delta or 0.0, n)
        except UserError as error:
            yield Problem(f"{name}: {error}", ("transfer", "delta"))
            return


def _form(pipeline: Settings) -> Problems:
    transfer, rules = pipeline.transfer, [each.name for each in WEIGHED]
    release, weights = transfer.release, transfer.weights
    if release not in (choosing.AUTO, *FORMS):
        hint = did_you_mean(release, (choosing.AUTO, *FORMS))
        yield Problem(f"{release!r} is not known.{hint}", ("transfer", "release"))
        return
    if isinstance(weights, str) and weights not in rules:
        hint = did_you_mean(weights, rules)
        yield Problem(f"{weights!r} is not known.{hint}", ("transfer", "weights"))
    try:
        if release == choosing.AUTO:
            list(choosing.parts(pipeline))
        else:
            form(release).checked(transfer.params)
    except UserError as error:
        yield Problem(str(error), ("transfer", "params"))


def _production(pipeline: Settings) -> Problems:
    if not pipeline.production:
        return
    if not lookup.remote(pipeline.source):
        message = "releases come by envelope: each server draws its own, at home."
        yield Problem(message, ("source", "name"))
    if pipeline.transfer.release == choosing.AUTO:
        message = "name the form: no later rule may make a second release of it."
        yield Problem(message, ("transfer", "release"))
    elif form(pipeline.transfer.release).study:
        message = "it protects less than it claims, and is for studies only."
        yield Problem(message, ("transfer", "release"))
    if OWN in pipeline.transfer.epsilon.values():
        message = "what never leaves comes in no envelope; combine it in the library."
        yield Problem(message, ("transfer", "epsilon"))
    waits = pipeline.intake
    if waits and (waits.online or waits.least(ASKS) is not None):
        message = "each server sends one release, and all of them are waited for."
        yield Problem(message, ("intake",))
    if pipeline.transfer.faults:
        yield Problem("only a study lets servers lie.", ("transfer", "faults"))
