"""What `auto` stands for: one form of release and one rule of weights an epsilon."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from curvote.chain.axis import Settings
from curvote.chain.system import Part
from curvote.datasets import lookup
from curvote.errors import UserError
from curvote.protocols.transfer import dealing, stated
from curvote.transfer.choosing import choose
from curvote.transfer.forms import form
from curvote.transfer.setup import Setup

AUTO = "auto"


def parts(pipeline: Settings) -> list[Part]:
    """Return what the settings stand for at each epsilon, the form's rules included."""
    transfer = pipeline.transfer
    if transfer.release == AUTO:
        return [_chosen(pipeline, each) for each in pipeline.epsilon]
    kind = form(transfer.release)
    setups = (_setup(pipeline, epsilon) for epsilon in pipeline.epsilon)
    planned = [kind.planned(transfer.params, setup) for setup in setups]
    if all(params == transfer.params for params in planned):
        return [Part(pipeline)]
    return [
        _part(pipeline, epsilon, {"params": params})
        for epsilon, params in zip(pipeline.epsilon, planned, strict=True)
    ]


def _chosen(pipeline: Settings, epsilon: float) -> Part:
    """Return the choice at one epsilon; stated params count where its form has them."""
    choice = choose(_setup(pipeline, epsilon))
    weights = pipeline.transfer.weights or choice.weights
    known = form(choice.release).Parameters.model_fields
    params = {
        name: value for name, value in pipeline.transfer.params.items() if name in known
    }
    params = choice.params | params
    chosen = {"release": choice.release, "params": params, "weights": weights}
    method = f"{choice.release}, {weights}"
    return replace(
        _part(pipeline, epsilon, chosen), method=method, reason=choice.reason
    )


def _part(pipeline: Settings, epsilon: float, chosen: dict[str, Any]) -> Part:
    transfer = pipeline.transfer.model_copy(update=chosen)
    update = {"epsilon": [epsilon], "transfer": transfer, "label": pipeline.called}
    return Part(pipeline.model_copy(update=update), (("epsilon", epsilon),))


def _setup(pipeline: Settings, epsilon: float) -> Setup:
    """Return what is public before anything is released."""
    values = pipeline.model_dump(mode="json")
    source, transfer = values["source"], values["transfer"]
    servers, wants = stated.names(source, transfer), stated.target(source, transfer)
    told = stated.spelled(values | {"epsilon": epsilon})["told"]
    sizes = dealing.sizes(source, servers)
    there = sizes.get(wants)
    if there is not None:
        sizes[wants] = there - dealing.tested(transfer["test"], there)
    return Setup(
        d=_width(pipeline),
        classes=_classes(pipeline),
        sizes=sizes,
        levels={name: stated.level(each) for name, each in told.items()},
        target=wants,
    )


def _classes(pipeline: Settings) -> int:
    return len(lookup.classes(pipeline.source) or ("no", "yes"))


def _width(pipeline: Settings) -> int:
    """Return how many features a record has, as far as that is known by now."""
    if pipeline.project.size is not None:
        return int(pipeline.project.size)
    dataset, parameters = lookup.chosen(pipeline.source)
    known = dataset.width(parameters)
    if known is None:
        message = "how many numbers a record has is not known yet; name the release."
        raise UserError(message, where=("transfer", "release"))
    return int(known)
