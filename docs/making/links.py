"""Read the built pages: all links lead somewhere, nothing is loaded from elsewhere.

`python docs/making/links.py build/docs` prints what is wrong, and then exits 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

LEADS = {("a", "href"), ("area", "href")}  # whoever follows one asked for it
IN_STYLE = re.compile(r"(?:url\(|@import\s+(?!url))\s*[\"']?(?!data:)([^\"')\s]+)")


class Link(NamedTuple):
    """What an element of a page names."""

    tag: str
    attribute: str
    to: str


class Page(HTMLParser):
    """The targets and the links of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.links: list[Link] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take down what this element is called and where it leads."""
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.targets.add(value or "")
            if name in {"href", "src"}:
                self.links.append(Link(tag, name, value or ""))


@cache
def read(path: Path) -> Page:
    """Read a page once."""
    return Page(path)


def faults(built: Path) -> Iterator[str]:
    """Yield all that is wrong, each with the page on which it stands."""
    for path in sorted(built.rglob("*.html")):
        if "_static" not in path.parts:
            for link in read(path).links:
                yield from _said(_wrong(path, link), path, link.to, built)
    for path in sorted(built.rglob("*.css")):
        for to in IN_STYLE.findall(path.read_text(encoding="utf-8")):
            yield from _said(_wrong(path, Link("css", "url", to)), path, to, built)


def _said(wrong: str, path: Path, to: str, built: Path) -> Iterator[str]:
    if wrong:
        yield f"{path.relative_to(built)}: {to!r} {wrong}"


def _wrong(path: Path, link: Link) -> str:
    parts = urlsplit(link.to)
    if parts.scheme == "data":
        return ""
    if parts.scheme or parts.netloc:
        led = (link.tag, link.attribute) in LEADS
        return "" if led else "is loaded from elsewhere"
    target = path.parent / unquote(parts.path) if parts.path else path
    if not target.is_file():
        return "is no file"
    lost = parts.fragment and target.suffix == ".html"
    lost = lost and unquote(parts.fragment) not in read(target).targets
    return "leads to no such place" if lost else ""


def main() -> None:
    """Check the folder that the command line names."""
    wrong = list(faults(Path(sys.argv[1]).resolve()))
    print(*wrong, f"links of the pages: {len(wrong)} wrong", sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
