"""The browser's page for one intake and one language, written from `browser.html`.

An address goes into the page's rules, as the only one that it may connect to; words go
into its table, which is shown as plain text. Its script stays the same, byte for byte,
so that one hash says which code all these pages run.
"""

import json
import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Final

from curvote.base.errors import UserError, did_you_mean
from curvote.client.sending import service_address

_TABLE: Final = re.compile(r'(?<="application/json">\n)[^<]*(?=\n</script>)')
# Nothing that ends or widens a rule; no host of IPv6, which such rules cannot name.
_ADDRESS: Final = re.compile(r"https?://[a-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._-]+)*")


def browser_page(send: str | None = None, words: Path | None = None) -> bytes:
    """Return the page that posts to the intake at ``send``, in the words of a file.

    Without either it is the packaged file, byte for byte. UserError: no address that a
    browser's rule can name, or a file that is no table of the page's words.
    """
    page = (files("curvote.client") / "browser.html").read_text("utf-8")
    if send is not None:
        service_address(send)
        if not _ADDRESS.fullmatch(base := send.rstrip("/")):
            raise UserError(
                f"{send!r} is no address that the page's rules can name: write it as"
                " https://host or https://host:port/path, in small ASCII letters."
            )
        rule = f"; connect-src {base}/v1/envelopes; base-uri"
        page = page.replace("; base-uri", rule, 1)
    if words is not None:
        (table,) = _TABLE.findall(page)
        english = json.loads(table)
        text = json.dumps(english | _translation(words, english), indent=0)
        # Nothing in it ends the table, whatever the words are.
        page = _TABLE.sub(lambda _: text.replace("<", "\\u003c"), page)
    return page.encode()


def _translation(file: Path, english: dict[str, str]) -> dict[str, str]:
    """Return the words in a TOML or JSON file, keys and placeholders judged."""
    try:
        data = file.read_text("utf-8")
        table = tomllib.loads(data) if file.suffix == ".toml" else json.loads(data)
        if not isinstance(table, dict):
            raise ValueError("it names no text by a key")
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{file} is no table of words: {error}.") from None
    for key, text in table.items():
        if key not in english:
            raise UserError(
                f"{file}: the page has no {key!r}.{did_you_mean(key, english)}"
            )
        named = {*re.findall(r"\{\w+\}", english[key])}
        if not isinstance(text, str) or {*re.findall(r"\{\w+\}", text)} != named:
            raise UserError(
                f"{file}: {key!r} must be a text with"
                f" {', '.join(sorted(named)) or 'no {...}'}, like {english[key]!r}."
            )
    return table
