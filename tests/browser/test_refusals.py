"""What the browser's client cannot answer, it refuses: before any record is there."""

import json
from pathlib import Path
from typing import Any

import pytest

from curvote.wire import envelope, signing
from curvote.wire.signing import _task_header
from curvote.wire.strict_json import canonical_json
from tests.browser.script import needs_node, refusal, run
from tests.browser.tasks import TASKS, Server, bent, identity_rows, signed
from tests.vectors.envelope import KEY

pytestmark = needs_node

BENT: list[tuple[str, str, Any, str]] = [
    ("report", "protocol", "mrma_classes", "knows more"),
    ("report", "protocol", "direct", "no such noise"),
    ("report", "asks", "gradient", "knows more"),
    ("report", "format", 3, "knows more"),
    ("report", "encoder", "k_rr", "the task must hold"),
    ("report", "mechanism", "piecewise", "no such noise"),
    ("report", "params", {"delta": 0.1}, "params must hold"),
    ("report", "params", [], "params must hold"),
    ("report", "epsilon", 0, "above 0"),
    ("report", "epsilon", 1001, "at most 1000"),
    ("report", "epsilon", "1", "above 0"),
    ("report", "epsilon", 1e-6, "too little epsilon"),
    ("report", "number", 0, "at least 1"),
    ("report", "label_share", 1, "between 0 and 1"),
    ("report", "label_share", "0.5", "between 0 and 1"),
    ("report", "classes", ["a", "b", "c"], "two classes"),
    ("report", "classes", ["sh", "\uff33H"], "different"),
    ("report", "classes", ["copy", "\u0441\u043e\u0440\u0443"], "different"),
    ("report", "classes", ["HAT", "\u0397\u0391\u03a4"], "different"),
    ("report", "classes", ["a, b", "c"], "different words"),
    ("report", "classes", ["a\u202eb", "c"], "different words"),
    ("report", "more", 1, "and nothing else"),
    ("report", "candidates", {"coef": [[1] * 5], "intercept": [0]}, "do not fit"),
    ("vote", "candidates", None, "do not fit"),
    ("vote", "candidates.intercept", [0.1], "do not fit"),
    ("vote", "candidates.coef.0", [1, 2], "do not fit"),
    ("vote", "candidates.coef.0.0", 1e16, "do not fit"),
    ("report", "encoding.basis", "bspline", "knows the Fourier basis"),
    ("report", "encoding.rescale", "max_abs", "asks for others"),
    ("report", "encoding.rescale", "standard", "asks for others"),
    ("report", "encoding.judge", "inner_products", "asks for others"),
    ("report", "encoding.size", 4, "no such Fourier basis"),
    ("report", "encoding.domain", [8, 0], "no such Fourier basis"),
    ("report", "encoding.domain", [0, 9], "multiplied by no other"),
    ("report", "encoding.matrix.0.0", 0.5, "multiplied by no other"),
    ("report", "encoding.matrix.1.3", "x", "no such Fourier basis"),
    ("report", "encoding.gram.0.1", 1e-6, "multiplied by no other"),
    ("report", "encoding.matrix", identity_rows(5), "no such Fourier basis"),
    ("report", "encoding.constants.scale", 0, "at least 1e-06"),
    ("report", "encoding.constants.centre", [1, 2], "one for each"),
    ("report", "encoding.constants", {"centre": 1}, "centre, scale"),
]


def test_a_task_that_it_cannot_answer_is_refused(tmp_path: Path) -> None:
    """In words that say why, before any record is there; the plain ones are taken."""
    lines = [signed(bent(asks, path, value)) for asks, path, value, _ in BENT]
    lines += [signed(task.to_json()) for task in TASKS.values()]
    code = """
    return Promise.all(given.map(async (line) => {
      try { admit((await opened(line)).task); return null; }
      catch (error) { return error instanceof Refusal ? error.message : `!${error}`; }
    }));
    """
    told = run(tmp_path, code, lines)
    assert told[-2:] == [None, None]
    for why, (*case, wanted) in zip(told, BENT, strict=False):
        assert why, case
        assert wanted in why, (case, why)


