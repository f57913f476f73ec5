"""The Python that docs show runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.house import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "about"),
    [
        ("README.md", "TransferKernelClassifier"),
        ("README.md", "private_score"),
        ("docs/transfer.md", "combine"),
    ],
)
def test_an_example_runs_as_it_stands(page: str, about: str) -> None:
    """In a fresh process, with what the page imports and no more."""
    text = (ROOT / page).read_text(encoding="utf-8")
    (example,) = (block for block in BLOCK.findall(text) if about in block)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not done.returncode, done.stderr
    assert done.stdout.strip()
