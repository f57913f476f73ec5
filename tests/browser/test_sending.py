"""The page that posts: each answer of an intake in words, one address, any language."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from curvote.base.errors import UserError
from curvote.cli.commands.client import app
from curvote.client.page import browser_page
from tests.browser.script import PAGE, needs_node, part, run, words
from tests.house import ROOT

ADDRESS: Final = "https://intake.example:8443/a"


@needs_node
def test_every_answer_of_an_intake_has_words(tmp_path: Path) -> None:
    """Tried again while it is busy, after its wait; what is final is said at once."""
    code = """
    const told = [];
    for (const answers of given) {
      const waited = [], asked = [];
      globalThis.fetch = async (address, how) => {
        asked.push([address, how.credentials, how.redirect]);
        const [status, body, after] = answers.shift() ?? [0];
        if (!status) throw Error("no network");
        const headers = after ? { "Retry-After": after } : {};
        return new Response(body, { status, headers });
      };
      const [key, values] = await post("a", "x", (s) => waited.push(s));
      told.push([say(key, values), waited.length, waited[0] ?? 0, asked[0]]);
    }
    return told;
    """
    odd = '{"type": "urn:curvote:intake:constructor", "title": "odd"}'
    closed = '{"type": "urn:curvote:intake:round-closed", "title": "round closed"}'
    cases: list[tuple[list[list[Any]], str, int]] = [
        ([[201, "{}"]], "Accepted:", 0),
        ([[200, "{}"]], "Accepted before", 0),
        ([[503, "", "3"], [429, ""], [201, ""]], "Accepted:", 2),
        ([[410, closed]], "you came too late", 0),
        ([[400, odd]], "odd", 0),
        ([[404, "<b>"]], "404", 0),
        ([[500, ""]] * 5, "takes nothing now", 4),
        ([], "cannot be reached", 4),
    ]
    told = run(tmp_path, code, [answers for answers, *_ in cases])
    for (_, wanted, waits), each in zip(cases, told, strict=True):
        text, count, first, asked = each
        assert wanted in text
        assert count == waits
        assert asked == ["a", "omit", "error"]
        assert first == 3 if waits == 2 else first <= 1


def test_the_page_is_eachone_address_and_no_other(tmp_path: Path) -> None:
    """It stands in the rules once; the script and all else stay as they are."""
    page, file = browser_page(ADDRESS).decode(), tmp_path / "page.html"
    rule = f"; connect-src {ADDRESS}/v1/envelopes; base-uri"
    assert page.replace(rule, "; base-uri") == PAGE.read_text("utf-8")
    CliRunner().invoke(app, ["page", "--out", str(file), "--send", f"{ADDRESS}/"])
    assert file.read_text("utf-8") == page


@pytest.mark.parametrize(
    "address",
    ["http://far.example", "https://*", "https://a;script-src *", "https://a'b", "ftp://a",
     "https://a/?q", "https://a/#f", "https://u@a", "https://[::1]", "https://a b", "https://a\"",
     "https://A.example", "", "https://a/%2e"],
)  # fmt: skip
def test_an_address_that_would_open_more_is_refused(address: str) -> None:
    """Whatever could end the rule, or name more than one place."""
    with pytest.raises(UserError):
        browser_page(address)


def test_each_word_of_the_page_is_one_of_its_table() -> None:
    """And no key is left that nothing shows."""
    page, script = PAGE.read_text("utf-8"), part("script")
    used = {*re.findall(r'\b(?:say|choice|verdict|number)\("([^"]+)"', script)}
    used |= {*re.findall(r'(?<![.\w])refuse\(.*"([^"]+)"(?:, \{.*\})?\);', script)}
    for keys in re.findall('data-words="([^"]+)"', page):
        used |= {*keys.split("|")}
    assert used <= {*words()}
    plain = {key for key in words() if not key.startswith(("kind ", "intake "))}
    assert {key for key in plain - used if f'"{key}"' not in script} == set()


def test_words_are_text_and_all_known(tmp_path: Path) -> None:
    """Markup stays what it is; unknown keys and lost numbers are refused in words."""
    toml, bad = tmp_path / "w.toml", "</script><script>alert(1)</script>"
    toml.write_text(f'title = "{bad}"\n"language" = "de"\n', "utf-8")
    page = browser_page(words=toml).decode()
    assert bad not in page
    assert page.count("<script") == 2
    start = page.index('"application/json">') + 19
    table = json.loads(page[start : page.index("</script>")])
    assert table == words() | {"title": bad, "language": "de"}
    assert "Eine Frage" in browser_page(words=ROOT / "docs/page-german.toml").decode()
    for text, why in [
        ('{"titel": "x"}', "Did you mean 'title'"),
        ('{"budget": "Alles gut."}', "{epsilon}"),
        ('{"title": "{x}"}', "no {...}"),
        ('{"title": 3}', "must be a text"),
        ("[]", "no table"),
        ("{", "no table"),
    ]:
        (tmp_path / "w.json").write_text(text, "utf-8")
        with pytest.raises(UserError) as told:
            browser_page(words=tmp_path / "w.json")
        assert why in str(told.value)
