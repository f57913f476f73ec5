"""YAML 1.2 documents: values with their places, and messages for syntax errors.

Only true and false are truth values (`yes`, `no`, `on`, `off` are texts), 1e-9 is a
number, 010 is ten, and a date or 1_000 is a text. https://yaml.org/spec/1.2.2/#103
"""

import re
from collections.abc import Callable, Iterator
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


# What is said of a message of the parser, by how it begins; {0} is what it found.
_EXPLANATIONS: Final = (
    (r"found character '\\t'", "a tab stands here; write spaces, two for each level"),
    (r"found character '(.)'", "a text cannot begin with {0}; put it in quotes"),
    (
        r"found undefined alias '(.*)'",
        "*{0} needs an anchor &{0} further up; a text that begins with * needs quotes",
    ),
    (
        r"expected alphabetic or numeric character",
        "& and * begin the name of an anchor; a text that begins so needs quotes",
    ),
    (
        r"found unknown escape character '(.)'",
        r"\{0} means nothing in double quotes; use single quotes",
    ),
    (
        r"found unexpected end of stream",
        "the quote that is opened here is never closed; close it",
    ),
    (r"but found another document", "a second document begins (---); take it out"),
    (
        r"sequence entries are not allowed",
        "a list (- ) begins on a line of its own; or write [a, b]",
    ),
    (r"expected '<document start>'", "take out what begins with % at the top"),
    (r"expected chomping", "a text after | or > begins on the next line"),
    (r"expected URI|found undefined tag", "a text that begins with ! needs quotes"),
)
_CLOSING: Final = re.compile(r"expected ',' or '(.)'")
_TIGHT: Final = re.compile(r"\s*(?:- )?([\w.-]+):([^\s/].*)")


def explain_yaml_error(error: Any, text: str) -> tuple[int, str]:
    """Return the line (from 1) of a ``YAMLError``, and what is wrong there."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:  # a character that no text may hold
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        return line, "a character stands here that is no text; delete it"
    lines = text.split("\n")
    for explain in (_explain_brackets, _explain_indent, _explain_colon):
        located = explain(error, lines)
        if located:
            return located
    problem = str(getattr(error, "problem", ""))
    quoted = "quoted scalar" in str(getattr(error, "context", ""))
    at = int((error.context_mark if quoted else mark).line) + 1
    for pattern, explanation in _EXPLANATIONS:
        match = re.match(pattern, problem)
        if match:
            return at, explanation.format(*match.groups())
    return at, f"this is no YAML: {problem}"


_Located = tuple[int, str] | None


def _explain_brackets(error: Any, lines: list[str]) -> _Located:
    """Explain a bracket that is never closed, or never opened."""
    match = _CLOSING.match(str(error.problem))
    if match:
        opened = "[" if match[1] == "]" else "{"
        problem = (
            f"the {opened} that is opened here is not closed before line"
            f" {error.problem_mark.line + 1} goes on; write {match[1]}, or a comma"
            " between two entries"
        )
        return int(error.context_mark.line) + 1, problem
    match_closing = re.search(r"found '([]}])'", str(error.problem))
    if match_closing:
        problem = f"{match_closing[1]} closes nothing; take it out, or open it before"
        return int(error.problem_mark.line) + 1, problem
    if "'<stream end>'" in str(error.problem):
        return len("\n".join(lines).rstrip().split("\n")), "a { or [ is never closed"
    return None


def _explain_indent(error: Any, lines: list[str]) -> _Located:
    """Explain a line whose indentation fits no line above it."""
    at = int(error.problem_mark.line)
    if "expected <block end>" in error.problem and "scalar" not in error.problem:
        return _explain_spaces(lines, at)
    before = _previous_content(lines, at)
    if before is None or "mapping values" not in error.problem:
        return None
    deeper = _indent_width(lines[at]) > _indent_width(lines[before])
    tight = _TIGHT.match(lines[before])
    return _explain_spaces(lines, at) if deeper and not tight else None


def _explain_spaces(lines: list[str], at: int) -> tuple[int, str]:
    """Explain how many spaces would fit the lines above."""
    indent = _indent_width(lines[at])
    above = sorted({_indent_width(line) for line in lines[:at] if line.strip()})
    if indent in above:
        problem = "this line does not belong to the block above it: a list has - before"
        return at + 1, f"{problem} each entry, a mapping has none"
    below, over = [n for n in above if n < indent], [n for n in above if n > indent]
    right = " or ".join(map(str, below[-1:] + over[:1]))
    spaces = f"{indent} space{'s' * (indent != 1)}"
    problem = f"this line begins after {spaces}, as no line above it; write {right}"
    return at + 1, problem


def _explain_colon(error: Any, lines: list[str]) -> _Located:
    """Explain a missing colon or space after it, or a second colon."""
    if "expected ':'" not in error.problem and "mapping values" not in error.problem:
        return None
    at = int((error.context_mark or error.problem_mark).line)
    for place in (at, _previous_content(lines, at)):
        if place is None:
            continue
        tight = _TIGHT.fullmatch(lines[place])
        if tight:
            problem = f"write a space after the colon: {tight[1]}: {tight[2].strip()}"
            return place + 1, problem
    if lines[at].count(": ") > 1:
        return at + 1, "a second colon; put the text that holds it in quotes"
    without = at if ":" not in lines[at] else _previous_content(lines, at)
    place = at if without is None else without
    return place + 1, "there is no colon on this line; write it as name: value"


def _previous_content(lines: list[str], at: int) -> int | None:
    """Return the index of the last line with content before ``at``."""
    for place in range(at - 1, -1, -1):
        line = lines[place].strip()
        if line and not line.startswith("#"):
            return place
    return None


def _indent_width(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


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
    if parsing.wrong:
        messages = (f"{called}:{line}: {text}." for line, text in sorted(parsing.wrong))
        raise UserError.several(map(Problem, messages))
    return parsing.value, LineIndex(root)


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
