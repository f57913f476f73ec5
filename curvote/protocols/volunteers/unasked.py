"""Automatic inclusion of `volunteers` beside studies that have some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from curvote.chain.axis import REPLICATE
from curvote.protocols.measures import MISCLASSIFICATION
from curvote.protocols.settings import Clients

if TYPE_CHECKING:
    from curvote.chain.system import System


def stands_beside(other: System, values: Mapping[str, Any]) -> bool:
    """Say whether settings of a study of ``other`` set volunteers aside.

    ``values`` may not have been checked yet. It must measure errors of classifiers of
    z, a repetition at a time.
    """
    fields = other.settings.model_fields
    has_clients = "project" in fields and _counts_clients(other)
    is_comparable = MISCLASSIFICATION in other.metrics and other.index == (REPLICATE,)
    return (
        has_clients
        and is_comparable
        and _volunteer_count(values) > 0
        and _is_study(values)
    )


def _counts_clients(other: System) -> bool:
    clients = other.settings.model_fields.get("clients")
    return clients is not None and clients.annotation is Clients


def _volunteer_count(values: Mapping[str, Any]) -> int:
    clients = values.get("clients")
    count = clients.get("public") if isinstance(clients, Mapping) else None
    return count if isinstance(count, int) else 0


def _is_study(values: Mapping[str, Any]) -> bool:
    return bool(values.get("mode", "study") == "study")
