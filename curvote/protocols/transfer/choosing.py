"""Meaning of release `auto`: one form and one rule of weights for each epsilon."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from curvote.chain.axis import PipelineSettings
from curvote.chain.system import Part
from curvote.datasets import lookup
from curvote.errors import UserError
from curvote.protocols.transfer import dealing, stated
from curvote.transfer.choosing import choose_form
from curvote.transfer.forms import form
from curvote.transfer.setup import PublicSetup

AUTO = "auto"


def resolve_parts(pipeline: PipelineSettings) -> list[Part]:
    """Return the settings resolved for each epsilon, with the form's own rules."""
    transfer = pipeline.transfer
    if transfer.release == AUTO:
        return [_choose_part(pipeline, level) for level in pipeline.epsilon]
    form_of_release = form(transfer.release)
    setups = (_public_setup(pipeline, epsilon) for epsilon in pipeline.epsilon)
    planned = [form_of_release.plan_params(transfer.params, setup) for setup in setups]
    if all(params == transfer.params for params in planned):
        return [Part(pipeline)]
    return [
        _make_part(pipeline, epsilon, {"params": params})
        for epsilon, params in zip(pipeline.epsilon, planned, strict=True)
    ]


def _choose_part(pipeline: PipelineSettings, epsilon: float) -> Part:
    """Return the automatic choice at one epsilon; stated params take precedence."""
    choice = choose_form(_public_setup(pipeline, epsilon))
    weights = pipeline.transfer.weights or choice.weights
    fields = form(choice.release).Parameters.model_fields
    params = {
        name: value
        for name, value in pipeline.transfer.params.items()
        if name in fields
    }
    params = choice.params | params
    chosen = {"release": choice.release, "params": params, "weights": weights}
    method = f"{choice.release}, {weights}"
    return replace(
        _make_part(pipeline, epsilon, chosen), method=method, reason=choice.reason
    )


def _make_part(
    pipeline: PipelineSettings, epsilon: float, chosen: dict[str, Any]
) -> Part:
    """Return the part of a pipeline at one epsilon with chosen settings."""
    transfer = pipeline.transfer.model_copy(update=chosen)
    update = {"epsilon": [epsilon], "transfer": transfer, "label": pipeline.called}
    return Part(pipeline.model_copy(update=update), (("epsilon", epsilon),))


def _public_setup(pipeline: PipelineSettings, epsilon: float) -> PublicSetup:
    """Return the public facts before anything is released."""
    values = pipeline.model_dump(mode="json")
    source, transfer = values["source"], values["transfer"]
    servers, target = (
        stated.server_names(source, transfer),
        stated.target_name(source, transfer),
    )
    levels = stated.normalize(values | {"epsilon": epsilon})["told"]
    sizes = dealing.public_sizes(source, servers)
    size = sizes.get(target)
    if size is not None:
        sizes[target] = size - dealing.test_size(transfer["test"], size)
    return PublicSetup(
        d=_count_features(pipeline),
        classes=_count_classes(pipeline),
        sizes=sizes,
        levels={
            name: stated.to_level(level_values) for name, level_values in levels.items()
        },
        target=target,
    )


def _count_classes(pipeline: PipelineSettings) -> int:
    """Return the number of classes of the source."""
    return len(lookup.classes(pipeline.source) or ("no", "yes"))


def _count_features(pipeline: PipelineSettings) -> int:
    """Return the number of features of a record; unknown is a UserError."""
    if pipeline.project.size is not None:
        return int(pipeline.project.size)
    dataset, parameters = lookup.resolve_source(pipeline.source)
    width = dataset.width(parameters)
    if width is None:
        message = "how many numbers a record has is not known yet; name the release."
        raise UserError(message, where=("transfer", "release"))
    return int(width)
