"""Who has read docs/certificate.md can write a certificate of another system."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.certificate import by_hand, checkers
from tests.certificate.mutations import survivors


@pytest.mark.parametrize("write", by_hand.ALL)
@checkers.needs_node
def test_both_programs_accept_it(write: Callable[[], Any], tmp_path: Path) -> None:
    """The page's own, and three more that use every law and every kind of tree."""
    key = Ed25519PrivateKey.generate()
    text = by_hand.signed(write(), key)
    lines = checkers.by_python([text]) + checkers.by_page(tmp_path, [text])
    assert lines[0].startswith("intact, signer unchecked"), lines[0]
    assert lines[0] == lines[1]


@checkers.needs_node
def test_no_mutation_passes(tmp_path: Path) -> None:
    """Of a hundred; `python -m tests.certificate.mutations FILES` makes 1,000."""
    text = json.dumps({"certificate": by_hand.local()})
    assert not survivors(tmp_path, text, 100, random.Random(5))
