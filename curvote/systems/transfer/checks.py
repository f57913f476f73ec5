"""Meaning of release `auto`: one form and one rule of weights for each epsilon."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from curvote.base.errors import Problem, UserError, did_you_mean
from curvote.base.privacy import refuse_delta
from curvote.chain.axis import PipelineSettings
from curvote.chain.system import Part
from curvote.data import lookup
from curvote.systems.common.checks import check_representation
from curvote.systems.transfer import settings
from curvote.systems.transfer.measures import WEIGHED
from curvote.systems.transfer.method import task
from curvote.systems.transfer.method.advice import choose_form

AUTO = "auto"


def resolve_parts(pipeline: PipelineSettings) -> list[Part]:
    """Return the settings resolved for each epsilon, with the form's own rules."""
    release, own_params = pipeline.transfer.release, pipeline.transfer.params
    setups = (_public_setup(pipeline, epsilon) for epsilon in pipeline.epsilon)
    if release != AUTO:
        form = task.form(release)
        planned = [form.plan_params(own_params, setup) for setup in setups]
        if all(params == own_params for params in planned):
            return [Part(pipeline)]
        return [
            _make_part(pipeline, epsilon, {"params": params})
            for epsilon, params in zip(pipeline.epsilon, planned, strict=True)
        ]
    parts = []
    for epsilon, setup in zip(pipeline.epsilon, setups, strict=True):
        choice = choose_form(setup)
        weights = pipeline.transfer.weights or choice.weights
        fields = task.form(choice.release).Parameters.model_fields
        # Stated parameters take precedence.
        known_params = {name: own_params[name] for name in own_params if name in fields}
        params = choice.params | known_params
        chosen = {"release": choice.release, "params": params, "weights": weights}
        part = _make_part(pipeline, epsilon, chosen)
        method = f"{choice.release}, {weights}"
        parts.append(replace(part, method=method, reason=choice.reason))
    return parts


def _make_part(
    pipeline: PipelineSettings, epsilon: float, chosen: dict[str, Any]
) -> Part:
    """Return the part of a pipeline at one epsilon with chosen settings."""
    transfer = pipeline.transfer.model_copy(update=chosen)
    update = {"epsilon": [epsilon], "transfer": transfer, "label": pipeline.called}
    return Part(pipeline.model_copy(update=update), (("epsilon", epsilon),))


def _public_setup(pipeline: PipelineSettings, epsilon: float) -> task.PublicSetup:
    """Return the public facts before anything is released."""
    values = pipeline.model_dump(mode="json")
    cell = settings.normalize(values | {"epsilon": epsilon})
    target, sizes = cell["target"], settings.public_sizes(cell["source"], cell["names"])
    size = sizes.get(target)
    if size is not None:
        sizes[target] = size - settings.test_size(values["transfer"]["test"], size)
    d = pipeline.project.size
    if d is None:
        dataset, parameters = lookup.resolve_source(pipeline.source)
        d = dataset.width(parameters)
    if d is None:
        message = "how many numbers a record has is not known yet; name the release."
        raise UserError(message, where=("transfer", "release"))
    classes = len(lookup.classes(pipeline.source) or ("no", "yes"))
    levels = {
        name: settings.to_level(request) for name, request in cell["told"].items()
    }
    return task.PublicSetup(int(d), classes, sizes, levels, target)


Problems = Iterator[Problem]


