"""What a person is told and asked before anything is drawn."""

import math
import os
import pty
from dataclasses import replace

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.text import format_factor, printable_name
from curvote.chain.registry import SYSTEMS
from curvote.messages.answer import describe_answer
from curvote.messages.message import client_data, messages_of, payload_at
from tests.invited import Home, envelopes, run
from tests.processes import run_command
from tests.rounds import REPORTS, VOTES


def on_a_terminal(words: list[str], answer: str) -> tuple[int, str]:
    """Run the command with a pseudo-terminal as its input; return exit and words."""
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    done = run_command("client", *words, stdin=theirs)
    os.close(ours)
    os.close(theirs)
    assert done.stdout == "" or done.returncode == 0
    return done.returncode, done.stderr


def test_a_person_is_asked_on_a_terminal(home: Home) -> None:
    """No, or nothing: nothing drawn, nothing pinned. Yes: one envelope."""
    for answer in ("n", "", "maybe"):
        code, said = on_a_terminal(home.words("report"), answer)
        assert code == 2
        assert said.count("Send it? [y/N]") == 1
        assert "nothing was drawn" in said
        assert (home.entries(), envelopes()) == ([], set())
    code, said = on_a_terminal(home.words("report"), "y")
    assert code == 0
    assert "is new" in said  # a refused question has pinned nobody
    assert len(envelopes()) == 1
    code, said = on_a_terminal(home.words("report"), "n")
    assert (code, said) == (0, "")  # released before: there is nothing to ask
    assert on_a_terminal(["raise-cap", "--cap", "3"], "n")[0] == 2
    assert "epsilon 2, delta 0" in run("init").stdout
    assert on_a_terminal(["raise-cap", "--cap", "3"], "y")[0] == 0
    home.invite(VOTES)
    code, said = on_a_terminal([*home.words("vote"), "--yes"], "n")
    assert code == 0
    assert "Send it?" not in said


def judge_of(about: int | None) -> np.ndarray | None:
    """Return the candidate of one client, as an array."""
    return None if about is None else np.array([about])


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_is_sent_is_said_for_every_message(name: str, drawn: list[int]) -> None:
    """From the task alone: not a word of entropy is used."""
    of_curves = {
        asks: each
        for asks, each in messages_of(name).items()
        if not (each.per_table or each.per_record or each.about_model)
    }
    for asks, message in of_curves.items():
        task = message.nominal_task(replace(REPORTS, protocol=name, asks=asks))
        about = None if task.candidates is None else 0
        said = describe_answer(task, about)
        assert said.startswith(f"{asks} (")
        assert "no/yes" in said
        known = client_data(task, np.ones((1, 4)), np.ones(1), judge_of(about))
        sent = payload_at(message.draw(task, known, SeededEntropy(1)), 0)
        counts = [len(each) for each in sent.values() if isinstance(each, list)]
        assert sum(counts) == message.count_numbers(task)
        assert ("number" in said) == bool(counts)
        assert ("one bit" in said) == ("positive" in sent)
    assert drawn == []


def test_e_to_the_epsilon_is_said_for_every_epsilon() -> None:
    """Never below the truth by more than its rounding, never an overflow."""
    assert [format_factor(e) for e in (0.1, 1.0, 2.0, 5.0)] == [
        "1.11",
        "2.72",
        "7.39",
        "148",
    ]
    assert format_factor(10.0) == "22,027"
    assert format_factor(50.0) == "10^22"
    assert format_factor(1e308).startswith("10^")
    assert math.isclose(
        float(format_factor(20.0).replace(",", "")), math.exp(20), rel_tol=1e-6
    )
    assert printable_name("sh") == "sh"
