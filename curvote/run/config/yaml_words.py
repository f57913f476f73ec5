"""Messages for YAML syntax errors: the line, the mistake, and the correction."""

from __future__ import annotations

import re
from typing import Any, Final

# What is said of a message of the parser, by how it begins; {0} is what it found.
_EXPLANATIONS: Final = (
    (r"found character '\\t'", "a tab stands here; write spaces, two for each level"),
    (
        r"found character '(.)'",
        "a text cannot begin with {0}; put it in quotes",
    ),
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
    deeper = before is not None and _indent_width(lines[at]) > _indent_width(
        lines[before]
    )
    if "mapping values" in error.problem and before is not None and deeper:
        return None if _TIGHT.match(lines[before]) else _explain_spaces(lines, at)
    return None


def _explain_spaces(lines: list[str], at: int) -> tuple[int, str]:
    """Explain how many spaces would fit the lines above."""
    indent = _indent_width(lines[at])
    above = sorted({_indent_width(line) for line in lines[:at] if line.strip()})
    fitting = [n for n in above if n < indent][-1:] + [n for n in above if n > indent][
        :1
    ]
    if indent in above:
        problem = "this line does not belong to the block above it: a list has - before"
        return at + 1, f"{problem} each entry, a mapping has none"
    right = " or ".join(map(str, fitting))
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
    content = (n for n in range(at - 1, -1, -1) if _has_content(lines[n]))
    return next(content, None)


def _has_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _indent_width(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