def check_settings(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of the settings, those of the servers first."""
    yield from check_servers(pipeline)
    servers = _server_names(pipeline)
    if servers and not lookup.drawn_per_server(pipeline.source):
        yield from _check_names(pipeline, servers)
        yield from _check_delta(pipeline, servers)
        yield from _check_form(pipeline)
        yield from _check_production(pipeline)


def check_servers(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of servers, target and test records."""
    yield from check_representation(pipeline)
    if lookup.keeps_published_split(pipeline.source):
        message = "it says who is tested, and so does transfer.test: leave it out."
        yield Problem(message, ("source", "split"))
    servers, target = _server_names(pipeline), pipeline.transfer.target
    if not servers:
        message = "is missing: this source names no servers; say how many share it."
        yield Problem(message, ("transfer", "servers"))
        return
    if lookup.drawn_per_server(pipeline.source):
        message = f"{pipeline.source['name']} draws as many as each server is told."
        yield Problem(message, ("source", "name"))
        return
    yield from _check_known("target", [target] if target else [], servers)
    yield from _check_test(pipeline, servers)
    if lookup.servers(pipeline.source) is not None and pipeline.transfer.servers:
        message = "the source names its servers; none can be dealt."
        yield Problem(message, ("transfer", "servers"))


def _check_known(key: str, names: Iterable[str], servers: list[str]) -> Problems:
    """Yield a problem for each name that is no server."""
    for name in names:
        if name not in servers:
            message = f"there is no server {name!r}.{did_you_mean(name, servers)}"
            yield Problem(message, ("transfer", key))


def _server_names(pipeline: PipelineSettings) -> list[str]:
    """Return the names of the servers."""
    values = pipeline.model_dump(mode="json")
    return settings.server_names(values["source"], values["transfer"])


def _check_names(pipeline: PipelineSettings, servers: list[str]) -> Problems:
    """Yield the problems of settings that name a server."""
    transfer = pipeline.transfer
    yield from _check_known("epsilon", transfer.epsilon, servers)
    yield from _check_known("faults", transfer.faults, servers)
    if isinstance(transfer.weights, dict):
        yield from _check_known("weights", transfer.weights, servers)
    target = transfer.target or servers[0]
    for name, level in transfer.epsilon.items():
        if level == task.OWN_RELEASE and name != target:
            message = f"only the target keeps its own records, and {name} is a source."
            yield Problem(message, ("transfer", "epsilon", name))


def _check_test(pipeline: PipelineSettings, servers: list[str]) -> Problems:
    """Yield the problems of the target's test records."""
    transfer, where = pipeline.transfer, ("transfer", "test")
    if pipeline.production:
        return
    if not transfer.test:
        yield Problem("a study needs records of the target to test on.", where)
    target = transfer.target or servers[0]
    size = settings.public_sizes(pipeline.source, servers).get(target)
    if size is not None and settings.test_size(transfer.test, size) >= size:
        message = f"{transfer.test} of the {size} records of {target}: none is left."
        yield Problem(message, where)
    roles = pipeline.clients.model_dump()
    for role in ("train", "vote", "test"):
        if roles[role]:
            message = "servers hold everybody but volunteers: transfer.test says more."
            yield Problem(message, ("clients", role))


def _check_delta(pipeline: PipelineSettings, servers: list[str]) -> Problems:
    """Yield a problem if delta is no promise to some known size."""
    for name, n in settings.public_sizes(pipeline.source, servers).items():
        try:
            if n is not None:
                refuse_delta(pipeline.transfer.delta or 0.0, n)
        except UserError as error:
            yield Problem(f"{name}: {error}", ("transfer", "delta"))
            return


def _check_form(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of form, weights and parameters."""
    transfer, rules = pipeline.transfer, [method.name for method in WEIGHED]
    release, weights = transfer.release, transfer.weights
    if release not in (AUTO, *task.FORMS):
        hint = did_you_mean(release, (AUTO, *task.FORMS))
        yield Problem(f"{release!r} is not known.{hint}", ("transfer", "release"))
        return
    if isinstance(weights, str) and weights not in rules:
        hint = did_you_mean(weights, rules)
        yield Problem(f"{weights!r} is not known.{hint}", ("transfer", "weights"))
    try:
        if release == AUTO:
            list(resolve_parts(pipeline))
        else:
            task.form(release).check_params(transfer.params)
    except UserError as error:
        yield Problem(str(error), ("transfer", "params"))


def _check_production(pipeline: PipelineSettings) -> Problems:
    """Yield the problems that only production has."""
    if not pipeline.production:
        return
    if not lookup.is_remote(pipeline.source):
        message = "releases come by envelope: each server draws its own, at home."
        yield Problem(message, ("source", "name"))
    if pipeline.transfer.release == AUTO:
        message = "name the form: no later rule may make a second release of it."
        yield Problem(message, ("transfer", "release"))
    elif task.form(pipeline.transfer.release).study:
        message = "it protects less than it claims, and is for studies only."
        yield Problem(message, ("transfer", "release"))
    if task.OWN_RELEASE in pipeline.transfer.epsilon.values():
        message = "what never leaves comes in no envelope; combine it in the library."
        yield Problem(message, ("transfer", "epsilon"))
    waits = pipeline.intake
    if waits and (waits.online or waits.stated_minimum(task.ASKS) is not None):
        message = "each server sends one release, and all of them are waited for."
        yield Problem(message, ("intake",))
    if pipeline.transfer.faults:
        yield Problem("only a study lets servers lie.", ("transfer", "faults"))
