"""YAML 1.2 documents: values with their places, and messages for syntax errors.

Only true and false are truth values (`yes`, `no`, `on`, `off` are texts), 1e-9 is a
number, 010 is ten, and a date or 1_000 is a text. https://yaml.org/spec/1.2.2/#103
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.cyaml import CParser  # type: ignore[attr-defined]
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.tag import Tag

from curvote.base.errors import KeyPath, Problem, UserError

_CORE: Final = "tag:yaml.org,2002:"
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# Python makes no longer text an integer, nor a larger one a text.
_WHOLE_NUMBER: Final = re.compile(
    r"[-+]?[0-9]{1,4000}|0o[0-7]{1,4000}|0x[0-9a-fA-F]{1,3000}"
)
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
            problem = "an anchor (&name) holds itself (*name); take one out"
            self.add_problem(node, problem)
            return None
        self._count += 1
        if self._count >= _MAX_VALUES:
            if self._count == _MAX_VALUES:
                problem = f"anchors make over {_MAX_VALUES:,} values; name fewer"
                self.add_problem(node, problem)
            return None
        if isinstance(node, ScalarNode):
            return self._scalar_value(node)
        self._open.add(id(node))
        kind = "map" if isinstance(node, MappingNode) else "seq"
        if node.ctag is not UNTYPED and _core_tag(node) != kind:
            problem = f"the tag {node.tag} is not known here; leave it out"
            self.add_problem(node, problem)
        try:
            if isinstance(node, SequenceNode):
                return [self.value_of(item) for item in node.value]
            merged_values: dict[Any, Any] = {}
            own_values: dict[Any, Any] = {}
            for key, value in node.value:
                if _is_merge(key):
                    self._merge_sources(key, value, merged_values)
                elif not isinstance(key, ScalarNode):
                    problem = "a key is a word or a number, no list and no mapping"
                    self.add_problem(key, problem)
                elif (name := self.value_of(key)) in own_values:
                    problem = f"{key.value} stands here a second time; keep one"
                    self.add_problem(key, problem)
                else:
                    own_values[name] = self.value_of(value)
            return merged_values | own_values if merged_values else own_values
        finally:
            self._open.discard(id(node))

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
            problem = f"{node.value!r} is no {node.tag}; leave the tag out"
            self.add_problem(node, problem)
        return value


_TAG_CHECKS: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, float),
}


def _core_tag(node: Node) -> str:
    """Return the name of a tag of the core schema, "" for other tags."""
    tag = str(node.tag)
    return tag.removeprefix(_CORE) if tag.startswith(_CORE) else ""


def plain_scalar(text: str) -> Any:
    """Return the value of a scalar without quotes: null, bool, number or text.

    >>> [plain(text) for text in ("yes", "true", "1e-9", "010", "2026-01-31")]
    ['yes', True, 1e-09, 10, '2026-01-31']
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    if _WHOLE_NUMBER.fullmatch(text):
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


# What is most often wrong, by the words of the parser, and what is said of it. True:
# at the place where it begins; else where the parser met it.
_EXPLANATIONS: Final = (
    (
        r"tab character|expected key|expected '-'|<document start>",
        False,
        (
            "this line does not fit those above it; indent it by spaces (no tab) as its"
            " neighbours are, and close only what is open"
        ),
    ),
    (
        r"expected ':'|mapping values",
        True,
        (
            "name: value is expected here, indented as its neighbours, with a space"
            " after the colon; a text with a colon needs quotes"
        ),
    ),
    (
        r"end of stream",
        True,
        "the quote that is opened here is never closed; close it",
    ),
    (
        r"expected ',' or|node content",
        True,
        (
            "the [ or { that is opened here is not closed; close it, or write a comma"
            " between two entries"
        ),
    ),
    (
        r"cannot start|numeric character|undefined",
        False,
        "a text that begins with a sign such as @, *, & or ! needs quotes",
    ),
)


def explain_yaml_error(error: Exception, text: str) -> tuple[int, str]:
    """Return the line (from 1) of what is no YAML, and what is wrong there."""
    met = getattr(error, "problem_mark", None)
    if met is None:  # a character that no text may hold
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        return line, "a character stands here that is no text; delete it"
    problem = str(getattr(error, "problem", ""))
    lines = [*text.split("\n"), ""]  # it may have met the end
    is_tab = lines[met.line][met.column :].startswith("\t")
    for pattern, at_beginning, words in _EXPLANATIONS:
        if re.search(pattern, "tab character" if is_tab else problem):
            start = getattr(error, "context_mark", None) if at_beginning else None
            return int((start or met).line) + 1, words
    return int(met.line) + 1, f"this is no YAML, column {met.column + 1}: {problem}"


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
    """Return what a text holds; ``called`` is its name before each problem, or ""."""
    place = f"{called}:{{}}: {{}}." if called else "{1}"
    try:
        root = _compose(text)
        parsing = Parsing()
        parsing.value = None if root is None else parsing.value_of(root)
    except (YAMLError, UnicodeEncodeError) as error:
        raise UserError(place.format(*explain_yaml_error(error, text))) from None
    except RecursionError:
        raise UserError(f"{called}: {_TOO_DEEP}." if called else _TOO_DEEP) from None
    if parsing.wrong:
        problems = [place.format(*problem) for problem in sorted(parsing.wrong)]
        if not called:
            raise UserError("; ".join(problems))
        raise UserError.several(map(Problem, problems))
    return parsing.value, LineIndex(root)


def parse_value(text: str) -> Any:
    """Return the value of a YAML text; a UserError says why there is none."""
    return _parse_document.__wrapped__(text, "")[0]  # the caller's own to change


def flat_items(
    values: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and the value of each setting; an empty mapping is a value."""
    for key, value in values.items():
        path = (*above, str(key))
        if isinstance(value, Mapping) and value:
            yield from flat_items(value, path)
        else:
            yield path, value


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
        root = _Composer(text).get_single_node()
    except (YAMLError, UnicodeEncodeError) as error:
        pure = YAML(typ="safe", pure=True)  # it alone reads {a:1} as YAML 1.2 says
        pure.Resolver = _UntypedResolver
        try:
            root = pure.compose(text)
        except YAMLError:
            raise error from None
    return root


class _UntypedResolver(VersionedResolver):
    """A resolver that gives no scalar a type."""

    def resolve(self, *_: object) -> Tag:
        """Return the same tag for all nodes without an explicit tag."""
        return UNTYPED


class _Composer(CParser):  # type: ignore[misc]
    """The composer in C, which gives no scalar a type."""

    def resolve(self, *_: object) -> Tag:
        """Return the same tag for all nodes without an explicit tag."""
        return UNTYPED

    def descend_resolver(self, *_: object) -> None:
        """Keep no path: no type depends on one."""

    def ascend_resolver(self) -> None:
        """Keep no path."""
