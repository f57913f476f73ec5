"""YAML 1.2 with places: values, and the line on which each key path stands."""

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

from curvote.errors import Problem, UserError, Where
from curvote.run.config.yaml_values import UNTOLD, Made, merged, values
from curvote.run.config.yaml_words import in_words

_DEEP = "lists and mappings stand in one another too often; no setting needs that"


class Lines:
    """On which line each key of a document stands, looked up when an error asks."""

    def __init__(self, root: Node | None) -> None:
        self._root = root

    def __contains__(self, where: Where) -> bool:
        return len(list(self._along(where))) == len(where)

    def line(self, where: Where) -> int | None:
        """Return the line of the longest part of ``where`` that stands in the file."""
        return next(reversed(list(self._along(where))), None)

    def _along(self, where: Where) -> Iterator[int]:
        """Yield the line of each part of a key path, until one is not there."""
        node = self._root
        for part in where:
            at, node = _inside(node, part)
            if at is None:
                return
            yield int(at.start_mark.line) + 1


def _inside(node: Node | None, part: str | int) -> tuple[Node | None, Node | None]:
    """Return the key named ``part``, or the item, and what stands there; else None."""
    if isinstance(node, SequenceNode) and isinstance(part, int):
        items = node.value[part : part + 1]
        return (items[0], items[0]) if items else (None, None)
    if isinstance(node, MappingNode):
        for key, value in merged(node):
            if key.value == str(part):
                return key, value
    return None, None


def load(path: Path, called: str) -> tuple[Any, Lines]:
    """Return the document and its lines, for reading only; UserError: it has none.

    A key that stands twice in one mapping is an error too: one of them would silently
    be kept. A text that was parsed before is not parsed again.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path} is no text in UTF-8; save it as such.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error}.") from None
    return _document(text, called)


@lru_cache(maxsize=8)
def _document(text: str, called: str) -> tuple[Any, Lines]:
    try:
        root = _composed(text)
        made = values(root)
    except YAMLError as error:
        line, said = in_words(error, text)
        raise UserError(f"{called}:{line}: {said}.") from None
    except RecursionError:
        raise UserError(f"{called}: {_DEEP}.") from None
    _refuse(made, called)
    return made.value, Lines(root)


def _refuse(made: Made, called: str) -> None:
    if made.wrong:
        raise UserError.several(
            Problem(f"{called}:{line}: {said}.") for line, said in sorted(made.wrong)
        )


def parsed(text: str) -> Any:
    """Return what ``text`` says in YAML; a UserError says why it is none."""
    try:
        made = values(_composed(text))
    except YAMLError as error:
        raise UserError(in_words(error, text)[1]) from None
    except RecursionError:
        raise UserError(_DEEP) from None
    if made.wrong:
        raise UserError("; ".join(said for _, said in made.wrong))
    return made.value


def in_line(value: Any) -> str:
    """Return a value in one line, as pipelines.yaml and ``--set`` write it."""
    flow = YAML(typ="safe", pure=True)
    flow.default_flow_style = True
    flow.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    flow.width = 10**6
    stream = StringIO()
    flow.dump(value, stream)
    return stream.getvalue().removesuffix("...\n").strip()


def as_yaml(values: Any, *, brief: bool = False) -> str:
    """Return values as YAML, a line for each; `parsed` reads the same from it.

    ``brief`` writes lists and mappings that hold no others on one line: [1, 2].
    """
    block = YAML(typ="safe", pure=True)
    block.default_flow_style = None if brief else False
    block.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    stream = StringIO()
    block.dump(values, stream)
    return stream.getvalue()


def _composed(text: str) -> Node | None:
    """Return the document's nodes; plain scalars are left to `yaml_values`."""
    root: Node | None
    try:
        root = _InC(text).get_single_node()
    except (YAMLError, UnicodeEncodeError):  # in Python: it says what was expected
        slow = YAML(typ="safe", pure=True)
        slow.Resolver = _Untold
        root = slow.compose(text)
    return root


class _Untold(VersionedResolver):
    """Gives no scalar a type: those of YAML 1.2 are few and known elsewhere."""

    def resolve(self, *_: object) -> Tag:
        """Return the same tag for all; one that is written down is kept."""
        return UNTOLD


class _InC(CParser):  # type: ignore[misc]
    """The composer in C, many times as fast as the one in Python."""

    def resolve(self, *_: object) -> Tag:
        """Return the same tag for all; one that is written down is kept."""
        return UNTOLD

    def descend_resolver(self, *_: object) -> None:
        """Keep no path: no type depends on one."""

    def ascend_resolver(self) -> None:
        """Keep no path."""
