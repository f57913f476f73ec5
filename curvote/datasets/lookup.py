"""A data set from its name, and what its source says without any file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.classes import Classes
from curvote.datasets.registry import DATASETS

Array = NDArray[np.float64]


def module(name: str) -> ModuleType:
    """Return the module of data set ``name``; an unknown name is a UserError."""
    return import_module(DATASETS[validate.one_of(DATASETS, source=name)])


def chosen(source: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the data set of a source that is right in itself, and its parameters."""
    dataset = module(source["name"])
    return dataset, dataset.Parameters.model_validate(source)


def servers(source: Mapping[str, Any]) -> Mapping[str, int | None] | None:
    """Return the servers that hold the records and how many each has, both public.

    The first is 0 in the column ``group``, and so on. None stands for a size that only
    the pipeline or the server itself will say; None for all: there are no servers.
    """
    dataset, parameters = chosen(source)
    return dataset.servers(parameters) if hasattr(dataset, "servers") else None


def apart(source: Mapping[str, Any]) -> bool:
    """Say whether clients are drawn for each server apart, as many as is asked for."""
    drawn = module(source["name"]).SIMULATED and not remote(source)
    return drawn and None in (servers(source) or {}).values()


def remote(source: Mapping[str, Any]) -> bool:
    """Say whether the records stay with their owners: only messages come."""
    return bool(getattr(module(source["name"]), "REMOTE", False))


def classes(source: Mapping[str, Any]) -> Classes | None:
    """Return the classes of a source whose pipeline lists them; others have two."""
    dataset, parameters = chosen(source)
    return dataset.classes(parameters) if hasattr(dataset, "classes") else None


def eta(source: Mapping[str, Any]) -> Callable[[Array], Array] | None:
    """Return the regression functions, from x (n, d) to (n, K), where they are known.

    None for a source whose law nobody knows.
    """
    dataset, parameters = chosen(source)
    known = hasattr(dataset, "eta")
    return partial(dataset.eta, parameters) if known else None


def published(source: Mapping[str, Any]) -> bool:
    """Say whether the publisher's split into training and test is kept."""
    return source.get("split") == "published"
