"""What may be wrong with the servers of a pipeline although each key is well formed."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from curvote.chain.axis import Settings
from curvote.datasets import lookup
from curvote.errors import Problem, UserError, did_you_mean
from curvote.protocols.encoding_checks import representation
from curvote.protocols.transfer import choosing, dealing, stated
from curvote.protocols.transfer.methods import WEIGHED
from curvote.transfer.forms import FORMS, form
from curvote.transfer.task import ASKS

Problems = Iterator[Problem]
AUTO = "auto"


def checks(pipeline: Settings) -> Problems:
    """Yield what is wrong, the servers first: all else is said of them."""
    yield from representation(pipeline)
    servers = _servers(pipeline)
    if len(servers) < 1:
        message = "is missing: this source names no servers; say how many share it."
        yield Problem(message, ("transfer", "servers"))
        return
    yield from _named(pipeline, servers)
    yield from _tested(pipeline, servers)
    yield from _form(pipeline)
    yield from _production(pipeline)


def _servers(pipeline: Settings) -> list[str]:
    values = pipeline.model_dump(mode="json")
    return stated.names(values["source"], values["transfer"])


def _named(pipeline: Settings, servers: list[str]) -> Problems:
    """Ask that whatever names a server names one that there is."""
    transfer = pipeline.transfer
    named: list[tuple[str, Collection[str]]] = [
        ("target", [transfer.target] if transfer.target else []),
        ("epsilon", transfer.epsilon),
        ("faults", transfer.faults),
    ]
    if isinstance(transfer.weights, dict):
        named.append(("weights", transfer.weights))
    for key, given in named:
        for name in given:
            if name not in servers:
                hint = did_you_mean(name, servers)
                message = f"there is no server {name!r}.{hint}"
                yield Problem(message, ("transfer", key))
    wants = transfer.target or servers[0]
    for name, level in transfer.epsilon.items():
        if level == stated.OWN and name != wants:
            message = f"only the target keeps its own records, and {name} is a source."
            yield Problem(message, ("transfer", "epsilon", name))
    if lookup.servers(pipeline.source) is not None and transfer.servers is not None:
        message = "the source names its servers; none can be dealt."
        yield Problem(message, ("transfer", "servers"))


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


def _form(pipeline: Settings) -> Problems:
    transfer, rules = pipeline.transfer, [each.name for each in WEIGHED]
    release, weights = transfer.release, transfer.weights
    if release not in (AUTO, *FORMS):
        hint = did_you_mean(release, (AUTO, *FORMS))
        yield Problem(f"{release!r} is not known.{hint}", ("transfer", "release"))
        return
    if isinstance(weights, str) and weights not in rules:
        hint = did_you_mean(weights, rules)
        yield Problem(f"{weights!r} is not known.{hint}", ("transfer", "weights"))
    try:
        if release == AUTO:
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
    if pipeline.transfer.release == AUTO:
        message = "name the form: no later rule may make a second release of it."
        yield Problem(message, ("transfer", "release"))
    if stated.OWN in pipeline.transfer.epsilon.values():
        message = "what never leaves comes in no envelope; combine it in the library."
        yield Problem(message, ("transfer", "epsilon"))
    waits = pipeline.intake
    if waits and (waits.online or waits.least(ASKS) is not None):
        message = "each server sends one release, and all of them are waited for."
        yield Problem(message, ("intake",))
    if pipeline.transfer.faults:
        yield Problem("only a study lets servers lie.", ("transfer", "faults"))
