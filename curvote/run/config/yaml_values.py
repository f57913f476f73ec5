"""YAML 1.2 documents: values with their places, and messages for syntax errors.

Only true and false are truth values (`yes`, `no`, `on`, `off` are texts), 1e-9 is a
number, 010 is ten, and a date or 1_000 is a text. https://yaml.org/spec/1.2.2/#103
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.tag import Tag

_CORE: Final = "tag:yaml.org,2002:"
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# Python makes no longer text an integer, nor a larger one a text.
_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,4000}|0o[0-7]{1,4000}|0x[0-9a-fA-F]{1,3000}")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NUMERIC: Final = frozenset("+-.0123456789")
_BASES: Final = {"0o": 8, "0x": 16}
_MERGE: Final = "<<"
_MAX_VALUES: Final = 2**20  # values of one document: anchors of anchors multiply
# The tag of every node to which the file gives none: its kind is told here, by
# `plain_scalar`.
UNTYPED: Final = Tag(suffix="")


@dataclass
class Parsing:
    """The value of a document under construction, with (line, problem) pairs."""

    value: Any = None
    wrong: list[tuple[int, str]] = field(default_factory=list)
    _open: set[int] = field(default_factory=set)
    _count: int = 0

    def add_problem(self, node: Node, problem: str) -> None:
        """Note a problem at a node."""
        self.wrong.append((int(node.start_mark.line) + 1, problem))

    def value_of(self, node: Node) -> Any:
        """Return the value of a node; an alias is expanded at each use."""
        if id(node) in self._open:
            self.add_problem(
                node, "an anchor (&name) holds itself (*name); take one out"
            )
            return None
        self._count += 1
        if self._count >= _MAX_VALUES:
            if self._count == _MAX_VALUES:
                self.add_problem(
                    node, f"anchors make over {_MAX_VALUES:,} values; name fewer"
                )
            return None
        if isinstance(node, ScalarNode):
            return self._scalar_value(node)
        self._open.add(id(node))
        self._check_tag(node, "map" if isinstance(node, MappingNode) else "seq")
        try:
            if isinstance(node, SequenceNode):
                return [self.value_of(item) for item in node.value]
            return self._mapping_value(node)
        finally:
            self._open.discard(id(node))

    def _mapping_value(self, node: Node) -> dict[Any, Any]:
        """Return the keys of a mapping over those that `<<` merges into it."""
        merged_values: dict[Any, Any] = {}
        own_values: dict[Any, Any] = {}
        for key, value in node.value:
            if _is_merge(key):
                self._merge_sources(key, value, merged_values)
            elif not isinstance(key, ScalarNode):
                self.add_problem(
                    key, "a key is a word or a number, no list and no mapping"
                )
            elif (name := self.value_of(key)) in own_values:
                self.add_problem(
                    key, f"{key.value} stands here a second time; keep one"
                )
            else:
                own_values[name] = self.value_of(value)
        return merged_values | own_values if merged_values else own_values

    def _merge_sources(
        self, key: Node, value: Node, merged_values: dict[Any, Any]
    ) -> None:
        for source in _merge_mappings(value):
            if not isinstance(source, MappingNode):
                self.add_problem(
                    key, "<< takes a mapping by its anchor, such as <<: *name"
                )
                return
            for name, inner in (self.value_of(source) or {}).items():
                merged_values.setdefault(name, inner)

    def _scalar_value(self, node: ScalarNode) -> Any:
        if node.ctag is UNTYPED:
            return node.value if node.style else plain_scalar(node.value)
        kind = _core_tag(node)
        if kind == "str":
            return node.value
        value = plain_scalar(node.value)
        if kind not in _TAG_CHECKS or not _TAG_CHECKS[kind](value):
            self.add_problem(
                node, f"{node.value!r} is no {node.tag}; leave the tag out"
            )
        return value

    def _check_tag(self, node: Node, kind: str) -> None:
        if node.ctag is not UNTYPED and _core_tag(node) != kind:
            self.add_problem(
                node, f"the tag {node.tag} is not known here; leave it out"
            )


_TAG_CHECKS: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda made: made is None,
    "bool": lambda made: isinstance(made, bool),
    "int": lambda made: isinstance(made, int) and not isinstance(made, bool),
    "float": lambda made: isinstance(made, float),
}


def _core_tag(node: Node) -> str:
    """Return the name of a tag of the core schema, "" for other tags."""
    tag = str(node.tag)
    return tag.removeprefix(_CORE) if tag.startswith(_CORE) else ""


def parse_nodes(root: Node | None) -> Parsing:
    """Return the parsing of a document's nodes: value and problems."""
    parsing = Parsing()
    parsing.value = parsing.value_of(root) if root is not None else None
    return parsing


def plain_scalar(text: str) -> Any:
    """Return the value of a scalar without quotes: null, bool, number or text.

    >>> [plain(text) for text in ("yes", "true", "1e-9", "010", "2026-01-31")]
    ['yes', True, 1e-09, 10, '2026-01-31']
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    if _WHOLE.fullmatch(text):
        return int(text, _BASES.get(text[:2], 10))
    if _FLOAT.fullmatch(text):
        return float(text)
    return float(text.replace(".", "")) if _SPECIAL.fullmatch(text) else text


def merged_items(node: Node) -> Iterator[tuple[Node, Node]]:
    """Yield key and value nodes of a mapping: its own, then the merged ones."""
    yield from (pair for pair in node.value if not _is_merge(pair[0]))
    for key, value in node.value:
        if _is_merge(key):
            for source in _merge_mappings(value):
                yield from merged_items(source)


def _is_merge(key: Node) -> bool:
    return isinstance(key, ScalarNode) and key.value == _MERGE and not key.style


def _merge_mappings(value: Node) -> list[Node]:
    return value.value if isinstance(value, SequenceNode) else [value]
