"""What may be overridden in production: only what is read after the last message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from curvote.chain.lookup import system
from curvote.chain.registry import DEFAULT, SYSTEMS
from curvote.errors import Problem, UserError, Where
from curvote.run.config.settings import FIXED
from curvote.run.config.yaml_lines import in_line

_SAID = (
    "{given} is asked for, the file says {stated}: in production an override changes"
    " nothing that a message is made of, nor who takes part. Such a change belongs into"
    " pipelines.yaml; a release above what was consented to needs `curvote ledger"
    " raise-cap`."
)
_ABSENT = "nothing"


def refuse_in_production(
    stated: Mapping[str, Any], asked: Mapping[str, Any], where: Where
) -> None:
    """Refuse to run a pipeline of production otherwise than as it is ``stated``.

    ``asked`` is the pipeline with what the command line set. Nor does the command line
    make a study of production, or production of a study. UserError names every change.
    """
    if "production" not in (stated.get("mode"), asked.get("mode")):
        return
    free = free_settings(str(stated.get("protocol", DEFAULT)))
    problems = [
        Problem(_SAID.format(stated=was, given=given), (*where, *path))
        for path, was, given in _changes(stated, asked)
        if ".".join(path) not in free
    ]
    if problems:
        raise UserError.several(problems)


def free_settings(protocol: str) -> set[str]:
    """Return the dotted settings that are read only when all messages have left."""
    stages = system(protocol).production if protocol in SYSTEMS else ()
    last = max((i for i, s in enumerate(stages) if s.message), default=len(stages))
    counts = {name for stage in stages[: last + 1] for name in stage.params}
    later = {name for stage in stages[last + 1 :] for name in stage.params}
    return later - counts - set(FIXED)


def _changes(
    stated: Mapping[str, Any], asked: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield (path, stated, asked) of every setting that differs."""
    before, after = dict(_leaves(stated)), dict(_leaves(asked))
    for path in sorted(before.keys() | after.keys()):
        was, given = before.get(path, _ABSENT), after.get(path, _ABSENT)
        if was != given:
            yield path, was, given


def _leaves(
    values: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield (path, text): 1, 1.0 and true are equal, and name different releases."""
    for key, value in values.items():
        path = (*above, str(key))
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, path)
        else:
            yield path, in_line(value)
