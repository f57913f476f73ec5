"""YAML 1.2 documents with places: values, and the line of each key path."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.cyaml import CParser  # type: ignore[attr-defined]
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.tag import Tag

from curvote.errors import KeyPath, Problem, UserError
from curvote.run.config.yaml_values import UNTYPED, Parsing, merged_items, parse_nodes
from curvote.run.config.yaml_words import explain_yaml_error

_TOO_DEEP = "lists and mappings stand in one another too often; no setting needs that"


class LineIndex:
    """The line of each key of a document, looked up only for errors."""

    def __init__(self, root: Node | None) -> None:
        self._root = root

    def __contains__(self, where: KeyPath) -> bool:
        return len(list(self._lines_along(where))) == len(where)

    def line(self, where: KeyPath) -> int | None:
        """Return the line of the longest part of ``where`` that stands in the file."""
        return next(reversed(list(self._lines_along(where))), None)

    def _lines_along(self, where: KeyPath) -> Iterator[int]:
        """Yield the line of each part of a key path, as far as it exists."""
        node = self._root
        for part in where:
            at, node = _find_child(node, part)
            if at is None:
                return
            yield int(at.start_mark.line) + 1


def _find_child(node: Node | None, part: str | int) -> tuple[Node | None, Node | None]:
    """Return the key node and the value node named ``part``; else None twice."""
    if isinstance(node, SequenceNode) and isinstance(part, int):
        items = node.value[part : part + 1]
        return (items[0], items[0]) if items else (None, None)
    if isinstance(node, MappingNode):
        for key, value in merged_items(node):
            if key.value == str(part):
                return key, value
    return None, None


def load_document(path: Path, called: str) -> tuple[Any, LineIndex]:
    """Return the document's values and its line index, for reading only.

    A key that stands twice in one mapping is an error too: one of them would silently
    be kept. A text that was parsed before is not parsed again.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path} is no text in UTF-8; save it as such.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error}.") from None
    return _parse_document(text, called)


@lru_cache(maxsize=8)
def _parse_document(text: str, called: str) -> tuple[Any, LineIndex]:
    try:
        root = _compose(text)
        parsing = parse_nodes(root)
    except YAMLError as error:
        line, problem = explain_yaml_error(error, text)
        raise UserError(f"{called}:{line}: {problem}.") from None
    except RecursionError:
        raise UserError(f"{called}: {_TOO_DEEP}.") from None
    _refuse_invalid(parsing, called)
    return parsing.value, LineIndex(root)


def _refuse_invalid(parsing: Parsing, called: str) -> None:
    if parsing.wrong:
        raise UserError.several(
            Problem(f"{called}:{line}: {problem}.")
            for line, problem in sorted(parsing.wrong)
        )


def parse_value(text: str) -> Any:
    """Return the value of a YAML text; a UserError says why there is none."""
    try:
        parsing = parse_nodes(_compose(text))
    except YAMLError as error:
        raise UserError(explain_yaml_error(error, text)[1]) from None
    except RecursionError:
        raise UserError(_TOO_DEEP) from None
    if parsing.wrong:
        raise UserError("; ".join(problem for _, problem in parsing.wrong))
    return parsing.value


def as_one_line(value: Any) -> str:
    """Return a value in one line, as pipelines.yaml and ``--set`` write it."""
    flow = YAML(typ="safe", pure=True)
    flow.default_flow_style = True
    flow.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    flow.width = 10**6
    stream = StringIO()
    flow.dump(value, stream)
    return stream.getvalue().removesuffix("...\n").strip()


def as_yaml(values: Any, *, brief: bool = False) -> str:
    """Return values as YAML with a line for each; `parsed` reads them back.

    ``brief`` writes lists and mappings that hold no others on one line: [1, 2].
    """
    block = YAML(typ="safe", pure=True)
    block.default_flow_style = None if brief else False
    block.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    stream = StringIO()
    block.dump(values, stream)
    return stream.getvalue()


def _compose(text: str) -> Node | None:
    """Return the document's node tree; plain scalars have no type yet."""
    root: Node | None
    try:
        root = _FastComposer(text).get_single_node()
    except (YAMLError, UnicodeEncodeError):  # in Python: it says what was expected
        slow = YAML(typ="safe", pure=True)
        slow.Resolver = _UntypedResolver
        root = slow.compose(text)
    return root


class _UntypedResolver(VersionedResolver):
    """A resolver that gives no scalar a type."""

    def resolve(self, *_: object) -> Tag:
        """Return the same tag for all nodes without an explicit tag."""
        return UNTYPED


class _FastComposer(CParser):  # type: ignore[misc]
    """The composer in C, many times as fast as the one in Python."""

    def resolve(self, *_: object) -> Tag:
        """Return the same tag for all nodes without an explicit tag."""
        return UNTYPED

    def descend_resolver(self, *_: object) -> None:
        """Keep no path: no type depends on one."""

    def ascend_resolver(self) -> None:
        """Keep no path."""
