"""The words of the glossary: read from what `curvote explain` prints.

`python -m docs.making.glossary` writes the part of the page between its two marks;
tests/client/test_explain.py compares it.
"""

from __future__ import annotations

from pathlib import Path

from curvote.cli.commands.explain import KINDS, explained_texts

PAGE = Path(__file__).parents[1] / "glossary.md"
MARKS = "<!-- words: from here -->\n", "<!-- words: to here -->\n"


def text(page: str) -> str:
    """Return the page with its words, protocols, mechanisms and learners anew."""
    texts = explained_texts()
    groups = [*texts["glossary"].items()]
    groups += [(f"{kind[0].upper()}{kind[1:]}", texts[kind]) for kind in KINDS]
    parts = [
        f"### {title}\n\n"
        + "\n".join(f"- **{word}**: {meaning}" for word, meaning in words.items())
        for title, words in groups
    ]
    before, after = page.partition(MARKS[0])[0], page.partition(MARKS[1])[2]
    made = "\n\n".join(parts)
    return f"{before}{MARKS[0]}\n{made}\n\n{MARKS[1]}{after}"


if __name__ == "__main__":
    PAGE.write_text(text(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
