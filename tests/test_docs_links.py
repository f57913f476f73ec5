"""`make docs` finds what leads nowhere in the pages that it built."""

from pathlib import Path

from docs.making.links import faults

PAGE = """<html><body><h1 id="top">T</h1>
<a href="#top">here</a> <a href="other.html#there">there</a>
<a href="https://example.org">followed by who wants to</a>
<img src="data:image/png;base64,AA"> {more}
</body></html>"""


def _said(folder: Path, more: str) -> list[str]:
    (folder / "page.html").write_text(PAGE.format(more=more))
    (folder / "other.html").write_text('<p id="there"></p>')
    return list(faults(folder))


def test_what_leads_somewhere_is_fine(tmp_path: Path) -> None:
    """Places of this page and of others, addresses that a reader may follow."""
    assert not _said(tmp_path, "")


def test_every_dead_link_is_named(tmp_path: Path) -> None:
    """With its page: no such file, no such place, and what another host would serve."""
    dead = ["gone.html", "other.html#gone", "#gone"]
    loaded = '<script src="https://example.org/a.js"></script>'
    links = "".join(f'<a href="{each}">x</a>' for each in dead)
    (tmp_path / "a.css").write_text("@import url(//example.org/font.css);")
    found = _said(tmp_path / ".", links + loaded)
    assert [one.split("'")[1] for one in found] == [
        *dead,
        "https://example.org/a.js",
        "//example.org/font.css",
    ]
