"""Codes, votes and directions of the browser's client are Python's, word by word."""

from itertools import product
from typing import Any, Final

import numpy as np
import pytest

from curvote.client.table import OwnerRecord
from curvote.mechanisms.frequency_oracles import best_subset_size
from curvote.mechanisms.privunit import PrivUnit, normal_numbers
from curvote.messages.answer import answer_task
from curvote.messages.message import parse_message
from curvote.systems.labels.codes.encoders import CANDIDATES, build_encoder
from curvote.systems.labels.messages import single_round_task
from tests.browser.script import needs_node, run
from tests.browser.tasks import direct_task, halving_task
from tests.vectors.envelope import Recorded, curve

pytestmark = needs_node
# What each task's answers become, and how many words are left over.
SENT: Final = """
return given.map(([task, subject, answers, all, curve]) => {
  const words = tape(all);
  admit(task);
  return [message(task, subject, curve, answers, words), words.left.length];
});
"""


def _words(source: Recorded) -> list[str]:
    return [f"{word:016x}" for word in source.taken]


@pytest.mark.parametrize("encoder", CANDIDATES)
def test_the_same_words_give_the_same_code(tmp_path, encoder):
    """Of any label among few and many, at any epsilon, and no word is left over."""
    rng, given, wanted = np.random.default_rng(6), [], []
    for seed, n in enumerate((2, 3, 7, 8, 9, 40, 333, 1024) * 6):
        epsilon, label = float(np.exp(rng.uniform(-5, 4))), int(rng.integers(n))
        task = single_round_task([f"c{i}" for i in range(n)], epsilon, encoder)
        code = task.noise().randomize(np.array([label]), words := Recorded(seed))
        given.append([task.to_json(), "p", [label], _words(words)])
        wanted.append([{"code": code[0].tolist(), "record": "p"}, 0])
    assert run(tmp_path, SENT, given) == wanted


MONITOR: Final = {
    "format": 4,
    "protocol": "monitor",
    "asks": "answer",
    "number": 1,
    "classes": ["no", "yes", "maybe"],
    "epsilon": 1.5,
    "question": "right",
    "encoder": "k_rr",
    "params": {},
    "words": 2,
    "groups": [],
    "places": [],
    "bounds": None,
    "model": None,
    "closes": None,
}
# Of a monitor: its question, words, what else it adds, the answers, their one word.
QUESTIONS: Final[list[tuple[str, int, dict[str, Any], list[float], int]]] = [
    ("right", 2, {}, [1], 1),
    ("right", 2, {"groups": ["a", "b", "c"]}, [1, 2], 5),
    ("right", 2, {"places": ["north", "south"]}, [0], 0),
    ("class", 9, {}, [1, 2], 5),
    ("versus", 4, {"model": ["m", "n"]}, [0, 1], 2),
    ("versus", 4, {"groups": ["a", "b"]}, [1, 0, 1], 5),
    ("calibration", 20, {}, [1, 0], 18),
    ("calibration", 20, {"groups": ["a", "b"]}, [0.31, 1, 1], 27),
    ("error", 5, {"bounds": [-2, 2]}, [-9], 0),
    ("error", 5, {"bounds": [-2, 2]}, [2.0], 4),
]


@pytest.mark.parametrize("encoder", CANDIDATES)
def test_a_monitors_answers_are_one_word_that_is_coded(tmp_path, encoder):
    """By every question, with groups and places; a first word rounds an error."""
    given, wanted = [], []
    for seed, (question, size, more, answers, word) in enumerate(QUESTIONS):
        task = MONITOR | more | {"encoder": encoder, "question": question}
        n, words = max(1, len(task["groups"])) * size, Recorded(seed)
        omega = {"omega": best_subset_size(1.5, n)} if "subset" in encoder else {}
        words.words(int(question == "error"))
        code = build_encoder(encoder, n, 1.5).randomize(np.array([word]), words)
        place = {"place": 1} if task["places"] else {}
        task |= {"words": size, "params": omega}
        given.append([task, place.get("place"), answers, _words(words)])
        wanted.append([{"code": code[0].tolist()} | place, 0])
    assert run(tmp_path, SENT, given) == wanted


def test_an_error_is_rounded_up_as_often_as_its_fraction(tmp_path):
    """Up iff the word is below floor(fraction 2^64), so exact numbers never move."""
    error = MONITOR | {"question": "error", "words": 5, "bounds": [0, 4]}
    cases = [(1.25, 2**62 - 1, 2), (1.25, 2**62, 1), (3, 0, 3), (4, 0, 4), (0, 0, 0)]
    code = "return given.map(([task, e, word]) => wordOf(task, [e], tape([word])))"
    given = [[error, e, f"{word:016x}"] for e, word, _ in cases]
    assert run(tmp_path, code, given) == [word for *_, word in cases]