def _edited(line: str, part_: str, change: tuple[str, str]) -> str:
    """Return a signed task of which one part was rewritten, the signature kept."""
    parts = json.loads(line)
    text = signing.from_base64url(parts[part_]).decode()
    assert change[0] in text
    parts[part_] = signing.to_base64url(text.replace(*change).encode())
    return json.dumps(parts, sort_keys=True, separators=(",", ":")) + "\n"


def test_a_task_that_somebody_altered_is_refused(tmp_path: Path) -> None:
    """Another epsilon, another key, a spare byte, keys twice or out of order."""
    line = signed(TASKS["report"].to_json())
    parts = json.loads(line)
    cases = {
        _edited(line, "payload", ('"epsilon":10.0', '"epsilon":90.0')): "signature",
        _edited(line, "protected", ("EdDSA", "HS256")): "one form",
        line.rstrip("\n"): "one form",
        " " + line: "one form",
        json.dumps(parts) + "\n": "one form",
        line.replace(parts["signature"], parts["signature"][:-1]): "",
        line.replace(parts["signature"], "A" * 86): "signature",
        "{}": "must hold",
        "[1": "no JSON",
    }
    for text, wanted in cases.items():
        why = refusal(tmp_path, "await opened(given)", text)
        assert why is not None
        assert wanted in why, (text[:60], why)


def test_a_document_in_another_form_is_refused(tmp_path: Path) -> None:
    """Also where its server signed it: nobody reads a key twice."""
    text = canonical_json({"task": TASKS["report"].to_json(), "seal_to": None})
    for other in (text + b" ", text.replace(b'"number":1', b'"number":2,"number":1')):
        line = signing.sign_payload(
            _task_header(KEY._public), other, KEY._key.sign
        ).decode()
        assert "one form" in (refusal(tmp_path, "await opened(given)", line) or "")
    forms = [
        '{"a":1,"a":2}',
        '{"b":1,"a":2}',
        '{"a": 1}',
        '{"a":"\\u0041"}',
        '{"a":"\u00e9"}',
    ]
    good = ['{"a":[1.5,-2e-07,"x:1, 2","\\u00e9\\n"],"b":{"c":null,"d":true}}']
    assert run(tmp_path, "return given.map(inOneForm)", forms + good) == [False] * 5 + [
        True
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"task": "0" * 64}, "another task"),
        ({"asks": "vote"}, "another task"),
        ({"server": "0" * 64}, "another server"),
        ({"seal_to": "0" * 64}, "another seal"),
        ({"about": 0}, "the task does not have"),
        ({"id": "0" * 31}, "no invitation"),
        ({"key": ["0" * 64]}, "no invitation"),
        ({"format": 1}, "no invitation"),
        ({"format": 4, "record": "p"}, "knows others"),
        ({"record": "p"}, "nothing else"),
    ],
)
def test_an_invitation_to_something_else_is_refused(tmp_path, change, why):
    """Another round, another server, another form: nothing is drawn for it."""
    server = Server(tmp_path, TASKS["report"], 1)
    given = [server.line, server.invitations[0].to_json() | change]
    code = "invited(given[1], await opened(given[0]))"
    assert why in (refusal(tmp_path, code, given) or "")


def test_a_round_of_sealed_envelopes_is_refused(tmp_path: Path) -> None:
    """The page says what to use instead; it never sends an open one."""
    server, seal_to = (
        Server(tmp_path, TASKS["report"], 1),
        envelope.public_key(envelope.new_private_key()),
    )
    line = signed(TASKS["report"].to_json(), seal_to)
    code = "invited(given[1], await opened(given[0]))"
    why = refusal(tmp_path, code, [line, server.invitations[0].to_json()])
    assert "curvote client" in (why or "")
