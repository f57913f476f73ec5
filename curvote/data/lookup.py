"""Data sets behind their names."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from curvote.base.classes import Classes, class_shares
from curvote.base.registry import is_place
from curvote.base.validate import FloatArray
from curvote.curves.basis import coefficient_count
from curvote.data.registry import DATASETS


def find_dataset(name: str) -> Any:
    """Return the data set ``name``, a module or a value; UserError: it is unknown."""
    return DATASETS.load(name)


def resolve_source(source: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the data set of a valid source, and its parameters."""
    dataset = find_dataset(source["name"])
    return dataset, dataset.Parameters.model_validate(own_settings(source))


# Every source may state it: its data set reads the same records with it or without.
BALANCE = "balance"


def balance(source: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Return the publicly stated share of each class; None: nothing is stated.

    Shares that are not above 0, do not add up to 1 or are of another number than the
    classes are a UserError.
    """
    shares = source.get(BALANCE)
    if shares is None:
        return None
    return class_shares(shares, len(classes(source) or (0, 1)))


def own_settings(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a source as its data set reads it, and by its name where a place stands.

    The shares of classes are left out.
    """
    source = {name: value for name, value in source.items() if name != BALANCE}
    if not is_place(source["name"]):
        return source
    fields = find_dataset(source["name"]).Parameters.model_fields
    return {**source, "name": fields["name"].default}


def channel_count(source: Mapping[str, Any]) -> int:
    """Return how many channels a curve of a source has."""
    return len(getattr(resolve_source(source)[1], "channels", ())) or 1


def record_numbers(pipeline: Any) -> int | None:
    """Return how many numbers a record becomes; None where only the source knows."""
    project = pipeline.project
    if project.size is None:
        dataset, parameters = resolve_source(pipeline.source)
        width: int | None = dataset.width(parameters)
        return width
    named = project.basis, project.size, project.derivative
    return coefficient_count(*named, channel_count(pipeline.source))


def servers(source: Mapping[str, Any]) -> Mapping[str, int | None] | None:
    """Return the servers that hold the records, and the public size of each.

    The first is 0 in the column ``group``, and so on. None stands for a size that only
    the pipeline or the server itself will say; None for all: there are no servers.
    """
    dataset, parameters = resolve_source(source)
    return dataset.servers(parameters) if hasattr(dataset, "servers") else None


def drawn_per_server(source: Mapping[str, Any]) -> bool:
    """Return whether clients are simulated for each server by itself."""
    simulated = find_dataset(source["name"]).SIMULATED and not is_remote(source)
    return simulated and None in (servers(source) or {}).values()


def is_remote(source: Mapping[str, Any]) -> bool:
    """Return whether the records stay with their owners."""
    return bool(getattr(find_dataset(source["name"]), "REMOTE", False))


def classes(source: Mapping[str, Any]) -> Classes | None:
    """Return the classes of a source whose pipeline lists them; others have two."""
    dataset, parameters = resolve_source(source)
    return dataset.classes(parameters) if hasattr(dataset, "classes") else None


def eta(source: Mapping[str, Any]) -> Callable[[FloatArray], FloatArray] | None:
    """Return the known regression functions, x (n, d) -> (n, K); None: unknown.

    None for a source whose law nobody knows.
    """
    dataset, parameters = resolve_source(source)
    has_eta = hasattr(dataset, "eta")
    return partial(dataset.eta, parameters) if has_eta else None


def keeps_published_split(source: Mapping[str, Any]) -> bool:
    """Return whether the publisher's split into training and test is kept."""
    return source.get("split") == "published"
