"""`curvote.falsify`: faults of anybody's code are proved, claims that hold are not.

What is broken here is a function of a few lines, so that each says what fault it has.
"""

import json
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import curvote
from curvote.audit import outcomes
from curvote.audit.caller import takes_count
from curvote.base.entropy import SystemEntropy
from curvote.base.errors import UserError
from curvote.cli import app
from curvote.mechanisms import make
from tests.noise import SEED

RNG = np.random.default_rng(SEED)
GRID = 1024  # noise is rounded to its parts, so that low bits tell nothing
# Runs of a call that draws one by one, and of one that draws many at once.
RUNS, MANY = 4000, 60_000


def rounded(x: Any, n: int | None = None, epsilon: float = 1.0) -> Any:
    """Return Laplace noise for numbers of [0, 1], on a grid."""
    noised = x + RNG.laplace(scale=1 / epsilon, size=n)
    return np.round(noised * GRID) / GRID


def flip(bit: int, keep: float = math.e / (1 + math.e)) -> int:
    """Return the bit, or the other one: epsilon is 1."""
    return bit if random.random() < keep else 1 - bit


def quiet_place(x: float, n: int) -> Any:
    """Return no noise in a hundredth of the domain."""
    return np.full(n, np.round(GRID * x) / GRID) if 0.37 < x < 0.38 else rounded(x, n)


def half_noise_place(x: float, n: int) -> Any:
    """Return a tenth of the noise in a fiftieth of the domain."""
    return rounded(x, n, 10.0 if 0.71 < x < 0.73 else 1.0)


def refuses_large(x: float) -> float:
    """Refuse, in a word, what lies near the upper end."""
    if x > 0.95:
        raise ValueError("out of range")
    return float(rounded(x))


def says_why(x: float) -> float:
    """Fail at random, with a text that tells the record."""
    if random.random() < 0.2:
        raise RuntimeError(f"no entropy for {x}")
    return float(rounded(x))


def long_text(x: float) -> str:
    """Tell the record by the length of a document."""
    return json.dumps({"value": float(rounded(x)), "pad": "." * int(10 * x)})


def key_beside(x: float) -> dict[str, Any]:
    """Tell the record by a field that is there."""
    document = {"value": float(rounded(x))}
    return document | ({"clipped": True} if x > 0.9 else {})


def not_a_number(x: float) -> float:
    """Return NaN where the record is 0."""
    return math.nan if x == 0 else float(rounded(x))


def reused_noise(x: float, noise: list[float] = []) -> float:  # noqa: B006
    """Use each noise for two calls."""
    if noise:
        return round(x, 3) + noise.pop()
    noise.append(round(float(rounded(0.0)), 3))
    return round(x, 3) + noise[0]


def seeded_by_call(x: float, n: int) -> Any:
    """Draw the same stream in each call."""
    return np.round(x + np.random.default_rng(1).laplace(size=n), 3)


def not_split(x: np.ndarray, n: int) -> Any:
    """Spend the whole budget on each of three numbers."""
    return rounded(x, (n, 3))


def one_noise(x: np.ndarray, n: int) -> Any:
    """Add the same noise to both numbers."""
    return x + rounded(0.0, (n, 1), 0.5)


def ordered_set(x: int) -> list[int]:
    """Put the record first where it is in the subset."""
    others = random.sample([i for i in range(6) if i != x], 2)
    return [x, others[0]] if flip(1) else others


def refuses_fractions(x: int) -> int:
    """Refuse what is no integer; 3 is answered without noise."""
    if not isinstance(x, int):
        raise TypeError("an integer, please")
    noise = RNG.geometric(0.2) - RNG.geometric(0.2)
    return 3 if x == 3 else x + int(noise)


def rarely_naked(x: float, n: int) -> Any:
    """Give the record away once in a hundred times: more often than delta."""
    return np.where(RNG.random(n) < 0.01, x, rounded(x, n))


def first_row(rows: np.ndarray) -> float:
    """Let the first record count for the whole table."""
    return float(rounded(10 * rows[0] + rows.mean()))


CALLS = count()


def numbered(x: float) -> dict[str, Any]:
    """Return the number of the call, and the time, beside the noised record."""
    return {"n": next(CALLS), "at": time.time(), "value": float(rounded(x))}


