"""Both programs that check certificates, the stamp of the page, and a signer."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from curvote.report.certificate import verify
from curvote.report.certificate.document import PURPOSE, sign_certificate
from tests.browser.script import part, stamp
from tests.house import ROOT

FOLDER: Final = ROOT / "curvote/report/certificate"
PAGE: Final = FOLDER / "verify.html"
PROGRAM: Final = FOLDER / "verify.py"
needs_node: Final = pytest.mark.skipif(
    not shutil.which("node"), reason="SKIPPED: no node here, the page's code is not run"
)
_MAIN: Final = """
(async (given) => {
  if (given.own) crypto.subtle.importKey = async () => { throw Error("old browser"); };
  const found = [];
  for (const text of given.texts) found.push(await verdict(text, given.signer));
  console.log(JSON.stringify(found));
})(JSON.parse(require("node:fs").readFileSync(0)));
"""


def by_python(texts: Sequence[str], signer: str | None = None) -> list[str]:
    """Return the first line of what verify.py says of each text; else it must fail."""
    lines = []
    for text in texts:
        try:
            lines.append(verify.check(text.encode("latin1"), signer)[0])
        except verify.RefusedError as error:
            lines.append(f"refused: {error}")
    return lines


def by_page(
    folder: Path, texts: Sequence[str], signer: str | None = None, *, own: bool = False
) -> list[str]:
    """Return the same of the page's code; with ``own`` its own Ed25519."""
    file = folder / "verify.js"
    file.write_text(part("script", PAGE) + _MAIN, encoding="utf-8")
    given = {"texts": list(texts), "signer": signer, "own": own}
    done = subprocess.run(
        ["node", str(file)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert not done.returncode, done.stderr
    found = json.loads(done.stdout)
    for one in found:
        assert "mistake" not in one["lines"][0], one["lines"]
        assert one["holds"] == one["lines"][0].startswith("intact")
    return [one["lines"][0] for one in found]


class Signer:
    """A key of its own, and certificates signed by it."""

    def __init__(self, seed: int = 1) -> None:
        self.key = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        self.public = self.key.public_key().public_bytes_raw()
        self.fingerprint = hashlib.sha256(self.public).hexdigest()

    def sign_octets(self, purpose: str, octets: bytes) -> tuple[str, str]:
        """Sign as the project's key does."""
        assert purpose == PURPOSE
        signature = self.key.sign(f"{purpose}\n".encode() + octets)
        return self.public.hex(), signature.hex()

    def text(self, certificate: dict[str, Any]) -> str:
        """Return a certificate's file."""
        return sign_certificate(certificate, self.sign_octets)


if __name__ == "__main__":
    stamp(PAGE)
