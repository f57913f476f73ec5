"""Draw docs/browser-client.png: the page of the browser's client, after a report.

    python -m benchmarks.draw_browser_client /usr/bin/chromium

Gives the page the published task, invitation and curve of tests/vectors/envelope.json,
chooses a class, agrees, draws. Needs Chromium; takes some seconds.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.browser import ROOT, browser

PICTURE: Final = ROOT / "docs/browser-client.png"
PAGE: Final = ROOT / "curvote/client/browser.html"
VECTORS: Final = ROOT / "tests/vectors/envelope.json"
CLICKS: Final = (
    "document.querySelectorAll('#answers button')[1].click()",
    "document.getElementById('consent').click()",
    "document.getElementById('draw').click()",
)


def main(chromium: str) -> None:
    """Answer as a person would, and take the picture."""
    vector = json.loads(VECTORS.read_text("utf-8"))["report"]
    texts = {
        "task.json": vector["signed_task"],
        "invitation.json": json.dumps(vector["invitation"]),
        "curve.csv": "\n".join(map(str, vector["curve"])),
    }
    with tempfile.TemporaryDirectory() as name, browser(chromium, 860, 1470) as page:
        folder = Path(name)
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
        downloads = {"behavior": "allow", "downloadPath": name}
        page.ask("Browser.setDownloadBehavior", **downloads)
        page.open(PAGE.as_uri(), seconds=1)
        page.give("#files", *(folder / file for file in texts))
        page.until("!document.getElementById('review').hidden")
        for click in CLICKS:
            page.value(click)
        page.until("document.getElementById('done').textContent")
        page.draw(PICTURE)


if __name__ == "__main__":
    main(sys.argv[1])
