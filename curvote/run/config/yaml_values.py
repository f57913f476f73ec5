"""The values of YAML nodes by the core schema of YAML 1.2, each made just once.

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
_MOST: Final = 2**20  # values of one document: anchors of anchors multiply
# The tag of every node to which the file gives none: its kind is told here, by `plain`.
UNTOLD: Final = Tag(suffix="")


@dataclass
class Made:
    """The value of a document, and (line, what is wrong) wherever it has none."""

    value: Any = None
    wrong: list[tuple[int, str]] = field(default_factory=list)
    _open: set[int] = field(default_factory=set)
    _count: int = 0

    def refuse(self, node: Node, said: str) -> None:
        """Note what is wrong at a node."""
        self.wrong.append((int(node.start_mark.line) + 1, said))

    def of(self, node: Node) -> Any:
        """Return the value of a node; an anchor that is named twice is made twice."""
        if id(node) in self._open:
            self.refuse(node, "an anchor (&name) holds itself (*name); take one out")
            return None
        self._count += 1
        if self._count >= _MOST:
            if self._count == _MOST:
                self.refuse(node, f"anchors make over {_MOST:,} values; name fewer")
            return None
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        self._open.add(id(node))
        self._check_tag(node, "map" if isinstance(node, MappingNode) else "seq")
        try:
            if isinstance(node, SequenceNode):
                return [self.of(item) for item in node.value]
            return self._mapping(node)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: Node) -> dict[Any, Any]:
        """Return own keys over those of `<<`, of which the first mapping counts."""
        found: dict[Any, Any] = {}
        own: dict[Any, Any] = {}
        for key, value in node.value:
            if _is_merge(key):
                self._merge(key, value, found)
            elif not isinstance(key, ScalarNode):
                self.refuse(key, "a key is a word or a number, no list and no mapping")
            elif (name := self.of(key)) in own:
                self.refuse(key, f"{key.value} stands here a second time; keep one")
            else:
                own[name] = self.of(value)
        return found | own if found else own

    def _merge(self, key: Node, value: Node, found: dict[Any, Any]) -> None:
        for one in _sources(value):
            if not isinstance(one, MappingNode):
                self.refuse(key, "<< takes a mapping by its anchor, such as <<: *name")
                return
            for name, inner in (self.of(one) or {}).items():
                found.setdefault(name, inner)

    def _scalar(self, node: ScalarNode) -> Any:
        if node.ctag is UNTOLD:
            return node.value if node.style else plain(node.value)
        kind = _known(node)
        if kind == "str":
            return node.value
        made = plain(node.value)
        if kind not in _KINDS or not _KINDS[kind](made):
            self.refuse(node, f"{node.value!r} is no {node.tag}; leave the tag out")
        return made

    def _check_tag(self, node: Node, kind: str) -> None:
        if node.ctag is not UNTOLD and _known(node) != kind:
            self.refuse(node, f"the tag {node.tag} is not known here; leave it out")


_KINDS: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda made: made is None,
    "bool": lambda made: isinstance(made, bool),
    "int": lambda made: isinstance(made, int) and not isinstance(made, bool),
    "float": lambda made: isinstance(made, float),
}


def _known(node: Node) -> str:
    """Return the name of a tag of the core schema, nothing for another one."""
    tag = str(node.tag)
    return tag.removeprefix(_CORE) if tag.startswith(_CORE) else ""


def values(root: Node | None) -> Made:
    """Return the value of a document's nodes, with all that is wrong in it."""
    made = Made()
    made.value = made.of(root) if root is not None else None
    return made


def plain(text: str) -> Any:
    """Return what a scalar without quotes is: nothing, a truth value, a number, a text.

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


def merged(node: Node) -> Iterator[tuple[Node, Node]]:
    """Yield the keys and values of a mapping: its own, then those that `<<` names."""
    yield from (pair for pair in node.value if not _is_merge(pair[0]))
    for key, value in node.value:
        if _is_merge(key):
            for one in _sources(value):
                yield from merged(one)


def _is_merge(key: Node) -> bool:
    return isinstance(key, ScalarNode) and key.value == _MERGE and not key.style


def _sources(value: Node) -> list[Node]:
    return value.value if isinstance(value, SequenceNode) else [value]
