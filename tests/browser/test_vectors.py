"""The published vectors hold, here and in the browser's client (docs/envelope.md)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.client.table import OwnerRecord
from curvote.mechanisms.laplace import Laplace
from curvote.messages.answer import (
    answer_task,
    check_invitation,
    client_inputs,
    validate_task,
)
from curvote.messages.message import parse_message
from curvote.wire import signing
from curvote.wire.envelope import Invitation, is_genuine, read_envelope, seal_message
from tests.browser.script import needs_node, run
from tests.vectors.envelope import FILE, Told, constants_vector, split_vector

VECTORS: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
CLOSE = 1e-12

ALL = """
const { vector } = given, { invitation } = vector, words = tape(vector.words);
const signed = await opened(vector.signed_task), { task } = signed;
admit(task);
invited(invitation, signed);
const place = task.classes.indexOf(vector.class);
const told = encoded(task.encoding, vector.curve);
const sent = message(task, invitation.about, vector.curve, [place], words);
return { ...told, sent, left: words.left.length, digest: signed.digest,
  fingerprint: signed.fingerprint, envelope: await envelope(invitation, sent),
  sealed: await sealed(invitation, vector.content),
  name: await fileName(invitation.key) };
"""


@pytest.mark.parametrize("asks", ["report", "vote"])
def test_the_published_message_follows_from_its_words(asks: str) -> None:
    """Task, representation, noise and envelope, as the reference makes them."""
    vector = VECTORS[asks]
    found = signing.open_signed(vector["signed_task"].encode())
    assert found.fingerprint == VECTORS["fingerprint"]
    task: Any = validate_task(found.document["task"])
    invitation = Invitation.from_json(vector["invitation"])
    check_invitation(task, invitation)
    given = OwnerRecord(np.array(vector["curve"]), task.classes.index(vector["class"]))
    told = client_inputs(task, given, invitation.about)
    assert np.allclose(told.coefficients[0], vector["coefficients"], rtol=CLOSE)
    assert np.allclose(told.z[0], vector["z"], rtol=CLOSE)
    words = Told(vector["words"])
    assert answer_task(task, given, invitation.about, words) == vector["message"]
    line = seal_message(invitation, vector["message"])
    assert line.decode() == vector["envelope"]
    assert is_genuine(read_envelope(line), invitation.key)
    assert (
        parse_message(task, invitation.about, read_envelope(line).payload)
        == vector["message"]
    )
    assert invitation.file_name == vector["file_name"]


def test_the_published_integers_are_those_of_the_samplers() -> None:
    """Shares of a budget, and what the noise is drawn with."""
    for vector in VECTORS["shares"]:
        assert split_vector(vector["epsilon"], vector["d"]) == vector
    for vector in VECTORS["constants"]:
        assert constants_vector(vector["epsilon"]) == vector
    for vector in VECTORS["draws"]:
        drawn = Laplace(epsilon=vector["epsilon"]).randomize(
            vector["values"], Told(vector["words"])
        )
        assert drawn.tolist() == vector["noised"]


@needs_node
@pytest.mark.parametrize("asks", ["report", "vote"])
def test_the_browsers_client_makes_the_published_envelope(tmp_path, asks):
    """The same bytes from the same words; z as close as 1e-12."""
    vector = VECTORS[asks]
    told = run(tmp_path, ALL, {"vector": vector})
    assert told["digest"] == vector["digest"]
    assert told["fingerprint"] == VECTORS["fingerprint"]
    scale = np.abs(vector["coefficients"]).max()
    assert np.allclose(told["coefficients"], vector["coefficients"], atol=CLOSE * scale)
    assert np.allclose(told["z"], vector["z"], rtol=CLOSE)
    assert told["sent"] == vector["message"]
    assert told["left"] == 0
    assert told["envelope"] == told["sealed"] == vector["envelope"]
    assert told["name"] == vector["file_name"]


@needs_node
def test_the_browsers_client_has_the_published_integers(tmp_path: Path) -> None:
    """Shares, thresholds and draws, to the last bit."""
    code = """
    const { shares: parts, constants, draws } = given;
    return {
      shares: parts.map(({ epsilon, d }) => ({ epsilon, d,
        ...shares({ epsilon, label_share: "equal", encoding: { size: d } }) })),
      constants: constants.map(({ epsilon }) => ({ epsilon, ...integers(epsilon),
        threshold: threshold(epsilon).toString(16) })),
      draws: draws.map(({ values, epsilon, words }) => {
        const all = tape(words), noised = laplace(values, epsilon, all);
        return { noised, left: all.left.length };
      }),
    };
    """
    told = run(tmp_path, code, VECTORS)
    assert told["shares"] == VECTORS["shares"]
    integers = [
        {k: v if k in {"epsilon", "threshold"} else int(v) for k, v in each.items()}
        for each in told["constants"]
    ]
    assert integers == VECTORS["constants"]
    wanted = [{"noised": each["noised"], "left": 0} for each in VECTORS["draws"]]
    assert told["draws"] == wanted
