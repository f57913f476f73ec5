"""The browser client's script, run by node: its functions and nothing of the page."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.house import ROOT

PAGE: Final = ROOT / "curvote/client/browser.html"
needs_node: Final = pytest.mark.skipif(
    not shutil.which("node"), reason="SKIPPED: no node here, the client does not run"
)

# Words that are given, each once; asked for more it fails.
_MAIN: Final = """
const tape = (given) => {
  const left = given.map((word) => BigInt("0x" + word));
  const words = (n) => {
    if (n > left.length) throw Error("more words than there are");
    return left.splice(0, n);
  };
  return Object.assign(words, { left });
};
const shown = (key, value) => typeof value === "bigint" ? String(value) : value;
(async (given) => {
  const found = await (async () => { %s })();
  console.log(JSON.stringify(found, shown));
})(JSON.parse(require("node:fs").readFileSync(0)));
"""


def words() -> dict[str, str]:
    """Return the page's table of words."""
    (table,) = re.findall(
        '"application/json">(.*?)</', PAGE.read_text("utf-8"), re.DOTALL
    )
    return dict(json.loads(table))


def part(name: str, page: Path | None = None) -> str:
    """Return what stands in a page's one ``script`` or ``style`` of its own."""
    text = (page or PAGE).read_text("utf-8")
    (inside,) = re.findall(f"<{name}>(.*?)</{name}>", text, re.DOTALL)
    return str(inside)


def source_hash(name: str, page: Path | None = None) -> str:
    """Return the hash by which a page's rules name a part of it."""
    digest = hashlib.sha256(part(name, page).encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def stamp(page: Path) -> None:
    """Write the hashes of script and style into a page's rules."""
    text = page.read_text("utf-8")
    for name in ("script", "style"):
        own = source_hash(name, page)
        text = re.sub(f"{name}-src '[^']*'", f"{name}-src '{own}'", text)
    page.write_text(text, encoding="utf-8")


def run(folder: Path, code: str, given: Any = None) -> Any:
    """Return what the function body ``code`` returns; it may name what is ``given``."""
    file = folder / "client.js"
    table = f"Object.assign(text, {json.dumps(words())});"
    file.write_text(part("script") + table + _MAIN % code, encoding="utf-8")
    done = subprocess.run(
        ["node", str(file)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def refusal(folder: Path, code: str, given: Any = None) -> str | None:
    """Return the words with which ``code`` refuses, None where it does not."""
    tell = "return [error.message, error instanceof Refusal];"
    caught = f"try {{ {code}; return null; }} catch (error) {{ {tell} }}"
    told = run(folder, caught, given)
    assert told is None or told[1], f"no refusal but a mistake: {told}"
    return None if told is None else str(told[0])


if __name__ == "__main__":
    stamp(PAGE)
