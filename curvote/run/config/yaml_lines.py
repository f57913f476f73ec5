"""YAML with line numbers: values, and the line on which each key path stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from curvote.errors import Problem, UserError, Where

Lines = dict[Where, int]
# In C where PyYAML was built with it: nine times as fast.
_FAST = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(path: Path, called: str) -> tuple[Any, Lines]:
    """Return the document and ``{key path: line}``; what does not parse: UserError.

    A key that stands twice in one mapping is an error too: YAML would silently keep
    the last.
    """
    try:
        text = path.read_text(encoding="utf-8")
        node, values = _parsed(text)
    except yaml.reader.ReaderError as error:
        raise UserError(f"{called} is no text: {error.reason}.") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else 1
        raise UserError(f"{called}:{line}: {error.problem}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from None
    lines: Lines = {}
    twice: list[Problem] = []
    if node is not None:
        _walk(node, (), lines, twice, called)
    if twice:
        raise UserError.several(twice)
    return values, lines


def _parsed(text: str) -> tuple[yaml.Node | None, Any]:
    """Return the document with its places, and its values."""
    try:
        return _parsed_by(_FAST, text)
    except yaml.YAMLError:  # in Python: it says where, and what was expected
        return _parsed_by(yaml.SafeLoader, text)


def _parsed_by(kind: type[yaml.SafeLoader], text: str) -> tuple[yaml.Node | None, Any]:
    """Parse twice: making values of places merges what `<<` names into them."""
    return yaml.compose(text, Loader=kind), yaml.load(text, Loader=kind)  # noqa: S506


def _walk(
    node: yaml.Node, where: Where, lines: Lines, twice: list[Problem], name: str
) -> None:
    lines.setdefault(where, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            at = (*where, key.value)
            line = key.start_mark.line + 1
            if at in lines:
                message = f"{name}:{line}: {key.value} stands here a second time."
                twice.append(Problem(message))
            lines[at] = line
            _walk(value, at, lines, twice, name)
    if isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _walk(value, (*where, index), lines, twice, name)


def line_of(lines: Lines, where: Where) -> int | None:
    """Return the line of the longest part of ``where`` that stands in the file."""
    for end in range(len(where), 0, -1):
        if where[:end] in lines:
            return lines[where[:end]]
    return None