BENT: Final = [
    {"words": 1}, {"words": 3}, {"words": 2.5}, {"words": "2"}, {"words": 70000},
    {"question": "class"}, {"question": "versus"}, {"question": "toString"},
    {"question": "error", "words": 5}, {"bounds": [1, 1]}, {"model": "m"},
    {"question": "versus", "words": 4, "model": ["m"]}, {"groups": ["a", "A"]},
    {"places": ["a", ""]}, {"groups": None}, {"closes": "soon"}, {"closes": 5},
    {"encoder": "alibi"}, {"params": {"omega": 1}},
    {"encoder": "subset_selection", "params": {"omega": 2}}, {"params": None},
    {"encoder": "subset_selection"}, {"more": 1}, {"format": 3}, {"epsilon": 1e-9},
    {"classes": ["a"]}, {"asks": "code"}, {"protocol": "labels"},
]  # fmt: skip


def test_a_monitor_that_does_not_fit_is_refused(tmp_path):
    """Before anything is asked, by a refusal and no mistake."""
    code = """return given.map((task) => { try { admit(task); return "taken"; }
      catch (error) { return error instanceof Refusal ? null : String(error); } });"""
    told = run(tmp_path, code, [MONITOR | bent for bent in BENT] + [MONITOR])
    assert told == [None] * len(BENT) + ["taken"]


def _answered(tmp_path, cases):
    """Return what Python and the page make of (task, subject, class)."""
    given, wanted = [], []
    for seed, (task, subject, place) in enumerate(cases):
        record, words = OwnerRecord(curve(), place), Recorded(seed)
        wanted.append(answer_task(task, record, subject, words))
        texts = task.to_json(), subject, [place], _words(words), curve().tolist()
        given.append(texts)
    found = run(tmp_path, SENT, given)
    assert [left for _, left in found] == [0] * len(found)
    return zip(wanted, [message for message, _ in found], strict=True)


def test_the_same_words_give_the_same_direction(tmp_path):
    """Of both arms and any number of classes, to 1e-9, and a server takes it."""
    kinds = [*product(("mean", "joint"), (2, 3, 9), ("tanh", "standard"))] * 2
    epsilons = (0.1, 0.7, 2.0, 5.0, 12.0) * 5
    tasks = [
        direct_task(a, k, e, r) for (a, k, r), e in zip(kinds, epsilons, strict=False)
    ]
    cases = [(task, None, i % len(task.classes)) for i, task in enumerate(tasks)]
    for task, (wanted, found) in zip(tasks, _answered(tmp_path, cases), strict=True):
        ours, theirs = np.array(found["direction"]), np.array(wanted["direction"])
        assert np.abs(ours - theirs).max() <= 1e-9 * np.abs(theirs).max()
        assert parse_message(task, None, found)


def test_votes_halve_any_number_of_classes(tmp_path):
    """Each candidate's question, by each class, is answered as in Python."""
    tasks = [halving_task(k) for k in (2, 3, 4, 5, 11)]
    cases = [(t, a, y) for t in tasks for a in range(16) for y in range(len(t.classes))]
    assert all(wanted == found for wanted, found in _answered(tmp_path, cases))


def test_the_constants_of_directions_are_those_of_python(tmp_path):
    """Gamma, m and the threshold, from 2 numbers to 20,000, at every epsilon."""
    epsilons = (2.0**-20, 0.1, 1.0, 4.0, 10.0, 60.0, 1000.0)
    cases = [*product(epsilons, (2, 3, 4, 9, 26, 559, 20000))]
    code = "return given.map(([epsilon, d]) => privunit(epsilon, d))"
    for (epsilon, d), found in zip(cases, run(tmp_path, code, cases), strict=True):
        law, outside = PrivUnit(epsilon=epsilon, d=d), int(found["limit"])
        assert found["m"] == pytest.approx(law.m, rel=2e-10)
        assert found["gamma"] == pytest.approx(law.cap.gamma, rel=1e-6, abs=1e-11)
        assert found["kept"] == pytest.approx(law.acceptance, rel=1e-8)
        assert abs(outside / law.threshold_out - 1) <= 2**-45


def test_normal_numbers_are_as_exact_as_the_margin_wants(tmp_path):
    """Far closer to numpy's than 2^-46, at the ends of their range too."""
    words = Recorded(3)
    wanted = normal_numbers(4096, words)
    found = run(tmp_path, "return normals(4096, tape(given))", _words(words))
    assert np.allclose(found, wanted, rtol=0, atol=2**-48)
    ends = "return [0.5, 2 ** 52 - 0.5].map((k) => ln(k * 2 ** -52))"
    assert run(tmp_path, ends) == pytest.approx([-53 * np.log(2), -(2**-53)])
