"""Whatever a server writes: what the browser's client answers, the reference would."""

import copy
import json
import random
import re
from typing import Any, Final

import pytest

from curvote.base.errors import UserError
from curvote.messages.answer import validate_task
from curvote.messages.message import parse_message
from curvote.wire.strict_json import parse_json
from tests.browser.script import needs_node, run
from tests.browser.tasks import OTHERS, TASKS
from tests.fuzzing import bend
from tests.valid_tasks import document, tasks

pytestmark = needs_node
ROUNDS: Final = 400
# Each record's message, or why there is none; a mistake, no refusal, begins by "!".
CODE: Final = """
return given.map((text) => {
  try {
    const task = JSON.parse(text), about = { vote: 0, code: "p" }[task.asks] ?? null;
    admit(task);
    const points = task.encoding?.matrix[0].length;
    return [-1e12, 0, NaN, 3.5].map((x, i) =>
      message(task, about, points && Array(points).fill(x), [i % 2], systemWords));
  } catch (error) {
    return error instanceof Refusal ? error.message : `!${error.stack}`;
  }
});
"""


def _texts(rounds: int) -> list[str]:
    """Return tasks with something odd in them, once or twice, as JSON."""
    rng, found = random.Random(8), list[str]()
    kinds = [task.to_json() for task in (TASKS | OTHERS).values()]
    while len(found) < rounds:
        one, other = (copy.deepcopy(rng.choice(kinds)) for _ in range(2))
        for _ in range(rng.randrange(1, 3)):
            bend(rng, one, other)
        try:
            found.append(json.dumps(one, allow_nan=False))
        except (ValueError, RecursionError):  # what no JSON text can hold
            continue
    return found


def _accepted(text: str) -> Any:
    """Return the task if the reference takes it; 1.0 is 1, as in JavaScript."""
    whole = r'("(?:number|format|size|order|omega)": \d+)\.0(?=[,}])'
    text = re.sub(whole, r"\1", text)
    try:
        return validate_task(parse_json(text.encode(), 2**26))
    except UserError:
        return None


@pytest.mark.parametrize("source", ["bent", "shipped"])
def test_it_answers_nothing_that_the_reference_refuses(tmp_path, source):
    """Nor does it fail; and each of its messages is one that the server takes."""
    shipped = [json.dumps(document(task)) for task in tasks().values()]
    texts = _texts(ROUNDS) if source == "bent" else shipped
    answered = 0
    for text, told in zip(texts, run(tmp_path, CODE, texts), strict=True):
        assert told[0] != "!", (told, text[:300])
        if isinstance(told, str):
            continue
        task, about = _accepted(text), told[0].get("learner", told[0].get("record"))
        assert task is not None, text[:300]
        answered += 1
        for message in told:
            assert parse_message(task, about, message)
    assert answered >= (ROUNDS // 50 if source == "bent" else 2)