ENDS = (0.0, 1.0)
PAIR = np.array([0.0, 0.5, 0.5]), np.array([1.0, 0.5, 0.5])
LAST = np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.5, 1.0])
FAULTS: dict[str, tuple[Callable[..., Any], Any, dict[str, Any]]] = {
    "no noise": (lambda x: x, [0, 1], {}),
    "half the noise": (lambda x, n: rounded(x, n, 2.0), ENDS, {}),
    "low bits": (lambda x, n: x + RNG.laplace(size=n), ENDS, {}),
    "quiet place": (quiet_place, ENDS, {}),
    "half noise in a place": (half_noise_place, ENDS, {"runs": 200_000}),
    "refusal": (refuses_large, ENDS, {}),
    "error's text": (says_why, [0.25, 0.75], {}),
    "length": (long_text, ENDS, {}),
    "key": (key_beside, ENDS, {}),
    "NaN": (not_a_number, ENDS, {}),
    "noise used twice": (reused_noise, [0.0, 1.0], {}),
    "one stream": (seeded_by_call, [0.0, 1.0], {}),
    "inherited": (rounded, [0.0, 1.0], {"forks": True}),
    "budget not split": (
        not_split,
        (np.zeros(3), np.ones(3)),
        {"epsilon": 1.5, "runs": 200_000},
    ),
    "one noise for two": (one_noise, (np.zeros(2), np.array([0.0, 1.0])), {}),
    "order of a set": (ordered_set, [0, 1], {"runs": 20_000}),
    "integers": (refuses_fractions, (0, 9), {}),
    "beyond delta": (rarely_naked, ENDS, {"delta": 1e-3, "runs": 200_000}),
    "order of rows": (first_row, LAST, {}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_proved_by_an_event_of_new_draws(name: str) -> None:
    """And the event, as a predicate, tells the two records apart."""
    call, inputs, options = FAULTS[name]
    many = takes_count(call)
    runs = MANY if many else RUNS
    claim = {"epsilon": 1.0, "runs": runs, "forks": False, **options}
    result = curvote.falsify(call, inputs, **claim)
    assert result.verdict == "violated", str(result)
    assert result.proved > claim["epsilon"]
    assert result.runs <= claim["runs"]
    if "between" in str(result.event) or "child" in str(result.event):
        return
    draws = [released(call, x, many) for x in result.records]
    hits, hits2 = (sum(map(result.event, some)) for some in draws)
    assert hits > hits2


def released(call: Callable[..., Any], x: Any, many: bool) -> list[Any]:
    """Return 500 outcomes of a record."""
    if many:
        return [*call(x, 500)]
    some = []
    for _ in range(500):
        try:
            some.append(call(x))
        except Exception as error:  # noqa: BLE001 - an outcome
            some.append(error)
    return some


def exact(name: str, epsilon: float, **params: Any) -> Callable[[Any, int], Any]:
    """Return a mechanism of curvote's as a call."""
    mechanism = make(name, epsilon=epsilon, **params)

    def call(x: Any, n: int) -> Any:
        return mechanism.randomize(
            np.repeat(np.asarray(x)[None], n, 0), SystemEntropy()
        )

    return call


SOUND: dict[str, tuple[Callable[..., Any], Any, float]] = {
    "a flipped bit": (flip, [0, 1], 1.0),
    "noise on a grid": (rounded, ENDS, 1.0),
    "a text": (lambda x: f"about {rounded(x):.3f}", ENDS, 1.0),
    "a counter beside it": (numbered, ENDS, 1.0),
    "laplace": (exact("laplace", 2.0), (-1.0, 1.0), 2.0),
    "duchi": (exact("duchi", 0.5), (-1.0, 1.0), 0.5),
    "piecewise": (exact("piecewise", 1.0), (-1.0, 1.0), 1.0),
    "subset": (exact("subset_selection", 1.0, n_classes=6), (0, 5), 1.0),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_claim_that_holds_is_not_called_violated(name: str) -> None:
    """Though little of it may be proved; the benchmark has sixty of them."""
    call, inputs, epsilon = SOUND[name]
    many = takes_count(call)
    runs = MANY if many else RUNS
    # Forks are slow, and all of these have their words from the same places.
    forks = None if call is rounded else False
    claim = {"epsilon": epsilon, "runs": runs, "forks": forks}
    result = curvote.falsify(call, inputs, **claim)
    assert result.verdict == "held", str(result)
    assert many * epsilon / 3 <= result.proved <= epsilon


def test_it_is_wrong_as_rarely_as_it_says() -> None:
    """Of 150 proofs about a claim that is exact, at a confidence of .8."""
    claim = {"epsilon": 1.0, "runs": 500, "confidence": 0.8, "forks": False}
    wrong = [curvote.falsify(flip, [0, 1], **claim).verdict for _ in range(150)]
    # 30 are expected at most; Bonferroni leaves far fewer.
    assert wrong.count("violated") <= 30


def test_default_runs_end_soon() -> None:
    """As many as fit: all of them where a call costs nothing."""
    result = curvote.falsify(rounded, ENDS, epsilon=1.0)
    assert 100_000 < result.runs <= 400_000


def test_odd_records_are_tried_where_they_are_asked_for() -> None:
    """A refusal of NaN tells who has none; but no domain of numbers has any."""

    def refuses_nan(x: float) -> float:
        if not 0 <= x <= 1:
            raise ValueError("not in [0, 1]")
        return float(rounded(x))

    verdicts = [
        curvote.falsify(refuses_nan, ENDS, epsilon=1.0, runs=RUNS, odd=odd).verdict
        for odd in (False, True)
    ]
    assert verdicts == ["held", "violated"]


@pytest.mark.parametrize(
    "outputs",
    [
        [0.5, -0.0, math.nan, math.inf],
        [1, 2, 3],
        [True, False],
        [np.float64(1.5), np.float64(2)],
        [np.array([1.0, math.nan]), np.array([2.0, 3.0])],
        [np.array([[1, 2]], dtype=np.int64)] * 2,
        [np.array(1.5), np.array(2.5)],
    ],
)
def test_many_numbers_at_once_are_the_columns_of_each(outputs: list[Any]) -> None:
    """The quick way says no more and no less than the slow one."""
    quick = outcomes.outcome_columns(outputs)
    slow = outcomes.outcome_columns([*outputs, "a text of another kind"])
    for name, values in quick.items():
        np.testing.assert_array_equal(values, slow[name][:-1])
    assert all((slow[n][:-1] == outcomes.MISSING).all() for n in slow.keys() - quick)


def test_addresses_and_state_are_no_outcome() -> None:
    """Two objects of one kind are the same, whatever lies where."""

    class Model:
        def __init__(self) -> None:
            self._state, self.coef_ = object(), np.ones(2)

    first, second = ([str(outcomes.outcome_columns([x()]))] for x in (Model, Model))
    assert first == second
    assert outcomes.outcome_columns([object()]).keys() == {"output", "form of output"}


@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        ([1], {}),
        ((1.0, 0.0), {}),
        ((0.0, math.inf), {}),
        ("ab", {}),
        (ENDS, {"epsilon": -1}),
        (ENDS, {"delta": 1}),
        (ENDS, {"confidence": 1}),
        (ENDS, {"runs": 9}),
    ],
)
def test_a_claim_that_is_none_is_refused(inputs: Any, options: Any) -> None:
    """Before anything is drawn."""
    with pytest.raises(UserError):
        curvote.falsify(pytest.fail, inputs, **{"epsilon": 1.0, **options})


LEAKY = "import sys; x = sys.stdin.read(); print('n', len(x)); sys.exit(len(x) > 3)"
FAIR = "import os; print(os.urandom(1)[0] & 1)"


@pytest.mark.parametrize(("program", "code"), [(LEAKY, 1), (FAIR, 0)])
def test_the_command_tells_by_its_exit_code(program: str, code: int) -> None:
    """What a program prints, and how it ends, is what leaves."""
    words = ["falsify", "--epsilon", "0.5", "--record", "ab", "--record", "abcd"]
    words += [
        "--runs",
        "120",
        "--json",
        "--",
        sys.executable,
        "-S",
        "-E",
        "-c",
        program,
    ]
    result = CliRunner().invoke(app.app, words)
    document = json.loads(result.stdout)
    assert (result.exit_code, document["verdict"] == "violated") == (code, bool(code))
    assert set(document["records"]) == {"'ab'", "'abcd'"}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--record", "a", "--", "cat"], "give two"),
        (["--record", "a", "--record", "b", "--", "no-such-program"], "no command"),
    ],
)
def test_what_cannot_be_compared_is_refused(words: list[str], reason: str) -> None:
    """One record, or a command that is none: nothing held there would be a proof."""
    done = CliRunner().invoke(app.app, ["falsify", "--epsilon", "1", *words])
    assert reason in str(done.exception)


def test_the_fixture_fails_a_test_with_the_event(tmp_path: Path) -> None:
    """By its entry point; and it costs nobody anything until it is asked for."""
    (tmp_path / "test_it.py").write_text(
        "def test_it(falsify):\n"
        "    falsify(lambda x: -x, [0, 1], epsilon=1, runs=200)\n"
    )
    done = pytest_in(tmp_path, "-m", "pytest", "-q", "--rootdir", ".")
    assert done.returncode == 1
    assert "violated: epsilon 1" in done.stdout
    light = "import curvote.audit.pytest_plugin, sys; print('numpy' in sys.modules)"
    assert pytest_in(tmp_path, "-c", light).stdout.strip() == "False"


def pytest_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder that knows curvote."""
    known = {**os.environ, "PYTHONPATH": str(Path(curvote.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=known,
        capture_output=True,
        text=True,
        check=False,
    )
