"""What `auto` stands for: one form of release and one rule of weights an epsilon."""

from __future__ import annotations

from collections.abc import Iterator

from curvote.chain.axis import Settings
from curvote.chain.system import Part
from curvote.datasets import lookup
from curvote.errors import UserError
from curvote.protocols.transfer import dealing, stated
from curvote.transfer.choosing import Choice, choose

AUTO = "auto"


def parts(pipeline: Settings) -> list[Part]:
    """Return what the rule makes of the settings at each epsilon, or what is named."""
    if pipeline.transfer.release != AUTO:
        return [Part(pipeline)]
    return [_part(pipeline, *each) for each in _choices(pipeline)]


def _part(pipeline: Settings, epsilon: float, choice: Choice) -> Part:
    chosen = {"release": choice.release, "params": choice.params}
    chosen["weights"] = pipeline.transfer.weights or choice.weights
    transfer = pipeline.transfer.model_copy(update=chosen)
    update = {"epsilon": [epsilon], "transfer": transfer, "label": pipeline.called}
    settings = pipeline.model_copy(update=update)
    method = f"{choice.release}, {choice.weights}"
    return Part(settings, (("epsilon", epsilon),), method, choice.reason)


def _choices(pipeline: Settings) -> Iterator[tuple[float, Choice]]:
    """Yield (epsilon, choice) from what is public: d, classes, sizes and budgets."""
    values = pipeline.model_dump(mode="json")
    source, transfer = values["source"], values["transfer"]
    servers, wants = stated.names(source, transfer), stated.target(source, transfer)
    sizes = dealing.sizes(source, servers)
    for epsilon in pipeline.epsilon:
        told = stated.spelled(values | {"epsilon": epsilon})["told"]
        levels = {name: stated.level(each) for name, each in told.items()}
        yield (
            epsilon,
            choose(_width(pipeline), _classes(pipeline), sizes, levels, wants),
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
