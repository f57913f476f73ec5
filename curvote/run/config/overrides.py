"""Overrides in production: only settings read after the last message may change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from curvote.chain.lookup import find_system
from curvote.chain.registry import DEFAULT, SYSTEMS
from curvote.errors import KeyPath, Problem, UserError
from curvote.run.config.settings import FIXED
from curvote.run.config.yaml_lines import as_one_line

_REFUSAL = (
    "{given} is asked for, the file says {stated}: in production an override changes"
    " nothing that a message is made of, nor who takes part. Such a change belongs into"
    " pipelines.yaml; a release above what was consented to needs `curvote ledger"
    " raise-cap`."
)
_ABSENT = "nothing"


def refuse_in_production(
    file_values: Mapping[str, Any], run_values: Mapping[str, Any], where: KeyPath
) -> None:
    """Refuse to run a production pipeline with other settings than its file's.

    ``run_values`` is the pipeline with what the command line set. Nor does the command
    line make a study of production, or production of a study. UserError names every
    change.
    """
    if "production" not in (file_values.get("mode"), run_values.get("mode")):
        return
    free = overridable_settings(str(file_values.get("protocol", DEFAULT)))
    problems = [
        Problem(_REFUSAL.format(stated=was, given=new), (*where, *path))
        for path, was, new in _changed_settings(file_values, run_values)
        if ".".join(path) not in free
    ]
    if problems:
        raise UserError.several(problems)


def overridable_settings(protocol: str) -> set[str]:
    """Return the dotted settings that are read only after the last message."""
    stages = find_system(protocol).production if protocol in SYSTEMS else ()
    last = max((i for i, s in enumerate(stages) if s.message), default=len(stages))
    counts = {name for stage in stages[: last + 1] for name in stage.params}
    later = {name for stage in stages[last + 1 :] for name in stage.params}
    return later - counts - set(FIXED)


def _changed_settings(
    file_values: Mapping[str, Any], run_values: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield (path, text in the file, text of the run) of each changed setting."""
    before, after = dict(_setting_texts(file_values)), dict(_setting_texts(run_values))
    for path in sorted(before.keys() | after.keys()):
        was, new = before.get(path, _ABSENT), after.get(path, _ABSENT)
        if was != new:
            yield path, was, new


def _setting_texts(
    values: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path and text of each setting; equal texts name one release."""
    for key, value in values.items():
        path = (*above, str(key))
        if isinstance(value, Mapping) and value:
            yield from _setting_texts(value, path)
        else:
            yield path, as_one_line(value)
