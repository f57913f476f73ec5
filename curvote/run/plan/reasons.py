"""Why a step runs: the differences between two keys, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from curvote.run.config.yaml_lines import as_one_line


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield all that differs between the components of two keys, most telling first."""
    for name, before, now in _changed(old["params"], new["params"]):
        for path, was, will in _inner(name, before, now):
            yield f"parameter {path} {as_one_line(was)} -> {as_one_line(will)}"
    if old.get("raw") != new.get("raw"):
        keyed = any(isinstance(told, dict) for told in new.get("raw", {}).values())
        yield "the raw file changed" + ", or data/state/digest.key" * keyed
    yield from _code(old["code"], new["code"], alone=old["params"] == new["params"])
    for name, before, now in _changed(old["versions"], new["versions"]):
        yield f"library {name} {before} -> {now}"
    for name, _, _ in _changed(old["inputs"], new["inputs"]):
        yield f"input {name} changed"
    if old["contract"] != new["contract"]:
        yield f"contract {old['contract']} -> {new['contract']}"


def _code(
    old: Mapping[str, Any], new: Mapping[str, Any], *, alone: bool
) -> Iterator[str]:
    """Yield which definitions differ; keys were once made of whole modules.

    What only one of them reaches is no reason but where it differs ``alone``: it
    follows from a parameter, or from what is common to both.
    """
    if not any(isinstance(code, dict) for code in old.values()):
        yield "keys count definitions now, and no longer whole modules"
        return
    differing = list(_changed(_flat(old), _flat(new)))
    common = [name for name, before, now in differing if before and now]
    for name in common or [name for name, _, _ in differing if alone]:
        yield f"code {name} changed"


def _flat(code: Mapping[str, Any]) -> dict[str, str]:
    """Return digests by whole names; an entry of a registry stands for itself."""
    return {
        f"{place}.{name}".strip("."): digest
        for place, part in code.items()
        for name, digest in (part if isinstance(part, dict) else {"": part}).items()
    }


def _changed(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield name, old.get(name), new.get(name)


def _inner(name: str, before: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key, was, will in _changed(before, now):
            yield from _inner(f"{name}.{key}", was, will)
    else:
        yield name, before, now
