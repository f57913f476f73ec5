"""The browser's client is heard, and sees a curve as the reference does."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.client import table
from curvote.client.table import OwnerRecord
from curvote.curves.basis import projection
from curvote.curves.encoding import Encoding
from curvote.intake.admission import RefusedEnvelope
from curvote.messages.answer import answer_task, client_inputs
from tests.browser.script import needs_node, run
from tests.browser.tasks import OTHERS, TASKS, Server, signed
from tests.vectors.envelope import Recorded, curve

ANSWER = """
const signed = await opened(given.line);
admit(signed.task);
return Promise.all(given.invitations.map(async (invitation, i) => {
  invited(invitation, signed);
  const subject = subjectOf(invitation), place = i % 2;
  const sent = message(signed.task, subject, given.curve, [place], systemWords);
  return [sent, await envelope(invitation, sent)];
}));
"""


# ---------------------------------------------------------------------------- is heard
@needs_node
@pytest.mark.parametrize("asks", TASKS | OTHERS)
def test_its_envelopes_are_accepted(tmp_path: Path, asks: str) -> None:
    """Each once, all of one length, and what is kept is what was drawn."""
    server = Server(tmp_path, (TASKS | OTHERS)[asks])
    given = {"line": server.line, "curve": curve().tolist()}
    given["invitations"] = [i.to_json() for i in server.invitations]
    told = run(tmp_path, ANSWER, given)
    assert len({len(line) for _, line in told}) == 1
    for _, line in told:
        server.take(line)
    with pytest.raises(RefusedEnvelope, match="used"):
        server.take(run(tmp_path, ANSWER, given)[0][1])  # another draw, same right
    sent = sorted(json.dumps(message, sort_keys=True) for message, _ in told)
    kept = sorted(json.dumps(message, sort_keys=True) for message in server.taken())
    assert [json.loads(text) for text in kept] == [json.loads(text) for text in sent]


@needs_node
def test_it_sees_curves_as_the_reference_does(tmp_path: Path) -> None:
    """Sizes, domains, one constant for all, values that are too large or missing."""
    rng, cases = np.random.default_rng(3), []
    for size, points, domain in [(1, 4, (0, 1)), (5, 256, (0, 8)), (31, 64, (-3, 90))]:
        basis = projection("fourier", size, np.linspace(*domain, points))
        constants = {"centre": np.array(0.5), "scale": rng.uniform(0.5, 9, size)}
        task = replace(TASKS["report"], encoding=Encoding(basis, "tanh", constants))
        for each in _odd(rng.normal(size=points)):
            told = client_inputs(task, OwnerRecord(each, 0), None)
            sent = answer_task(
                task, OwnerRecord(each, 0), None, source := Recorded(len(cases))
            )
            words = [f"{word:016x}" for word in source.taken]
            cases.append((task, each, told, sent, words))
    code = """
    return Promise.all(given.map(async ([line, values, words]) => {
      const { task } = await opened(line);
      admit(task);
      const far = { inf: Infinity, "-inf": -Infinity, nan: NaN };
      const curve = values.map((x) => far[x] ?? x);
      const sent = message(task, null, curve, [0], tape(words));
      return { ...encoded(task.encoding, curve), sent };
    }));
    """
    given = [[signed(t.to_json()), _named(v), words] for t, v, *_, words in cases]
    for told, (_, values, wanted, sent, _) in zip(
        run(tmp_path, code, given), cases, strict=True
    ):
        # Where values of 1e12 cancel, what is left is rounding.
        near = 1e-12 * np.abs(np.clip(values, -1e12, 1e12)).max(initial=1)
        near = 1e-12 if np.isnan(near) else near
        wide = task.encoding.constants["scale"].min()
        pair = told["coefficients"], wanted.coefficients[0]
        assert np.allclose(*pair, rtol=1e-12, atol=near)
        assert np.allclose(told["z"], wanted.z[0], rtol=1e-12, atol=near / wide)
        assert told["sent"]["label"] == sent["label"]
        # Steps of 2^-20: what rounds to another is one step away.
        step = near / wide + 2**-19
        assert np.allclose(told["sent"]["z"], sent["z"], rtol=1e-12, atol=step)


@needs_node
def test_a_decision_of_nothing_says_the_first_class(tmp_path: Path) -> None:
    """As the reference has it: only what is above 0 says the second."""
    code = """
    const known = { z: [0, 0], coefficients: [1, -1] };
    const task = (judge, shift) => ({ classes: [1, 2], encoding: { judge },
      candidates: { coef: [[9, 9], [1, 1]], intercept: [9, shift] } });
    return [["rescaled", 0], ["coefficients", 0], ["rescaled", 1e-300]].map(
      ([judge, shift]) => [0, 1].map(
        (place) => right(task(judge, shift), 1, known, place)));
    """
    assert run(tmp_path, code) == [[True, False], [True, False], [False, True]]


def _odd(values: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    far, gap = values.copy(), values.copy()
    far[:2], gap[1] = (np.inf, -1e300), np.nan
    return [values, far, gap]


def _named(values: np.ndarray[Any, Any]) -> list[float | str]:
    return [x if np.isfinite(x) else str(x) for x in values.tolist()]


# ------------------------------------------------------------------------------ a curve
CURVES = [
    "1,2,3\n", "1\n2\n3\n", "1\r\n2\r\n3", "a,b,c\n1,2,3\n", "x\n1\n2\n3\n\n\n",
    "\ufeff1,2,3", '"1","2","3"\n', "1, 2 ,3\n", "1,,3\n", "1\n\n3\n", "1\nNaN\n3\n",
    "1e3,-inf,+2.5E-3\n", "n/a,1,.5\n", "1,2\n", "1,2,3,4\n", "1,2,3\n4,5,6\n",
    "1,x,3\n", "1\n2\n", "", "0x10,1,2\n", "1,2\n3\n", "1;2;3\n", "1\t2\t3\n",
]  # fmt: skip


@needs_node
def test_it_reads_curves_as_the_command_does(tmp_path: Path) -> None:
    """One row or one column, a header or none, missing values; or a refusal."""
    code = """
    return given.map((text) => {
      try { return curveOf(text, 3).map(String); } catch (error) {
        return error instanceof Refusal ? null : `!${error}`;
      }
    });
    """

    def line_of(file: Path) -> Any:
        return table._values_of_line(file, table._read_rows(file)[1], 3)

    for text, told in zip(CURVES, run(tmp_path, code, CURVES), strict=True):
        file = tmp_path / "curve.csv"
        file.write_bytes(text.encode())
        try:
            wanted = [float(x) for x in line_of(file)]
        except UserError:
            wanted = None
        mine = told and [float(x.replace("Infinity", "inf")) for x in told]
        assert (
            np.array_equal(mine, wanted, equal_nan=True) if wanted else mine is None
        ), text
